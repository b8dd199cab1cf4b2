"""Measure outlier screening: a private cover of most rows, against the same procedure without noise.

Of the labelled outliers, what share is outside the cover, and of the other rows what share inside? The
labels take no part in the search. All noise is the real one; the twin runs the same rounds at the same target
with every noise scale at zero, thresholds included. Domains are round numbers. Run by `make bench-centers`.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from core.balls import Balls
from core.budget import Budget
from core.domain import Grid
from core.k_cover.found import Cover
from core.k_cover.params import KCover
from core.k_cover.repeated import BallSearch
from core.k_cover.rounds import CoverRound
from core.k_cover.task import K_COVER
from core.mechanisms.choosing import Choosing
from core.neighbors import Neighbors
from core.rounds import Block, Round, run_in_memory
from core.secure_noise import SecureNoise, secret_salt
from tests.core.seeded import SeededNoise

BUDGET = Budget(1.0, 1e-6)
NEIGHBORS = Neighbors("add_or_remove_one")
WITHIN = 5.0  # points
_NONE = 1e-9  # a noise scale that rounds to no noise


@dataclass(frozen=True)
class Data:
    """A row of the table.

    Args:
        name: of the data and what is special.
        file: its file, without outlier_ and .parquet.
        columns: used columns.
        grid: the public domain.
        params: of the cover.
    """

    name: str
    file: str
    columns: tuple[str, ...]
    grid: Grid
    params: KCover


def _columns(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"f{i}" for i in range(first, last + 1))


SHUTTLE = Grid((-256.0,) * 9, (256.0,) * 9, 1.0)  # readings of a few dozen, and rare ones far out
UNIT = 2.0**-10
ROWS = [
    Data("shuttle", "shuttle", _columns(0, 8), SHUTTLE, KCover(1, coverage=0.9)),
    Data("shuttle", "shuttle", _columns(0, 8), SHUTTLE, KCover(3, coverage=0.9)),
    Data("thyroid, laboratory values", "thyroid", _columns(1, 5), Grid((0.0,) * 5, (1.0,) * 5, UNIT),
         KCover(1, coverage=0.8)),
    Data("thyroid, laboratory values", "thyroid", _columns(1, 5), Grid((0.0,) * 5, (1.0,) * 5, UNIT),
         KCover(2, coverage=0.85)),
    Data("thyroid, and age", "thyroid", _columns(0, 5), Grid((0.0,) * 6, (1.0,) * 6, UNIT),
         KCover(1, coverage=0.8)),
]  # fmt: skip


@cache
def load(folder: Path, data: Data) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the grid points and which of them are labelled as outliers."""
    table = pq.read_table(folder / f"outlier_{data.file}.parquet", columns=[*data.columns, "outlier"])
    values = np.stack([table[c].to_numpy() for c in data.columns], axis=1).astype(np.float64)
    return data.grid.quantize(values), table["outlier"].to_numpy() == 1


def silent(draw: Any) -> Any:
    """Return the draw with scales of zero."""
    scales = [each.name for each in fields(draw) if each.name.endswith("scale")]
    nothing = {"nothing": 1} if isinstance(draw, Choosing) else {}
    return replace(draw, **dict.fromkeys(scales, _NONE), **nothing)


def without_noise(step: Round) -> Round:
    """Return the round with noise scales of zero, and the thresholds that follow from them."""
    if not (isinstance(step, CoverRound) and isinstance(step.search, BallSearch)):
        return step
    draws = step.search.draws
    none = replace(
        draws,
        level=silent(draws.level),
        region=silent(draws.region),
        sums=tuple(map(silent, draws.sums)),
        counts=tuple(map(silent, draws.counts)),
        fit=silent(draws.fit),
        count=silent(draws.count),
    )
    return replace(step, search=replace(step.search, draws=none))


def shares(points: NDArray[np.int64], outlier: NDArray[np.bool_], cover: Cover) -> tuple[float, float]:
    """Return the percentages of outliers outside the cover and of others inside."""
    if not cover.balls:
        return 100.0, 0.0
    centers, radii = [ball.center for ball in cover.balls], [ball.radius for ball in cover.balls]
    held = Balls(np.stack(centers), np.array(radii)).hold(points)
    return 100 * float((~held[outlier]).mean()), 100 * float(held[~outlier].mean())


def measure(
    folder: Path, data: Data, runs: int, private: bool
) -> tuple[NDArray[np.float64], list[int], float]:
    """Return shape (runs, 2) percentages, the number of balls of each run, and seconds of one run."""
    points, outlier = load(folder, data)
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    found, balls, start = [], [], time.perf_counter()
    for _ in range(runs):
        plan = K_COVER.plan(data.grid, data.params, BUDGET, NEIGHBORS, secret_salt())
        rounds: Sequence[Round] = plan.rounds if private else [without_noise(step) for step in plan.rounds]
        noise = SecureNoise() if private else SeededNoise(0, factor=0)
        cover = run_in_memory(rounds, [block], plan.start, noise)
        found.append(shares(points, outlier, cover))
        balls.append(len(cover.balls))
    return np.array(found), balls, (time.perf_counter() - start) / runs


def main() -> None:
    """Print the table; exit code 1 where a median is further from the twin than it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    args = parser.parse_args()
    if not args.data:
        print("outlier_shuttle, outlier_thyroid: skipped, set SHOAL_DATA to the folder that holds them")
        return
    table = Table(title=f"Screening at epsilon 1, delta 1e-6: median (least to most) of {args.runs} runs")
    for header in (
        "data", "d", "k", "coverage", "balls", "% outliers outside", "twin", "% others inside", "twin",
        f"within {WITHIN:g}", "seconds",
    ):  # fmt: skip
        table.add_column(header, justify="left" if header == "data" else "right")
    kept = True
    for data in ROWS:
        runs, balls, seconds = measure(Path(args.data), data, args.runs, private=True)
        twins, _, _ = measure(Path(args.data), data, 3, private=False)
        median, twin = np.median(runs, axis=0), np.median(twins, axis=0)
        near = bool((np.abs(median - twin) <= WITHIN).all())
        kept &= near
        ranges = [
            f"{m:.1f} ({low:.1f} to {high:.1f})"
            for m, low, high in zip(median, runs.min(axis=0), runs.max(axis=0), strict=True)
        ]
        table.add_row(
            data.name, str(len(data.columns)), str(data.params.k), f"{data.params.coverage:g}",
            f"{min(balls)} to {max(balls)}", ranges[0], f"{twin[0]:.1f}", ranges[1], f"{twin[1]:.1f}",
            "yes" if near else "NO", f"{seconds:.2f}",
        )  # fmt: skip
    Console(width=170).print(table)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
