"""Measure the sparse histogram of many occupied cells: time against numpy's unique, and peak memory.

Every row has a cell of its own. The noise is the real one; the threshold is 1, so that most cells are
released and the table is as large as it can be. Time is that of one pipeline that reads, counts, draws and
writes the table, less that of the same pipeline on an empty input; the ratio is of processor time. Memory is
the largest resident size of the process, the only one on the embedded runner. Run by `make bench-sparse`.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import logging
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.options.pipeline_options import PipelineOptions
from rich.console import Console
from rich.table import Table as Shown

from core.domain import Grid
from core.histogram.cells import Cells
from core.histogram.sparse import SparseHistogram
from core.mechanisms.stability import StabilityHistogram
from core.secure_noise import SecureNoise
from pipelines.storage.locate import open_folder
from pipelines.table import Attempt, encode_table, write_part
from tests.benchmarks.pass_cost import peak_megabytes
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader
from transforms.run_rounds import RunRounds

GRID = Grid((0.0,), (2.0**40 - 1,), 1.0)
SPREAD = 0x9E3779B97F4A7C15
RELEASE = b'{"job": "bench"}'


def values(first: int, rows: int) -> np.ndarray:
    """Return distinct integers below 2^40 in no order: an odd factor permutes them."""
    spread = np.arange(first, first + rows, dtype=np.uint64) * np.uint64(SPREAD)
    return (spread & np.uint64(2**40 - 1)).astype(np.int64)


def write_rows(path: Path, rows: int) -> Source:
    """Write `rows` rows in row groups of a million."""
    with pq.ParquetWriter(path, pa.schema([("x", pa.int64())])) as file:
        for first in range(0, max(rows, 1), 1 << 20):
            file.write_table(pa.table({"x": values(first, min(1 << 20, rows - first))}))
    return open_source(str(path), ["x"])


def keep(parts: int, number: int, table: Any) -> tuple[int, bytes]:
    """Encode a part, or the whole table."""
    return number, encode_table(RELEASE, table.columns(GRID))


def write(output: str, attempt: Attempt, part: tuple[int, bytes]) -> int:
    """Write a part; return its rows."""
    return write_part(open_folder(output), attempt, *part, "bench").rows


def run(source: Source, parts: int, workers: int) -> None:
    """Release and write the table in one pipeline."""
    count = StabilityHistogram(what="cells", scale=1.0, threshold=1, l1=1, times=parts, disjoint=parts > 1)
    round_ = SparseHistogram(Cells(GRID, (2**40,)), count, parts=parts)
    options = PipelineOptions([], direct_num_workers=workers, direct_running_mode="multi_threading")
    with tempfile.TemporaryDirectory() as output:
        with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
            rounds = RunRounds(
                [round_], None, SecureNoise(), Reader.of(source, GRID), keep_part=partial(keep, parts)
            )
            last = pipeline | ReadBlocks(source) | rounds
            if parts == 1:
                last = last | "Encode" >> beam.Map(partial(keep, 1, 0))
            _ = last | "Write" >> beam.Map(partial(write, output, Attempt("bench", parts)))
        stored = [pq.read_metadata(path).num_rows for path in Path(output, "result").glob("*.parquet")]
        assert len(stored) == parts


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--parts", type=int, nargs="*", default=[1, 256])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=3, help="of a million rows or fewer")
    parser.add_argument("--most-in-one", type=int, default=10_000_000, help="rows of a table of one part")
    args = parser.parse_args()
    logging.disable()
    pa.set_cpu_count(1)
    shown = Shown(title=f"Sparse histogram, every cell occupied once, {args.workers} worker(s)")
    for heading in ("cells", "parts", "seconds", "CPU seconds", "times unique, CPU", "peak memory, MB"):
        shown.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        empty = write_rows(Path(folder, "empty.parquet"), 0)
        for rows in args.rows:
            source = write_rows(Path(folder, f"{rows}.parquet"), rows)
            for parts in args.parts:
                if parts == 1 and rows > args.most_in_one:
                    continue
                shown.add_row(f"{rows:,}", str(parts), *measure(source, empty, rows, parts, args))
                print(*(list(column.cells)[-1] for column in shown.columns), sep=" | ", flush=True)
            os.unlink(Path(folder, f"{rows}.parquet"))
    Console(width=120).print(shown)


def _times(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds and the processor seconds of some work."""
    began, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - processor


def measure(source: Source, empty: Source, rows: int, parts: int, args: argparse.Namespace) -> list[str]:
    """Return seconds, CPU seconds, ratio to numpy's unique, and peak memory."""
    elapsed, cpu, ratios = [], [], []
    for _ in range(args.repetitions if rows <= 1_000_000 else 1):
        own = values(0, rows) if rows <= 10_000_000 else None
        unique = float("nan") if own is None else _times(partial(np.unique, own, return_counts=True))[1]
        del own
        nothing = _times(partial(run, empty, parts, args.workers))
        whole = _times(partial(run, source, parts, args.workers))
        elapsed.append(whole[0] - nothing[0])
        cpu.append(whole[1])
        ratios.append((whole[1] - nothing[1]) / unique)
    memory = peak_megabytes(partial(run, source, parts, args.workers))
    return [f"{median(elapsed):.2f}", f"{median(cpu):.2f}", f"{median(ratios):.1f}", f"{memory:.0f}"]


if __name__ == "__main__":
    main()
