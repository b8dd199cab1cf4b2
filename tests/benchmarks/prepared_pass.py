"""Measure processor time of a pass over prepared rows, against a pass over the columns as they are.

The pass is that of `tests.benchmarks.pass_cost`, in a plain loop in this process. Each repetition times every
variant back to back, and medians are shown, so that ratios are of neighbors in time. Run by
`make bench-pass`.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import tempfile
import time
from functools import reduce
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from tests.benchmarks.pass_cost import CENTER, GRID, ROUNDS
from transforms.open_source import Source, open_source
from transforms.parse_expression import parse_expression
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_blocks import read_in_memory


def prepared(where: str | None, **derive: str) -> Preparation:
    """Return a preparation without a join."""
    derived = tuple((name, parse_expression(text)) for name, text in derive.items())
    return Preparation(None if where is None else parse_expression(where), derived)


VARIANTS: dict[str, tuple[tuple[str, str], Preparation]] = {
    "x and y as they are": (("x", "y"), AS_THEY_ARE),
    "where amount > 0 (of nearly all rows)": (("x", "y"), prepared("amount > -9")),
    "where country == 'DE' (a quarter)": (("x", "y"), prepared("country == 'DE'")),
    "derive x / 2, hour(time) / 24": (("a", "b"), prepared(None, a="x / 2", b="hour(time) / 24")),
    "where country and amount, derive x / 2, hour(time) / 24": (
        ("a", "b"),
        prepared("country in ['DE', 'FR'] and amount > 0", a="x / 2", b="hour(time) / 24"),
    ),
    "where amount > -9, derive x / 2, y / 2": (("a", "b"), prepared("amount > -9", a="x / 2", b="y / 2")),
}


def write_rows(path: Path, rows: int) -> None:
    """Write rows of points, an amount, a country and a time."""
    rng = np.random.default_rng(0)
    x, y, amount = rng.normal([[0.5], [0.5], [1.0]], [[0.1], [0.1], [1.0]], (3, rows))
    country = rng.choice(["DE", "FR", "IT", "US"], rows)
    when = pa.array(rng.integers(10**15, 2 * 10**15, rows), pa.timestamp("us"))
    table = {"x": x, "y": y, "amount": amount, "country": country, "time": when}
    pq.write_table(pa.table(table), path, row_group_size=1 << 19)


def seconds(source: Source) -> float:
    """Return the processor time of a pass."""
    began = time.process_time()
    reduce(
        lambda one, other: one + other,
        (ROUNDS[0].summarize(block, CENTER) for block in read_in_memory(source, GRID)),
    )
    return time.process_time() - began


def main() -> None:
    """Show the time of each variant, per row and against the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repetitions", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, given.rows)
        sources = {
            name: open_source(str(path), columns, preparation=preparation)
            for name, (columns, preparation) in VARIANTS.items()
        }
        found: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(given.repetitions):
            for name, source in sources.items():
                found[name].append(seconds(source))
    shown = Table("a pass over", "ns of processor a row", "against the first")
    first = found[next(iter(found))]
    for name, times in found.items():
        ratio = median(one / other for one, other in zip(times, first, strict=True))
        shown.add_row(name, f"{median(times) / given.rows * 1e9:.0f}", f"{ratio:.2f}")
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
