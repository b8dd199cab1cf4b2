"""Measure how often the intervals of quantiles hold the true ones all together, and how wide they are.

Each cell is a column, a number of rows, an epsilon and what is asked for; its runs have noise of their own on
the same rows. Some columns are made up; the real ones are drawn with replacement from `SHOAL_DATA`. An
interval holds its quantile if the ranks from those of its first point to those of its last have p n. Run by
`make bench-ordered`.
"""

import argparse
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.quantiles.exponential import ExponentialByRank
from core.quantiles.found import Promises
from core.quantiles.params import Median, Quantiles
from core.quantiles.recursive import Recursive
from core.task import Setting
from tests.core.seeded import SeededNoise
from tests.measured.cases import evenly, line

Ints = NDArray[np.int64]

MANY = (1, 3, 9, 49, 99)
ROWS = (500, 5_000, 200_000)
EPSILONS = (0.1, 1.0, 3.0)
MEDIAN = 0  # in place of a number of quantiles: the task `median` at 0.9
REAL = (
    ("adult", "capital_gain", 0, 100_000, 1),
    ("adult", "age", 0, 120, 1),
    ("adult", "fnlwgt", 0, 2_000_000, 1),
    ("flights_nyc13", "dep_delay", -120, 1500, 1),
    ("flights_nyc13", "air_time", 0, 1000, 1),
    ("flights_nyc13", "distance", 0, 5000, 1),
    ("checkins_gowalla", "lat", -90, 90, 0.001),
)


def columns(folder: Path | None, n: int) -> Iterator[tuple[str, Grid, Ints]]:
    """Return n rows of each column: its name, its universe, and sorted grid points."""
    rng, wide = np.random.default_rng(n), line(1 << 20)
    even, tied = rng.integers(0, 1 << 20, n), rng.random(n)
    clumps = np.where(tied < 0.5, 1 << 17, 1 << 19) + rng.integers(0, 1 << 14, n)
    yield "uniform", wide, np.sort(even)
    yield "ties of 50%", wide, np.sort(np.where(tied < 0.5, 1 << 19, even))
    yield "ties of 92%", wide, np.sort(np.where(tied < 0.92, 0, even))
    yield "heavy tails", wide, np.sort(np.minimum(500 * (1 + rng.pareto(0.8, n)), (1 << 20) - 1).astype(int))
    yield "two clumps", wide, np.sort(clumps)
    cents = np.minimum(np.exp(rng.normal(9, 2.5, n)), 2**31 - 1).astype(np.int64)
    yield "lognormal cents", line(1 << 31), np.sort(cents)
    for file, name, lower, upper, step in REAL if folder else ():
        values = pq.read_table(folder / f"{file}.parquet", columns=[name])[name].drop_null().to_numpy()
        values = values[np.isfinite(values)].astype(np.float64)
        grid = Grid((float(lower),), (float(upper),), step)
        yield name, grid, np.sort(grid.quantize(rng.choice(values, n)[:, None])[:, 0])


@dataclass(frozen=True)
class Measured:
    """What came out for a cell.

    Args:
        name: of the cell.
        held: share of the runs in which all intervals held.
        error: largest rank error of a run, at 90% of the runs, in rows.
        width: rows between the ends of an interval, median.
        promised: rank error.
        units: median length of an interval, as a part of that from the quantile at p n - promised to that at
            p n + promised; where these are beyond the rows, they are the ends of the domain.
    """

    name: str
    held: float
    error: float
    width: float
    promised: int
    units: float


