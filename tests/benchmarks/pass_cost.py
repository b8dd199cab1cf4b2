"""Measure a pass: the embedded runner against the same calls in a plain loop, and two threads against one.

The pass is the last round of the 1-cluster: read, quantize, and count the records in 100 rings about a
center. Each repetition times every variant back to back, so that ratios are of neighbors in time; medians
are shown. What a round costs on an empty table is shown and taken off by itself. Run by `make bench-pass`.

The time is elapsed time, in which the end of a bundle waits for Beam's state sampler: see `EmbeddedRunner`.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import logging
import multiprocessing
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from statistics import median

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.options.pipeline_options import PipelineOptions
from rich.console import Console
from rich.table import Table

from core.aggregate import Tally
from core.domain import Grid
from core.noise import Noise
from core.rounds import Block
from core.secure_noise import SecureNoise
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader, read_in_memory
from transforms.run_rounds import RunRounds

GRID = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-20)
CENTER = (2**19, 2**19)
PASSES = 3
"""Rounds in one pipeline: several, so that their time stands out from the fixed one."""


@dataclass(frozen=True)
class Rings:
    """Count the records between neighboring radii about the center, as the last round of the 1-cluster."""

    name: str
    floor: None = None

    def summarize(self, block: Block, state: tuple[int, ...]) -> Tally:
        """Count the block's records by ring."""
        moved = block.points - np.array(state)
        squares = np.einsum("ij,ij->i", moved, moved)
        edges = np.ceil(10 * 1.12 ** np.arange(100)).astype(np.int64) ** 2
        return Tally(np.bincount(np.searchsorted(edges, squares), minlength=101))

    def release(self, aggregate: Tally, state: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        """Draw the noise of every ring."""
        noise.laplace(aggregate.totals, 1.0)
        return state


ROUNDS = [Rings(f"rings_{number}") for number in range(PASSES)]


def write_table(folder: Path, rows: int, row_groups: int) -> Source:
    """Write `rows` rows of two float64 columns in `row_groups` row groups."""
    folder.mkdir()
    xy = np.random.default_rng(0).normal(0.5, 0.1, (2, rows))
    table = pa.table({"x": xy[0], "y": xy[1]})
    pq.write_table(table, folder / "table.parquet", row_group_size=max(1, -(-rows // row_groups)))
    return open_source(str(folder), ["x", "y"])


def run_plain(source: Source) -> None:
    """Make the passes in a plain loop."""
    for step in ROUNDS:
        total = reduce(
            lambda a, b: a + b, (step.summarize(block, CENTER) for block in read_in_memory(source, GRID))
        )
        step.release(total, CENTER, SecureNoise())


def run_beam(source: Source, workers: int) -> None:
    """Make the passes in one pipeline on the embedded runner."""
    options = PipelineOptions([], direct_num_workers=workers, direct_running_mode="multi_threading")
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        descriptors = pipeline | ReadBlocks(source)
        _ = descriptors | RunRounds(ROUNDS, CENTER, SecureNoise(), Reader.of(source, GRID))


def seconds(run: Callable[[], None]) -> float:
    """Time one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(table: Source, empty: Source, repetitions: int) -> Mapping[str, list[float]]:
    """Time every variant `repetitions` times, in turn, after one run that is not counted."""
    pa.set_cpu_count(1)
    variants = {
        "plain": partial(run_plain, table),
        "one": partial(run_beam, table, 1),
        "empty_one": partial(run_beam, empty, 1),
        "two": partial(run_beam, table, 2),
        "empty_two": partial(run_beam, empty, 2),
    }
    times = [{name: seconds(run) for name, run in variants.items()} for _ in range(repetitions + 1)]
    return {name: [each[name] for each in times[1:]] for name in variants}


def peak_megabytes(run: Callable[[], None]) -> float:
    """Peak resident memory of a fresh process that runs `run`."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run_and_weigh, (run,))


def _run_and_weigh(run: Callable[[], None]) -> float:
    pa.set_cpu_count(1)
    run()
    # Not ru_maxrss, which a new process takes over from the one that starts it.
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--row-groups", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=7)
    args = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        table = write_table(Path(folder) / "table", args.rows, args.row_groups)
        empty = write_table(Path(folder) / "empty", 0, 1)
        times = {name: np.array(each) for name, each in measure(table, empty, args.repetitions).items()}
        memory = [peak_megabytes(partial(run_beam, table, workers)) for workers in (1, 2)]

    one, two = times["one"] - times["empty_one"], times["two"] - times["empty_two"]
    report = Table(title=f"{args.rows:,} rows x 2, {args.row_groups} row groups, {PASSES} passes a pipeline")
    for heading in ("one pass", "median", "fastest", "target"):
        report.add_column(heading, justify="left" if heading == "one pass" else "right")

    def add(name: str, values: np.ndarray, unit: str = "s", target: str = "") -> None:
        report.add_row(name, f"{median(values):.3f} {unit}", f"{min(values):.3f} {unit}", target)

    add("plain loop", times["plain"] / PASSES)
    add("embedded runner, one thread", one / PASSES)
    add("embedded runner, two threads", two / PASSES)
    add("a round on an empty table, one thread", times["empty_one"] / PASSES)
    add("a round on an empty table, two threads", times["empty_two"] / PASSES)
    report.add_section()
    report.add_row("one thread / plain loop", f"{median(one / times['plain']):.2f}", "", "<= 1.15")
    report.add_row("the same, rounds' fixed cost included", f"{median(times['one'] / times['plain']):.2f}")
    report.add_row("one thread / two threads", f"{median(one / two):.2f}", "", ">= 1.6")
    report.add_row("the same, rounds' fixed cost included", f"{median(times['one'] / times['two']):.2f}")
    report.add_row("peak memory, one thread", f"{memory[0]:.0f} MB", "", "< 1000 MB")
    report.add_row("peak memory, two threads", f"{memory[1]:.0f} MB", "", "< 1000 MB")
    Console().print(report)


if __name__ == "__main__":
    main()
