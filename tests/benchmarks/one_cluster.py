"""Measure 1-cluster: success over trials on planted balls, and the alternatives on the same data.

A trial succeeds when a ball is released that truly holds at least 0.9 t points, with a radius of at
most w times the planted one. All noise is the real one. Run by `make bench-one-cluster`.
"""

import argparse
import itertools
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.spatial import cKDTree

from core.budget import Budget
from core.domain import Grid
from core.draws import Laplace
from core.mechanisms.above_threshold import AboveThreshold
from core.neighbors import Neighbors
from core.one_cluster.found import Found
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.locate import Located
from core.one_cluster.practical.refine import FitRadius
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise, secret_salt

BUDGET = Budget(1.0, 1e-6)
NEIGHBORS = Neighbors("add_or_remove_one")
STEP = 2.0**-16


@dataclass(frozen=True)
class Row:
    """One row of the table: a planted ball and how tightly it must be found."""

    n: int
    d: int
    t: int
    r: float
    w: float
    epsilon: float = 1.0

    @property
    def grid(self) -> Grid:
        """The unit cube with step 2^-16."""
        return Grid((0.0,) * self.d, (1.0,) * self.d, STEP)


ROWS = [
    Row(10_000, 2, 400, 0.01, 1.5),
    Row(10_000, 2, 800, 0.01, 1.25),
    Row(10_000, 5, 800, 0.02, 1.5),
    Row(20_000, 32, 2_000, 0.1, 2.0),
    Row(1_000_000, 2, 5_000, 0.01, 1.1),
]
LINE = Row(10_000, 1, 800, 0.002, 1.5)  # for the method that works on a line only
NEAR_THE_LIMIT = [
    Row(10_000, 2, 150, 0.01, 1.5),
    Row(10_000, 2, 200, 0.01, 1.5),
    Row(10_000, 2, 250, 0.01, 1.5),
    Row(10_000, 1, 150, 0.002, 1.5),
    Row(10_000, 3, 400, 0.02, 1.5),
    Row(10_000, 4, 400, 0.02, 1.5),
    Row(10_000, 5, 400, 0.02, 1.5),
    Row(10_000, 6, 500, 0.02, 1.5),
    Row(10_000, 2, 2_000, 0.01, 1.5, epsilon=0.1),
    Row(100_000, 2, 2_000, 0.01, 1.5, epsilon=0.1),
    Row(10_000, 32, 1_000, 0.1, 2.0),
    Row(20_000, 64, 2_000, 0.1, 2.0),
]
"""Targets that are hardly workable, on which the alternatives are not run."""

Ball = tuple[NDArray[np.float64], float]  # center and radius in data units
Method = Callable[[Row, NDArray[np.int64]], Ball | None]


def planted(row: Row, seed: int) -> NDArray[np.int64]:
    """Return t points uniform in a random ball, n - t uniform in the cube, on the grid."""
    rng = np.random.default_rng([row.n, row.d, row.t, seed])
    direction = rng.normal(size=(row.t, row.d))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    ball = direction * row.r * rng.uniform(size=(row.t, 1)) ** (1 / row.d)
    ball += rng.uniform(row.r, 1 - row.r, row.d)
    return row.grid.quantize(np.concatenate([ball, rng.uniform(size=(row.n - row.t, row.d))]))


def shoal(row: Row, points: NDArray[np.int64]) -> Ball | None:
    """Run the practical method, all rounds, in memory."""
    params = OneCluster(target=row.t)
    budget = Budget(row.epsilon, BUDGET.delta)
    plan = ONE_CLUSTER.plan(row.grid, params, budget, NEIGHBORS, secret_salt())
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    state = run_in_memory(plan.rounds, [block], plan.start, SecureNoise())
    if not isinstance(state, Found):
        return None
    return row.grid.restore(state.center), state.radius * STEP


