"""Rows on which promises are reached: one that is a quarter smaller is broken there in too many runs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.domain import Grid, Points
from core.plan import Plan
from tests.measured.cases import Case, cube, line

SMALLER = 0.75
"""Part of a promise that would be broken too often."""

Rows = Callable[[Case, Plan], Points]


@dataclass(frozen=True)
class Reaching:
    """Rows of a setting on which promises of a method are reached.

    Args:
        case: the setting; its shape and its number of records are not used.
        method: the method.
        promises: their names.
        rows: returns the records.
        runs: how many runs are made.
    """

    case: Case
    method: str
    promises: tuple[str, ...]
    rows: Rows
    runs: int = 60


def _everywhere(each: int) -> Rows:
    """Return many records at every point of the line."""
    return lambda case, plan: np.repeat(np.arange(case.grid.extents[0] + 1), each)[:, None]


def _spread(count: int) -> Rows:
    return lambda case, plan: np.random.default_rng(1).integers(
        0, np.array(case.grid.extents) + 1, (count, case.grid.dimension)
    )


def _one_value(at_the_end: bool, probability: float) -> Rows:
    """Return records of one value: so many that all others are at four fifths of the promised distance."""

    def rows(case: Case, plan: Plan) -> Points:
        many = round(0.8 * plan.promises["rank_error"] / probability)
        return np.full((many, 1), case.grid.extents[0] if at_the_end else 0)

    return rows


def _two_values(case: Case, plan: Plan) -> Points:
    """Return examples of two values, of which all thresholds but one mislabel four fifths of the promised."""
    wrong, needed = round(0.8 * plan.promises["errors"]), plan.promises["records_needed"]
    return np.repeat([[0, 0], [1, 1]], [needed - wrong, wrong], axis=0)


def _some_in_each_cell(case: Case, plan: Plan) -> Points:
    """Return three quarters of the records in each cell from which on it is surely released."""
    width = (case.grid.extents[0] + 1) // case.params["cells"]
    each = int(0.75 * plan.promises["released_from"])
    return np.repeat(width * np.arange(case.params["cells"]), each)[:, None]


def _opposed(case: Case, plan: Plan) -> Points:
    """Return stable answers at one end of the axis, and all others at its other end."""
    blocks = case.params["blocks"]
    points = np.full((blocks, 1), case.grid.extents[0])
    points[: int(0.8 * blocks)] = 0
    return points


def _edge_of_a_cell(case: Case, plan: Plan) -> Points:
    """Return answers that all are the first point of a cell."""
    (cells,) = plan.rounds[0].cells  # type: ignore[attr-defined]
    points = np.arange(case.grid.extents[0] + 1)
    first = int(np.argmax(cells.cells_of(points) == cells.last // 2))
    return np.full((case.params["blocks"], 1), first)


def _case(task: str, grid: object, params: dict[str, object], relation: str = "add_or_remove_one") -> Case:
    return Case(task, grid, params, 1.0, relation, "uniform", 0)  # type: ignore[arg-type]


_LINE = line(1 << 10)
_CELLS = _case("histogram", _LINE, {"cells": 64})
_CENTERS = {task: _case(task, cube(1 << 10, 2), {"k": 4}) for task in ("k_means", "k_median")}
_ANSWERS = _case("sample_and_aggregate", line(1 << 20), {"blocks": 60})

REACHING = (
    Reaching(_CELLS, "dense", ("cell_error",), _spread(100)),
    Reaching(_CELLS, "sparse", ("cell_error",), _everywhere(50)),
    Reaching(_CELLS, "sparse", ("released_from",), _some_in_each_cell),
    *(
        Reaching(
            _case("cdf", line(100), {}, relation),
            method,
            ("kolmogorov_records", "range_error"),
            _everywhere(5_000),
        )
        for method, relation in (
            ("hierarchical", "add_or_remove_one"),
            ("hierarchical", "replace_one"),
            ("ordered", "replace_one"),
        )
    ),
    Reaching(
        _case("median", _LINE, {"interval_share": 0.0}),
        "exponential",
        ("rank_error",),
        _one_value(True, 0.5),
    ),
    Reaching(_case("minimum", _LINE, {}), "exponential", ("rank_error",), _one_value(False, 1.0)),
    Reaching(
        _case("threshold", Grid((0.0, 0.0), (1023.0, 1.0), 1.0), {"alpha": 0.05}),
        "exponential",
        ("alpha", "errors"),
        _two_values,
    ),
    Reaching(_CENTERS["k_means"], "lloyd", ("count_error",), _spread(1_000)),
    Reaching(_CENTERS["k_means"], "coreset", ("count_error",), _spread(1_000)),
    Reaching(_CENTERS["k_median"], "coreset", ("count_error",), _spread(1_000)),
    Reaching(_case("mst_cost", cube(1 << 4, 3), {}), "global", ("error",), _spread(40)),
    Reaching(_ANSWERS, "average", ("errors",), _opposed),
    Reaching(_ANSWERS, "median", ("errors",), _edge_of_a_cell),
)

ROUNDS_OF = {"hierarchical_whole": "hierarchical"}
"""Methods that make the rounds of another one."""

SAME = {"records_needed": "alpha", "leftover": "errors"}
"""Promises that say the same as another one."""

NOT_BOUNDS = {
    "typical_rank_error",
    "range_standard_error",
    "standard_error",
    "smallest_group",
    "spread_factor",
    "failed_most",
}
"""Figures of plans that are no bounds, so nothing is near to them; see `NOT_MEASURED`."""
