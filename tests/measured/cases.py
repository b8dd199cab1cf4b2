"""The grid of settings on which promises and automatic choices are measured: plain values, no tests."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.budget import Budget
from core.domain import Grid
from core.errors import InvalidValue
from core.grouping import Contributions
from core.neighbors import Neighbors
from core.plan import Plan
from pipelines.simulation.shapes import SHAPES
from pipelines.tasks import TASKS

SALT = b"sixteen secrets!"
EPSILONS = (0.1, 0.3, 1.0, 3.0)
RELATIONS = ("add_or_remove_one", "replace_one")


@dataclass(frozen=True)
class Case:
    """A setting of a task and the shape of the data. Only shape and number of records are private.

    Args:
        task: name of the task.
        grid: the universe.
        params: the task's parameters, without its choice of method.
        epsilon: of the budget.
        relation: the neighbor relation.
        shape: of the data.
        n: number of records.
        delta: of the budget.
        bounds: how many rows a unit has.
        kind: of records, if they are no plain rows; see `tests.measured.kinds`.
    """

    task: str
    grid: Grid
    params: Mapping[str, Any] = field(hash=False)
    epsilon: float
    relation: str
    shape: str
    n: int
    delta: float = 1e-6
    bounds: Contributions = field(default_factory=Contributions)
    kind: str = ""

    @property
    def name(self) -> str:
        """What tells the case from others, for people."""
        params = ",".join(f"{k}={_brief(v)}" for k, v in self.params.items())
        size = "x".join(str(extent + 1) for extent in self.grid.extents)
        asked = self.kind or self.task
        return f"{asked} {self.shape} n={self.n} eps={self.epsilon} {self.relation} {size} {params}"

    @property
    def choice(self) -> str | None:
        """The parameter that names the method; None where there is one method."""
        return TASKS[self.task].core.choice

    def methods(self) -> tuple[str, ...]:
        """Names of the task's methods."""
        task = TASKS[self.task].core
        return tuple(method.name for method in task.methods)

    def plan(self, method: str | None = None) -> Plan | None:
        """Plan a method, or `auto` where None is given; None where it refuses the setting."""
        core = TASKS[self.task].core
        given = dict(self.params) if method is None else {**self.params, core.choice: method}
        try:
            return core.plan(
                self.grid,
                core.params(**given),
                Budget(self.epsilon, self.delta),
                Neighbors(self.relation),
                SALT,
            )
        except InvalidValue:
            return None


def _brief(value: Any) -> str:
    return f"{len(value)} of them" if isinstance(value, tuple) and len(value) > 2 else str(value)


def line(points: int) -> Grid:
    """Return a universe of so many points on one axis."""
    return Grid((0.0,), (float(points - 1),), 1.0)


def cube(points: int, axes: int) -> Grid:
    """Return a universe of so many points on each of several axes."""
    return Grid((0.0,) * axes, (float(points - 1),) * axes, 1.0)


def evenly(count: int) -> tuple[float, ...]:
    """Return probabilities of `count` quantiles."""
    return tuple(i / (count + 1) for i in range(1, count + 1))


WIDTHS = (100, 1 << 20, 1 << 31)
RANGES = ((10, 20), (0, 49), (50, 99))


def grids_of(task: str) -> tuple[list[Grid], list[Mapping[str, Any]], list[int]]:
    """Return the universes, parameters and numbers of records of a task."""
    lines = [line(width) for width in WIDTHS]
    sizes = [500, 2_000, 30_000, 1_000_000]
    match task:
        case "quantiles":
            return lines, [{"probabilities": evenly(count)} for count in (1, 3, 9, 49, 99)], sizes
        case "bounds":
            return [*lines, cube(1 << 12, 2)], [{}, {"outside": 0.1}], sizes
        case "median":
            return [*lines, cube(1 << 12, 2)], [{}, {"quantile": 0.9}], sizes
        case "minimum":
            return lines, [{}, {"largest": True}], sizes
        case "cdf":
            return [line(100), line(1 << 12), line(1 << 16)], [{"ranges": RANGES}], sizes
        case "ranges":
            return [cube(1 << 12, 2), cube(1 << 6, 3), cube(30, 2)], [{}], [500, 2_000, 30_000]
        case "histogram":
            wide = [{"cells": cells} for cells in (16, 128)]
            return [cube(1 << 12, 2), line(1 << 14)], wide, sizes
        case "statistics":
            every = {"measures": ("count", "sum", "mean", "variance")}
            ranks = {"measures": ("count", {"quantiles": (0.1, 0.5, 0.9)}, "minimum")}
            return [cube(100, 1), cube(1 << 20, 2)], [every, {"measures": ("sum",)}, ranks], sizes
        case "interior_point":
            return lines, [{}], [500, 2_000, 30_000]
        case "threshold":
            return [Grid((0.0, 0.0), (float(w - 1), 1.0), 1.0) for w in WIDTHS], [{"alpha": 0.05}], sizes
        case "k_means":
            grids = [cube(1 << 10, 2), cube(1 << 20, 2), cube(1 << 10, 10)]
            return grids, [{"k": 4}], [2_000, 30_000, 200_000]
        case "k_median":
            return [cube(1 << 20, 2), cube(1 << 10, 10)], [{"k": 4}], [2_000, 30_000, 200_000]
        case "one_cluster":
            grids = [cube(1 << 16, 1), cube(1 << 16, 2), cube(1 << 12, 5)]
            return grids, [{"target": 400}, {"target": 1_500}], [3_000, 30_000]
        case "k_cover":
            return [cube(1 << 16, 2)], [{"k": 2, "target": 1_200}], [4_000, 30_000]
        case "mst_cost":
            return [cube(1 << 4, 3), cube(1 << 5, 3)], [{}], [500, 10_000]
        case "triangles":
            return [cube(1 << 6, 2), cube(1 << 9, 2)], [{}], [500, 10_000]
        case "sample_and_aggregate":
            grids = [cube(1 << 10, 1), cube(1 << 20, 2), cube(1 << 16, 5)]
            return grids, [{"blocks": blocks} for blocks in (60, 200, 1_000)], [0]
    raise KeyError(task)


def settings(task: str) -> list[tuple[Case, ...]]:
    """Return the whole grid of a task: for each setting and number of records, one case of each shape."""
    grids, params, sizes = grids_of(task)
    found = []
    for grid, given, epsilon, relation, n in itertools.product(grids, params, EPSILONS, RELATIONS, sizes):
        n = given["blocks"] if task == "sample_and_aggregate" else n  # a record is one block's answer
        found.append(tuple(Case(task, grid, given, epsilon, relation, shape, n) for shape in SHAPES))
    return found