def _fitted(row: Row, points: NDArray[np.int64], center: NDArray[np.int64], epsilon: float) -> Ball:
    """Fit a radius to `center` as the practical method does, over all radii of the cube."""
    plan = ONE_CLUSTER.plan(row.grid, OneCluster(target=row.t), BUDGET, NEIGHBORS, bytes(16))
    fit = plan.rounds[-1]
    assert isinstance(fit, FitRadius)
    fitted = AboveThreshold(
        what="radius", threshold_scale=2 / epsilon, query_scale=2 / epsilon, monotone=True
    )
    alone = replace(fit, target=row.t, radius=fitted, count=Laplace.of("count", epsilon, 1))
    everywhere = Located(center, row.grid.bounding_radius, fit.regions.levels[-1], center)
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    found = alone.release(alone.summarize(block, everywhere), everywhere, SecureNoise())
    assert isinstance(found, Found)
    return row.grid.restore(found.center), found.radius * STEP


def average(row: Row, points: NDArray[np.int64]) -> Ball | None:
    """Average everything privately (Nissim, Raskhodnikova and Smith 2007), then fit a radius."""
    noise, scale = SecureNoise(), row.d * (1 << 16) / 0.4
    total = noise.laplace(points.sum(axis=0), scale)
    count = int(noise.laplace(np.array([len(points)]), 10.0)[0])
    return _fitted(row, points, np.rint(total / max(1, count)).astype(np.int64), 0.5)


def coarse_grid(row: Row, points: NDArray[np.int64]) -> Ball | None:
    """Choose among balls about a coarse grid of centers with the exponential mechanism.

    The radius first: AboveThreshold over radii on the largest count, then the center.
    """
    per_axis = int(2 ** (13 / row.d))
    if per_axis < 2:
        return None  # no grid of centers fits into memory
    axis = (np.arange(per_axis) + 0.5) / per_axis * (1 << 16)
    centers = np.array(list(itertools.product(axis, repeat=row.d)))
    tree, noise = cKDTree(points), SecureNoise()

    def counts(radius: float) -> NDArray[np.int64]:
        return np.asarray(tree.query_ball_point(centers, radius, return_length=True), dtype=np.int64)

    bar = round(0.95 * row.t) + int(noise.laplace(np.zeros(1, dtype=np.int64), 4.0)[0])
    for exponent in np.arange(6, 18, 0.25):
        inside = counts(2.0**exponent)
        if int(noise.laplace(inside.max(keepdims=True), 4.0)[0]) >= bar:
            return row.grid.restore(centers[noise.select(inside, 2.0)]), 2.0**exponent * STEP
    return None


def thresholds(row: Row, points: NDArray[np.int64]) -> Ball | None:
    """Answer all thresholds on a line by a binary tree of noisy counts; the shortest interval wins."""
    if row.d != 1:
        return None
    levels, noise = 17, SecureNoise()
    counts = np.bincount(points[:, 0], minlength=1 << 16)[: 1 << 16].astype(np.int64)
    prefix = np.zeros((1 << 16) + 1)
    for level in range(levels):
        width = 1 << level
        nodes = noise.laplace(counts.reshape(-1, width).sum(axis=1), float(levels))
        ends = np.arange(1, (1 << 16) + 1)
        taken = (ends >> level) & 1 == 1  # the node of this level in the canonical cover of [0, end)
        prefix[1:][taken] += nodes[(ends[taken] >> level) - 1]
    low, best = 0, (1 << 16, 0)
    for high in range(len(prefix)):
        while prefix[high] - prefix[low] >= row.t and low < high:
            best = min(best, (high - low, low))
            low += 1
    return np.array([(best[1] + best[0] / 2) * STEP]), best[0] / 2 * STEP


METHODS: dict[str, Method] = {
    "shoal": shoal,
    "private average of everything": average,
    "exponential mechanism on a coarse grid": coarse_grid,
    "private thresholds (d=1)": thresholds,
}


def trial(name: str, row: Row, seed: int) -> tuple[bool, float, float, float]:
    """Return success, radius over planted radius, share of t inside, seconds."""
    points = planted(row, seed)
    start = time.perf_counter()
    ball = METHODS[name](row, points)
    seconds = time.perf_counter() - start
    return *judge(row, points, ball), seconds


