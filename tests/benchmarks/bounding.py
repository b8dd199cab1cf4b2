"""Measure what bounding units costs against a plain pass over the same rows: processor time of one process.

A plain pass reads two columns and quantizes them. Bounding also reads the units, splits the rows by shard,
and makes the record of each unit. Reading the column of units is shown by itself, since no way of bounding
can do without it: the last column is the ratio to a pass that reads them, too. The best of several
repetitions is shown. A second table has rows a second of processor time, beside those of peers that keep one
row of each unit; see `tests.benchmarks.bounding_peers`. Run by `make bench-pass`.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from core.domain import Grid
from core.rounds import Block
from tests.benchmarks.bounding_peers import BOUNDING, DUCKDB
from tests.benchmarks.peer_process import NotThere
from transforms.bound_units import Bounding, bound_in_memory
from transforms.open_source import Source, open_source
from transforms.read_batches import read_batches
from transforms.read_blocks import list_row_groups, read_in_memory

GRID = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-20)
SALT = bytes(range(16))


def write(folder: Path, rows: int, per_unit: int, text: bool) -> str:
    """Write rows of random units of about `per_unit` rows each; return the path."""
    random = np.random.default_rng(0)
    units = random.integers(0, max(1, rows // per_unit), rows)
    column = pa.array([f"user-{unit:010d}" for unit in units]) if text else pa.array(units)
    table = pa.table({"unit": column, "x": random.random(rows), "y": random.random(rows)})
    path = folder / f"{per_unit}-{text}.parquet"
    pq.write_table(table, path, row_group_size=500_000)
    return str(path)


def nanoseconds(run: Callable[[], object], rows: int, repetitions: int) -> float:
    """Return the least processor time of a row."""
    times = []
    for _ in range(repetitions):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return 1e9 * min(times) / rows


def count(blocks: Callable[..., Iterator[Block]], source: Source, how: Grid | Bounding) -> int:
    """Make all blocks and keep none; return their number."""
    return sum(1 for _ in blocks(source, how))


def units(source: Source) -> int:
    """Read the column of units and keep none; return the number of batches."""
    groups = [group for file in source.files for group in list_row_groups(file)]
    read = (read_batches(group.file, group.row_group or 0, (), 1 << 17, source.unit) for group in groups)
    return sum(1 for batches in read for _ in batches)


def peers(path: str, rows: int, repetitions: int) -> list[str]:
    """Return thousands of rows a second: DuckDB in two ways, and PipelineDP."""
    table = pq.read_table(path)
    columns = {name: table.column(name) for name in table.column_names}
    figures = []
    for peer, ways in ((DUCKDB, 2), (BOUNDING, 1)):
        try:
            figures += [
                f"{rows / run['seconds'] / 1e3:,.0f}" for run in peer.run(columns, {"runs": repetitions})
            ]
        except NotThere as error:
            figures += [str(error)] * ways
    return figures


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    pa.set_cpu_count(1)
    table = Table(title=f"Bounding units, {args.rows:,} rows of two columns: nanoseconds a row")
    steps = ("plain pass", "reading units", "bounding")
    for header in ("unit", "rows of a unit", *steps, "to plain", "to both"):
        table.add_column(header, justify="right")
    beside = Table(title="Thousands of rows a second of the processor")
    for header in ("unit", "rows of a unit", "Shoal", "DuckDB, any row", "DuckDB, least hash", "PipelineDP"):
        beside.add_column(header, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for text in (False, True):
            for per_unit in (1, 10, 1000):
                path = write(Path(folder), args.rows, per_unit, text)
                bare, source = open_source(path, ["x", "y"]), open_source(path, ["x", "y"], "unit")
                bounding = Bounding.of(source, GRID, "one", SALT)
                plain = nanoseconds(partial(count, read_in_memory, bare, GRID), args.rows, args.repetitions)
                reading = nanoseconds(partial(units, source), args.rows, args.repetitions)
                bound = nanoseconds(
                    partial(count, bound_in_memory, source, bounding), args.rows, args.repetitions
                )
                kind = "text" if text else "integer"
                figures = [f"{each:.0f}" for each in (plain, reading, bound)]
                ratios = f"{bound / plain:.1f}", f"{bound / (plain + reading):.1f}"
                table.add_row(kind, str(per_unit), *figures, *ratios)
                others = peers(path, args.rows, args.repetitions)
                beside.add_row(kind, str(per_unit), f"{1e6 / bound:,.0f}", *others)
    Console(width=100).print(table, beside)


if __name__ == "__main__":
    main()
