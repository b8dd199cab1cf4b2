"""Measure k-means and k-median: cost against the best non-private solution, on blobs and on real data.

All noise is the real one. Ratio: cost of the released centers over that of scikit-learn's
KMeans(n_init=10) on the same clipped points; for k-median, over the best of several non-private
descents. Beside it diffprivlib's k-means, live at the same nominal epsilon 1, and what its noise really
costs then (`tests.benchmarks.diffprivlib_peer`). Run by `make bench-centers`.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans as NonPrivate
from sklearn.datasets import make_blobs

from core.budget import Budget
from core.centers.params import KMeans, KMedian
from core.centers.solver import Solver, squared_distances
from core.centers.task import K_MEANS, K_MEDIAN
from core.domain import Ball, Grid
from core.neighbors import Neighbors
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise, secret_salt
from tests.benchmarks.diffprivlib_peer import NotThere, fit, real_epsilon

BUDGET = Budget(1.0, 1e-6)
NEIGHBORS = Neighbors("add_or_remove_one")
ROWS_A_BLOCK = 20_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """A row of the table.

    Args:
        name: of the data.
        k: how many centers.
        grid: the public domain.
        load: reads the points, data units, from the folder of real data.
        at_most: the ratio to reach.
        peers: published or measured ratios of others at the same epsilon, which are not run here.
    """

    name: str
    k: int
    grid: Grid
    load: Callable[[Path], Floats]
    at_most: float
    peers: str = ""


def blobs(d: int) -> Floats:
    """100,000 points about ten centers of norm 0.8 u^(1/d), standard deviation 0.1 / sqrt(d) an axis."""
    rng = np.random.default_rng(d)
    gauss, u = rng.normal(size=(10, d)), rng.uniform(size=(10, 1))
    centers = 0.8 * gauss / np.linalg.norm(gauss, axis=1, keepdims=True) * u ** (1 / d)
    points, _ = make_blobs(100_000, centers=centers, cluster_std=0.1 / np.sqrt(d), random_state=7)
    return np.asarray(points)


def unit_ball(d: int) -> Grid:
    """The unit ball with a step of 2^-14."""
    return Grid((-1.0,) * d, (1.0,) * d, 2.0**-14, Ball((0.0,) * d, 1.0))


def columns(name: str, *names: str) -> Callable[[Path], Floats]:
    """Read columns of one of the real datasets."""

    def load(folder: Path) -> Floats:
        table = pq.read_table(folder / f"{name}.parquet", columns=list(names))
        return np.stack([table[c].to_numpy() for c in names], axis=1).astype(np.float64)

    return load


CITIES = Grid((-90.0, -180.0), (90.0, 180.0), 0.001, Ball((0.0, 0.0), 202.0))
PIXELS = Grid((0.0,) * 784, (255.0,) * 784, 1.0, Ball((0.0,) * 784, 3570.0))

MEANS = [
    Data(
        "blobs d=2", 10, unit_ball(2), lambda _: blobs(2), 1.03, "1.10 OpenDP, 1.55 Google",
    ),
    Data("blobs d=10", 10, unit_ball(10), lambda _: blobs(10), 1.10, "2.6 Google"),
    Data("blobs d=100", 10, unit_ball(100), lambda _: blobs(100), 1.03, "1.09 Google"),
    Data(
        "geo_cities", 8, CITIES, columns("geo_cities", "lat", "lon"), 1.08, "1.23 Google"
    ),
    Data(
        "skin", 4, Grid((0.0,) * 3, (255.0,) * 3, 1.0), columns("skin", "b", "g", "r"), 1.03,
        "1.12 Google",
    ),
    Data(
        "letter", 26, Grid((0.0,) * 16, (15.0,) * 16, 1.0), columns("letter", *(f"f{i}" for i in range(16))),
        1.25, "1.50 Google",
    ),
    Data(
        "mnist", 10, PIXELS, columns("mnist", *(f"p{i}" for i in range(784))), 1.05,
        "1.13 Google",
    ),
]  # fmt: skip
MEDIANS = [
    Data("blobs d=2", 10, unit_ball(2), lambda _: blobs(2), 1.10),
    Data("blobs d=10", 10, unit_ball(10), lambda _: blobs(10), 1.10),
    Data("geo_cities", 8, CITIES, columns("geo_cities", "lat", "lon"), 1.10),
]


def cost(points: Floats, centers: Floats, power: int) -> float:
    """Sum of distance^power to the nearest center."""
    parts = (points[i : i + ROWS_A_BLOCK] for i in range(0, len(points), ROWS_A_BLOCK))
    return float(sum((squared_distances(p, centers).min(axis=1) ** (power / 2)).sum() for p in parts))


def best_known(points: Floats, k: int, power: int) -> float:
    """Cost of a good non-private solution."""
    if power == 2:
        return float(NonPrivate(k, n_init=10, random_state=0).fit(points).inertia_)
    costs = []
    for seed in range(5):
        sample = points[np.random.default_rng(seed).choice(len(points), 5000, replace=False)]
        start = Solver(1).centers(sample, np.ones(len(sample)), k)
        found = Solver(1, iterations=20).descend(points, np.ones(len(points)), start)
        costs.append(cost(points, found, 1))
    return min(costs)


def private(data: Data, steps: NDArray[np.int64], power: int, iterations: int | None) -> tuple[Floats, float]:
    """Return centers of one run, in memory and in blocks, and its seconds."""
    start = time.perf_counter()
    if power == 2:
        means = KMeans(data.k, iterations=iterations)
        plan = K_MEANS.plan(data.grid, means, BUDGET, NEIGHBORS, secret_salt())
    else:
        medians = KMedian(data.k, iterations=iterations)
        plan = K_MEDIAN.plan(data.grid, medians, BUDGET, NEIGHBORS, secret_salt())
    blocks = [
        Block(steps[i : i + ROWS_A_BLOCK], np.arange(i, min(len(steps), i + ROWS_A_BLOCK), dtype=np.uint64))
        for i in range(0, len(steps), ROWS_A_BLOCK)
    ]
    found = run_in_memory(plan.rounds, blocks, plan.start, SecureNoise()).result(data.grid)
    return np.array(found.centers), time.perf_counter() - start


def peer(data: Data, points: Floats, least: float, runs: int) -> tuple[str, str]:
    """Return diffprivlib's median ratio at a nominal epsilon of 1, and what it spends; or why it has none."""
    try:
        found, iterations = fit(points, data.grid, data.k, BUDGET.epsilon, runs)
    except NotThere as error:
        print(f"{data.name}: {error}", flush=True)
        return "skipped", ""
    ratios = [cost(points, centers, 2) / least for centers in found]
    return f"{np.median(ratios):.3f}", f"{real_epsilon(data.grid, BUDGET.epsilon, iterations):.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer-runs", type=int, default=3, help="of diffprivlib; 0 leaves it out")
    parser.add_argument("--only", default="", help="names of data to run, separated by commas")
    parser.add_argument("--iterations", type=int, help="noisy averages of a run, if not those of the task")
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    args = parser.parse_args()
    table = Table(
        title=f"k centers at epsilon 1, delta 1e-6, add_or_remove_one: cost / non-private, {args.runs} runs"
    )
    for column in (
        "task", "data", "n", "d", "k", "median", "worst", "at most", "seconds",
        "diffprivlib", "its epsilon", "peers (quoted)",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column in ("task", "data", "peers (quoted)") else "right")
    chosen = set(args.only.split(",")) if args.only else None
    for power, data in [*((2, m) for m in MEANS), *((1, m) for m in MEDIANS)]:
        if chosen is not None and data.name not in chosen:
            continue
        task = "k_means" if power == 2 else "k_median"
        try:
            values = data.load(Path(args.data))
        except FileNotFoundError:
            print(f"{task} {data.name}: skipped, set SHOAL_DATA to the folder of real datasets", flush=True)
            continue
        steps = data.grid.quantize(values)
        points = data.grid.restore(steps)
        least = best_known(points, data.k, power)
        runs = [private(data, steps, power, args.iterations) for _ in range(args.runs)]
        ratios = np.array([cost(points, centers, power) for centers, _ in runs]) / least
        seconds = float(np.median([s for _, s in runs]))
        live = peer(data, points, least, args.peer_runs) if power == 2 and args.peer_runs else ("", "")
        row = (
            task, data.name, f"{len(points):,}", str(points.shape[1]), str(data.k),
            f"{np.median(ratios):.4f}", f"{ratios.max():.4f}", f"{data.at_most:g}", f"{seconds:.1f}",
            *live, data.peers,
        )  # fmt: skip
        table.add_row(*row)
        print(*row, flush=True)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