def judge(row: Row, points: NDArray[np.int64], ball: Ball | None) -> tuple[bool, float, float]:
    """Return success of a ball, radius over planted radius, share of t inside."""
    if ball is None:
        return False, math.nan, math.nan
    distance = np.linalg.norm(row.grid.restore(points) - ball[0], axis=1)
    share = float((distance <= ball[1] + 1e-9).sum()) / row.t
    factor = ball[1] / row.r
    return bool(share >= 0.9 and factor <= row.w), factor, share


@cache
def cities(path: str) -> tuple[NDArray[np.float64], float]:
    """Return the cities and the radius of the best ball of 3,000 about one of them."""
    table = pq.read_table(path, columns=["lat", "lon"])
    points = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    tree = cKDTree(points)
    parts = (points[i : i + 2000] for i in range(0, len(points), 2000))
    return points, min(float(tree.query(part, k=[3000])[0].min()) for part in parts)


def cities_trial(path: str, seed: int) -> tuple[bool, float, float, float]:
    """Run on real points: success is a radius of at most 1.3 times the best, with 0.9 t inside."""
    points, best = cities(path)
    row = Row(len(points), 2, 3000, best, 1.3)
    grid = Grid((-90.0, -180.0), (90.0, 180.0), 0.001)
    start = time.perf_counter()
    plan = ONE_CLUSTER.plan(grid, OneCluster(target=row.t), BUDGET, NEIGHBORS, secret_salt())
    block = Block(grid.quantize(points), np.arange(row.n, dtype=np.uint64))
    state = run_in_memory(plan.rounds, [block], plan.start, SecureNoise())
    seconds = time.perf_counter() - start
    if not isinstance(state, Found):
        return False, math.nan, math.nan, seconds
    distance = np.linalg.norm(points - grid.restore(state.center), axis=1)
    radius = state.radius * grid.step
    share, factor = float((distance <= radius).sum()) / row.t, radius / best
    return share >= 0.9 and factor <= row.w, factor, share, seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    parser.add_argument("--methods", default=",".join(METHODS), help="which run, apart by commas")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    methods = args.methods.split(",")
    table = Table(title=f"1-cluster at delta 1e-6: {args.trials} trials a row")
    for column in (
        "method",
        "epsilon",
        "n",
        "d",
        "t",
        "w",
        "success",
        "radius/planted",
        "inside/t",
        "seconds",
    ):
        table.add_column(column, justify="left" if column == "method" else "right")
    with ProcessPoolExecutor(args.workers) as pool:
        for row, name in itertools.product([*ROWS, LINE], methods):
            if (name == "private thresholds (d=1)") != (row is LINE) and name != "shoal":
                continue
            trials = args.trials if name == "shoal" or row.n < 1_000_000 else min(10, args.trials)
            jobs = [pool.submit(trial, name, row, seed) for seed in range(trials)]
            _report(table, name, row, [job.result() for job in jobs])
        for row in NEAR_THE_LIMIT:
            jobs = [pool.submit(trial, "shoal", row, seed) for seed in range(args.trials)]
            _report(table, "shoal", row, [job.result() for job in jobs])
        path = Path(args.data) / "geo_cities.parquet"
        if args.data and path.exists():
            row = Row(144_563, 2, 3000, math.nan, 1.3)
            runs = [pool.submit(cities_trial, str(path), seed) for seed in range(args.trials)]
            _report(table, "shoal on geo_cities", row, [job.result() for job in runs])
    Console(width=140).print(table)
    if not (args.data and path.exists()):
        print("geo_cities: skipped, set SHOAL_DATA to the folder that holds geo_cities.parquet")


def _report(table: Table, name: str, row: Row, runs: list[tuple[bool, float, float, float]]) -> None:
    columns = np.array(runs, dtype=float)
    factor, share, seconds = (np.nanmedian(c) if not np.isnan(c).all() else math.nan for c in columns.T[1:])
    success = f"{int(columns[:, 0].sum())}/{len(runs)}"
    table.add_row(
        name, f"{row.epsilon:g}", f"{row.n:,}", str(row.d), f"{row.t:,}", f"{row.w:g}", success,
        f"{factor:.3g}", f"{share:.3f}", f"{seconds:.2f}",
    )  # fmt: skip
    print(name, row, success, f"{factor:.3g}", f"{share:.3f}", f"{seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
