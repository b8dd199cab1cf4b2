"""Table 1 of the 1-cluster's paper: radius factor and smallest target of each method, on planted balls."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.budget import Budget
from core.cdf.params import Cdf
from core.cdf.task import CDF
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block, run_in_memory
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.task import SAMPLE_AND_AGGREGATE
from core.secure_noise import SecureNoise, secret_salt
from tests.benchmarks import one_cluster
from tests.benchmarks.one_cluster import Ball, Row
from tests.benchmarks.papers.panel import Effort, Panel

RADII = {1: 0.002, 2: 0.01}
"""Planted radius by dimension, in the unit cube."""
TARGETS = tuple(round(25 * 2 ** (i / 2)) for i in range(14))
PARTS = (0.51, 0.6, 0.7, 0.8, 0.9)
"""Targets of the method that needs a majority, as parts of all records."""


def majority(row: Row, points: NDArray[np.int64]) -> Ball | None:
    """Release the center of attention of all records, then fit a radius to it.

    This is the private aggregation of Nissim, Raskhodnikova and Smith (2007), each record an answer.
    """
    params = SampleAndAggregate(row.n, "center_of_attention", row.t / row.n)
    budget = Budget(row.epsilon / 2, one_cluster.BUDGET.delta)
    plan = SAMPLE_AND_AGGREGATE.plan(row.grid, params, budget, one_cluster.NEIGHBORS, secret_salt())
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    found = run_in_memory(plan.rounds, [block], plan.start, SecureNoise())
    if not isinstance(found, Stable):
        return None
    return row.grid.restore(found.value), _radius(row, points, found.value, row.epsilon / 2)


def _radius(row: Row, points: NDArray[np.int64], center: NDArray[np.int64], epsilon: float) -> float:
    """Return the first radius about a center that holds about the target, by AboveThreshold."""
    noise, scale, none = SecureNoise(), 2 / epsilon, np.zeros(1, dtype=np.int64)
    distances = np.sort(np.linalg.norm(points - center, axis=1))
    bar = round(0.95 * row.t) + int(noise.laplace(none, scale)[0])
    for radius in 2.0 ** np.arange(4, 18, 0.25):
        inside = np.searchsorted(distances, radius, side="right")
        if int(noise.laplace(none + inside, scale)[0]) >= bar:
            return float(radius) * one_cluster.STEP
    return row.grid.bounding_radius * one_cluster.STEP


def all_thresholds(row: Row, points: NDArray[np.int64]) -> Ball | None:
    """Take the shortest interval that holds the target by private cumulative counts of all values.

    The counts are those of the task `cdf`, which is simpler than what the paper refers to.
    """
    plan = CDF.plan(row.grid, Cdf(), one_cluster.BUDGET, one_cluster.NEIGHBORS, secret_salt())
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    state = run_in_memory(plan.rounds, [block], plan.start, SecureNoise())
    below = np.concatenate([[0], state.counts])
    ends = np.searchsorted(below, below + row.t)  # for each start, where the count first is enough
    starts = np.flatnonzero(ends < len(below))
    if not len(starts):
        return None
    low = starts[np.argmin(ends[starts] - starts)]
    center, radius = (low + ends[low] - 1) / 2, (ends[low] - 1 - low) / 2
    return np.array([center * one_cluster.STEP]), max(radius, 0.5) * one_cluster.STEP


@dataclass(frozen=True)
class Method:
    """A row of the table: what the paper says of it, how it is run, and which balls count as found.

    Args:
        name: of the method.
        stated_target: order of the targets that it serves, as the paper states it.
        stated_factor: order of the radius over that of the smallest ball.
        run: releases a ball, or nothing.
        dimensions: where it can run.
        widest: most times the planted radius that counts as found.
        majority: whether it serves targets above half of the records alone.
    """

    name: str
    stated_target: str
    stated_factor: str
    run: Callable[[Row, NDArray[np.int64]], Ball | None]
    dimensions: tuple[int, ...] = (1, 2)
    widest: float = 4.0
    majority: bool = False


METHODS = (
    Method("private aggregation", "0.51 n, d²/ε² · log² |X|", "√d / ε", majority, widest=64.0, majority=True),
    Method(
        "exponential mechanism, coarse grid", "d log |X| / ε", "1",
        one_cluster.METHODS["exponential mechanism on a coarse grid"],
    ),
    Method(
        "all thresholds", "2^(log* |X|) / ε · log 1/δ", "1",
        all_thresholds, (1,),
    ),
    Method("1-cluster, `practical`", "√d / ε · 2^(log* |X| d)", "√(log n)", one_cluster.METHODS["shoal"]),
)  # fmt: skip


def smallest(method: Method, d: int, effort: Effort) -> tuple[int, float] | None:
    """Return the first target that nine trials in ten find, and the median radius factor there."""
    n = effort.records
    targets = [round(part * n) for part in PARTS] if method.majority else [t for t in TARGETS if t <= n // 2]
    for target in targets:
        row, factors, misses = Row(n, d, target, RADII[d], method.widest), [], 0
        for seed in range(effort.trials):
            points = one_cluster.planted(row, seed)
            good, factor, _ = one_cluster.judge(row, points, method.run(row, points))
            factors.append(factor)
            misses += not good
            if misses > effort.trials / 10:
                break
        else:
            return target, float(np.nanmedian(factors))
    return None


def published() -> tuple[str, str]:
    """Return smallest target and promised radius factor of the published constants, in the plane."""
    grid, relation = Row(0, 2, 0, 0.0, 0.0).grid, Neighbors("replace_one")
    budget = one_cluster.BUDGET
    plan = ONE_CLUSTER.plan(grid, OneCluster(10**12, method="paper"), budget, relation, secret_salt())
    return (
        f"{plan.smallest_target or math.inf:,} (promised)",
        f"{plan.promises['radius_factor']:,.0f} (promised)",
    )


def table_1(effort: Effort) -> Iterator[Panel]:
    """Measure every method on a line and in the plane."""
    rows = []
    for method in METHODS:
        for d in method.dimensions[: effort.panels]:
            found = smallest(method, d, effort)
            cells = ("none", "") if found is None else (f"{found[0]:,}", f"{found[1]:.2f}")
            rows.append([method.name, str(d), method.stated_target, cells[0], method.stated_factor, cells[1]])
    target, factor = published()
    stated = METHODS[-1].stated_target, METHODS[-1].stated_factor
    rows.append(["1-cluster, `paper`", "2", stated[0], target, stated[1], factor])
    header = (
        "method",
        "d",
        "target, stated order",
        "smallest target",
        "radius, stated order",
        "radius / planted",
    )
    yield Panel("one-cluster", header, rows)