def measured(grid: Grid, points: Ints, many: int, epsilon: float, relation: str, runs: int) -> Measured:
    """Run a cell; see `Measured`."""
    n, last = len(points), grid.extents[0]
    given, budget, neighbors = evenly(many) if many else (0.9,), Budget(epsilon, 0.0), Neighbors(relation)
    step: Any
    if many:
        method = Recursive(Setting(grid, Quantiles(given), budget, neighbors, bytes(16)))
        step, promises = method.in_one_pass(1.0), method.accuracy(1.0).promises
    else:
        one = ExponentialByRank(Setting(grid, Median(0.9), budget, neighbors, bytes(16)))
        step, promises = one.rounds(1.0)[0], one.accuracy(1.0).promises
    assert isinstance(promises, Promises) and promises.rank_error is not None
    counts, wanted, held, errors, widths, units = Counts.of(points), np.array(given) * n, [], [], [], []
    ranks = np.floor(wanted).astype(int)
    low, high = ranks - promises.rank_error, ranks + promises.rank_error
    around = np.where(high < n, points[np.minimum(high, n - 1)], last) - np.where(
        low >= 0, points[np.maximum(low, 0)], 0
    )
    for seed in range(runs):
        found = step.release(counts, None, SeededNoise(zlib.crc32(f"{many} {epsilon} {seed}".encode())))
        steps, ends = (found.steps, found.intervals) if many else ((found.step,), (found.interval,))
        lows, highs = np.array(ends).T
        held.append(
            np.all(
                (np.searchsorted(points, lows, "left") <= wanted)
                & (wanted <= np.searchsorted(points, highs, "right"))
            )
        )
        below, upto = (np.searchsorted(points, steps, side) for side in ("left", "right"))
        errors.append(np.maximum(0, np.maximum(below - wanted, wanted - upto)).max())
        between = np.searchsorted(points, highs, "left") - np.searchsorted(points, lows, "right")
        widths.append(np.maximum(0, between))
        units.append((highs - lows) / np.maximum(1, around))
    error = float(np.quantile(errors, 0.9, method="higher"))
    return Measured(
        "",
        float(np.mean(held)),
        error,
        float(np.median(widths)),
        promises.rank_error,
        float(np.median(units)),
    )


def cells(folder: Path | None, runs: int) -> dict[tuple[str, int, int], list[Measured]]:
    """Run all cells, and return them by relation, number of quantiles, and rows."""
    found: dict[tuple[str, int, int], list[Measured]] = {}
    for relation, sizes in (("add_or_remove_one", ROWS), ("replace_one", ROWS[1:2])):
        for n in sizes:
            for name, grid, points in columns(folder, n):
                for many in (MEDIAN, *MANY):
                    for epsilon in EPSILONS:
                        one = measured(grid, points, many, epsilon, relation, runs)
                        named = Measured(f"{name} epsilon={epsilon:g}", *list(vars(one).values())[1:])
                        found.setdefault((relation, many, n), []).append(named)
    return found


def table(found: dict[tuple[str, int, int], list[Measured]], runs: int) -> Table:
    """Return coverage and widths of the cells of each relation, number of quantiles, and rows."""
    shown = Table(title=f"intervals, {runs} runs a cell: held with all others; width in rows and in units")
    for header in (
        "relation",
        "quantiles",
        "rows",
        "cells",
        "held",
        "lowest",
        "width / twice the 90% error",
        "largest",
        "width / promise",
        "units / promise",
        "largest",
        "where lowest, where widest",
    ):
        shown.add_column(header, justify="left" if header in ("relation",) else "right")
    for (relation, many, n), several in sorted(found.items()):
        ratios = [one.width / max(1.0, 2 * one.error) for one in several]
        lowest, widest = min(several, key=lambda one: one.held), several[int(np.argmax(ratios))]
        units = [one.units for one in several]
        shown.add_row(
            relation,
            str(many or "median at 0.9"),
            f"{n:,}",
            str(len(several)),
            f"{np.mean([one.held for one in several]):.1%}",
            f"{lowest.held:.0%}",
            f"{np.median(ratios):.1f}",
            f"{max(ratios):.1f}",
            f"{np.median([one.width / one.promised for one in several]):.2f}",
            f"{np.median(units):.2f}",
            f"{max(units):.2f}",
            f"{lowest.name if lowest.held < 1 else ''}, {widest.name}",
        )
    return shown


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="of each cell")
    given, folder = parser.parse_args(), os.environ.get("SHOAL_DATA")
    Console(width=230).print(table(cells(Path(folder) if folder else None, given.runs), given.runs))


if __name__ == "__main__":
    main()
