"""Measure counts of rectangles against noisy grids, on real places and on made-up ones.

Errors are those of random rectangles of a given part of the domain's area, of random shapes and places. The
truth is exact. `flat` is a grid of 512 x 512 noisy cells. `uniform` is the uniform grid of Qardaji, Yang
and Li (ICDE 2013), which is given the exact number of rows. Both spend the whole budget on one histogram.
The noise is numpy's, of the same distribution as the real one. Run by `make bench-ordered`; places are read
from the folder that SHOAL_DATA names.
"""

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from core.budget import Budget
from core.domain import Grid, Points
from core.neighbors import Neighbors
from core.ranges.boxes import Boxes, Cells, Equal
from core.ranges.found import Asked, CountedCells
from core.ranges.params import Ranges
from core.ranges.task import RANGES
from core.rounds import Block, run_in_memory
from tests.core.seeded import SeededNoise

Floats = NDArray[np.float64]
Release = Callable[[int], CountedCells]

GRID = Grid((-90.0, -180.0), (90.0, 180.0), 0.01)
REAL = {"geo_cities": "geo_cities.parquet", "checkins_gowalla": "checkins_gowalla.parquet"}
SHARES = (1e-4, 1e-3, 1e-2, 1e-1)


def made_up(n: int = 100_000) -> Points:
    """Return 30 clumps of unequal size."""
    rng, extents = np.random.default_rng(30), np.array(GRID.extents)
    at = rng.choice(30, n, p=rng.dirichlet(np.ones(30)))
    points = (0.05 + 0.9 * rng.random((30, 2)))[at] + rng.normal(0, 0.02, (n, 2))
    return np.clip(points * extents, 0, extents).astype(np.int64)


def places(folder: Path | None) -> dict[str, Points]:
    """Return the records of each data set."""
    found = {"made_up": made_up()}
    for name, file in REAL.items() if folder is not None else ():
        table = pq.read_table(folder / file, columns=["lat", "lon"])
        values = np.stack([table[column].to_numpy() for column in ("lat", "lon")], axis=1)
        found[name] = GRID.quantize(values[np.isfinite(values).all(axis=1)].astype(np.float64))
    return found


def rectangles(share: float, count: int, seed: int) -> list[tuple[Points, Points]]:
    """Return first and last points of random rectangles."""
    rng, sizes = np.random.default_rng(seed), np.array(GRID.extents) + 1
    found = []
    for shape in np.exp(rng.uniform(-0.7, 0.7, count)):
        sides = np.minimum(math.sqrt(share) * np.array([shape, 1 / shape]), 0.95)
        first = np.floor(rng.random(2) * (1 - sides) * sizes).astype(np.int64)
        found.append((first, first + np.maximum(1, sides * sizes).astype(np.int64) - 1))
    return found


def noisy_grid(points: Points, side: int, epsilon: float) -> Release:
    """Return how a grid of equal cells is released."""
    boxes = Boxes.of(Equal.of(tuple(extent + 1 for extent in GRID.extents), side), np.arange(side**2 + 1))
    cells = Cells(boxes, np.ones((side**2, 2), dtype=np.int64))
    exact = np.bincount(cells.find(points), minlength=side**2)

    def release(seed: int) -> CountedCells:
        noisy = SeededNoise(seed).laplace(exact, 1 / epsilon)
        return CountedCells(cells, noisy, noisy, 1 / epsilon, 1 / epsilon, Asked((), 0.1))

    return release


def planned(points: Points, method: str, epsilon: float) -> Release:
    """Return how a method of the task releases."""
    params, neighbors = Ranges(method=method, records=100_000), Neighbors("add_or_remove_one")
    plan = RANGES.plan(GRID, params, Budget(epsilon, 0.0), neighbors, bytes(16))
    block = Block(points, np.arange(len(points), dtype=np.uint64))

    def release(seed: int) -> CountedCells:
        found: CountedCells = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(seed))
        return found

    return release


def main() -> None:
    """Print the median over runs of the mean absolute error of the rectangles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rectangles", type=int, default=100)
    args = parser.parse_args()
    folder = os.environ.get("SHOAL_DATA")
    table = Table(title="Mean error of a rectangle, in rows: median of runs")
    for header in (
        "data",
        "epsilon",
        "share of area",
        "rows in it",
        "flat",
        "uniform",
        "grid",
        "tree",
        "auto",
    ):
        table.add_column(header, justify="left" if header == "data" else "right")
    for name, points in places(Path(folder) if folder else None).items():
        asked = [rectangles(share, args.rectangles, seed) for seed, share in enumerate(SHARES)]
        true = [
            np.array([((points >= low) & (points <= high)).all(axis=1).sum() for low, high in each])
            for each in asked
        ]
        for epsilon in (1.0, 0.1):
            side = max(1, round(math.sqrt(len(points) * epsilon / 10)))
            releases = {
                "flat": noisy_grid(points, 512, epsilon),
                "uniform": noisy_grid(points, side, epsilon),
                "grid": planned(points, "grid", epsilon),
                "tree": planned(points, "tree", epsilon),
                "auto": planned(points, "auto", epsilon),
            }
            errors = {method: measured(make, asked, true, args.runs) for method, make in releases.items()}
            for at, share in enumerate(SHARES):
                figures = (f"{errors[method][at]:,.1f}" for method in releases)
                table.add_row(name, f"{epsilon:g}", f"{share:g}", f"{true[at].mean():,.0f}", *figures)
    Console(width=120).print(table)


def measured(
    release: Release, asked: list[list[tuple[Points, Points]]], true: list[Floats], runs: int
) -> Floats:
    """Return the median over runs of the mean absolute error of each list of rectangles."""
    errors = []
    for seed in range(runs):
        found = release(seed)
        errors.append(
            [
                np.mean(
                    [
                        abs(found.shares(*each) @ found.estimates - n)
                        for each, n in zip(some, truth, strict=True)
                    ]
                )
                for some, truth in zip(asked, true, strict=True)
            ]
        )
    return np.median(np.array(errors), axis=0)


if __name__ == "__main__":
    main()
