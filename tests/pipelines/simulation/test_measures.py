"""Measures against figures that are counted by hand: what they leave out, no test of a promise can see."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.domain import Grid
from core.grouping import Contributions
from core.k_cover.found import Cover
from core.one_cluster.found import Found
from core.quantiles.found import FoundColumns
from core.sample_and_aggregate.found import Stable
from pipelines.simulation.measures import MEASURES
from pipelines.simulation.simulate import _summed
from tests.measured.cases import Case, cube

TEN = np.arange(10)[:, None]


def figures(
    task: str, grid: Grid, points: Any, found: Any, promises: Any = (), relation: str = "", **params: Any
) -> dict[str, float]:
    """Return what is measured of an answer."""
    case = Case(task, grid, params, 1.0, relation or "add_or_remove_one", "uniform", len(points))
    return dict(MEASURES[task](case, np.asarray(points, np.int64)).figures(found, dict(promises)))


def value(step: int, interval: tuple[int, int] | None = None) -> SimpleNamespace:
    return SimpleNamespace(step=step, interval=interval)


@pytest.mark.parametrize(
    ("steps", "intervals", "error"),
    [
        ((7, 2), None, 6.0),  # 2 has the ranks 2 and 3, and 9 is wanted
        ((7, 9), None, 2.0),
        ((3, 9), None, 1.0),
        ((7, 9), ((2, 7), (8, 9)), 2.0),
        ((7, 9), ((6, 8), (8, 9)), math.inf),
        ((7, 9), ((4, 7), (2, 7)), math.inf),
    ],
)
def test_quantiles_are_as_far_off_as_the_worst_and_as_one_that_its_interval_lacks(steps, intervals, error):
    found = SimpleNamespace(steps=steps, intervals=intervals, probabilities=(0.5, 0.9))
    assert figures("quantiles", cube(100, 1), TEN, found) == {"rank_error": error}


@pytest.mark.parametrize(
    ("task", "params", "found", "error"),
    [
        ("median", {}, value(7), 2.0),
        ("median", {}, value(3), 1.0),
        ("median", {"quantile": 0.9}, value(7), 1.0),
        ("median", {}, value(5, (7, 8)), math.inf),
        ("minimum", {}, value(3), 3.0),
        ("minimum", {"largest": True}, value(3), 6.0),
        ("minimum", {"largest": True}, value(10), 10.0),  # beyond all records
    ],
)
def test_one_value_is_as_far_off_as_its_rank(task, params, found, error):
    assert figures(task, cube(100, 1), TEN, found, **params) == {"rank_error": error}


def test_of_several_columns_the_worst_counts():
    points = np.hstack([TEN, TEN[::-1]])
    for steps, error in (((5, 8), 3.0), ((8, 5), 3.0), ((5, 5), 0.0)):
        found = FoundColumns(tuple(map(value, steps)), ())
        assert figures("median", cube(100, 2), points, found) == {"rank_error": error}
    missed = FoundColumns((value(5), value(5, (7, 8))), ())
    assert figures("median", cube(100, 2), points, missed) == {"rank_error": math.inf}


def test_the_count_of_a_range_may_be_off_at_both_ends():
    exact = np.cumsum(np.bincount([1, 1, 3], minlength=5))
    for off, largest, of_range in (
        ([2, 0, 0, -3, 0], 3, 5),
        ([2, 2, 2, 2, 3], 3, 3),
        ([0, -4, -4, -1, 0], 4, 4),
    ):
        measured = figures("cdf", cube(5, 1), [[1], [1], [3]], SimpleNamespace(counts=exact + off))
        assert measured == {"kolmogorov_records": largest, "range_error": of_range}


def test_cells_are_released_with_an_error_or_missing_with_a_count():
    cells = SimpleNamespace(keys=lambda points: points[:, 0])
    points = [[0]] * 5 + [[1]] * 3 + [[2]] * 7 + [[4]]
    found = SimpleNamespace(cells=cells, keys=np.array([0, 3, 4]), counts=np.array([6, 4, 1]))
    assert figures("histogram", cube(5, 1), points, found) == {"cell_error": 4.0, "released_from": 8.0}


def test_an_interior_point_is_between_records_where_there_are_enough():
    for step, needed, measured in (
        (0, 10, {"records_needed": 10}),
        (9, 10, {"records_needed": 10}),
        (10, 10, {"records_needed": math.inf}),
        (None, 10, {"records_needed": math.inf}),
        (10, 11, {}),
    ):
        found = SimpleNamespace(step=step)
        assert figures("interior_point", cube(100, 1), TEN, found, {"records_needed": needed}) == measured


@pytest.mark.parametrize("step", range(8))
def test_a_threshold_errs_on_labels_beyond_the_best_one(step):
    rng = np.random.default_rng(3)
    values = rng.integers(0, 7, 40)
    points = np.stack([values, np.where(rng.random(40) < 0.8, values >= 3, values < 3) * 3], axis=1)
    points[:, 1] += rng.integers(0, 3, 40)
    ones = points[:, 1] >= 3  # of 6 points of that axis the upper half
    wrong = [int(((points[:, 0] >= at) != ones).sum()) for at in range(8)]
    grid, error = Grid((0.0, 0.0), (6.0, 5.0), 1.0), wrong[step] - min(wrong)
    promises = {"alpha": 0.1, "records_needed": 40}
    kept = 40 if error <= 4 else math.inf
    measured = figures("threshold", grid, points, SimpleNamespace(step=step), promises)
    assert measured == {"errors": error, "alpha": error / 40, "records_needed": kept}
    few = {**promises, "records_needed": 41}
    assert figures("threshold", grid, points, SimpleNamespace(step=step), few) == {}
    public = figures("threshold", grid, points, SimpleNamespace(step=step), few, "replace_one")
    assert public == {"errors": error}


def test_centers_count_the_records_nearest_to_them():
    grid = Grid((-3.0,), (5.0,), 0.5)
    found = SimpleNamespace(result=lambda _: SimpleNamespace(centers=((-3.0,), (5.0,)), counts=(1, 9)))
    assert figures("k_means", grid, [[0], [3], [7], [9], [16]], found) == {"count_error": 7.0}
    same = SimpleNamespace(result=lambda _: SimpleNamespace(centers=((1.0,), (1.0,)), counts=(1, 9)))
    assert figures("k_means", grid, [[0]], same) == {}


BALLS = [[0, 0], [0, 2], [1, 1], [5, 5], [5, 6], [9, 9]]


def test_a_ball_holds_what_is_within_its_radius():
    found = Found(np.array([0, 0]), 2, 5)
    measured = {"count_error": 2.0, "missing": 1.0}
    assert figures("one_cluster", cube(100, 2), BALLS, found, {"missing": 2}, target=4) == measured
    assert figures("one_cluster", cube(100, 2), BALLS, found, {"missing": 2}, target=7) == {
        "count_error": 2.0
    }


def test_a_ball_of_a_cover_holds_what_no_earlier_one_does():
    cover = Cover((Found(np.array([0, 0]), 2, 3), Found(np.array([1, 1]), 6, 1)))  # and three of the others
    measured = figures("k_cover", cube(100, 2), BALLS, cover, {"missing": 2}, target=3, k=2)
    assert measured == {"count_error": 0.0, "missing": 2.0}
    counted = Cover(cover.balls, rows=8)
    assert figures("k_cover", cube(100, 2), BALLS, counted, {"missing": 2}, k=2) == {
        "count_error": 0.0,
        "rows_error": 2.0,
    }


def test_bounds_are_left_by_records_beyond_the_share_on_both_sides():
    points = np.hstack([TEN, np.full_like(TEN, 5)])
    found = SimpleNamespace(lower=np.array([2, 5]), upper=np.array([5, 5]))
    for share, outside in ((0.0, 6.0), (0.25, 3.5), (0.7, 0.0)):
        measured = figures("bounds", cube(100, 2), points, found, outside=share)
        assert measured == {"records_outside": outside}


def test_a_spanning_tree_costs_what_the_cheapest_does():
    """Of every tree on four nodes; an edge that is not there weighs the upper bound."""
    grid = Grid((0.0, 0.0, 2.0), (3.0, 3.0, 6.0), 1.0)
    points = [[0, 1, 3], [1, 2, 1], [0, 2, 0]]
    weights = {(u, v): 6.0 for u, v in itertools.combinations(range(4), 2)}
    weights |= {(u, v): 2.0 + w for u, v, w in points}
    connected = (
        sum(weights[edge] for edge in tree) for tree in itertools.combinations(weights, 3) if _joins(tree)
    )
    cheapest = min(connected)
    found = SimpleNamespace(value=cheapest + 1.5)
    assert figures("mst_cost", grid, points, found) == {"error": 1.5}
    assert figures("mst_cost", grid, points, found, change="weight") == {}


def _joins(tree: tuple[tuple[int, int], ...]) -> bool:
    reached = {0}
    for _ in tree:
        reached |= {node for edge in tree if reached & set(edge) for node in edge}
    return len(reached) == 4


def test_a_triangle_is_one():
    points = [[0, 1], [1, 2], [0, 2], [2, 3], [1, 3]]
    assert figures("triangles", cube(5, 2), points, SimpleNamespace(value=5.0)) == {"error": 3.0}


def test_cells_of_rectangles_are_as_far_off_as_the_worst():
    cells = SimpleNamespace(find=lambda points: points[:, 0])
    found = SimpleNamespace(cells=cells, counts=np.zeros(3), estimates=np.array([2.0, 0.5, 1.0]))
    assert figures("ranges", cube(3, 2), [[0, 0], [0, 1], [2, 2], [2, 0]], found) == {"cell_error": 1.0}


def test_answers_of_blocks_are_measured_in_parts_of_what_is_promised():
    """The middle answer is 4, and four of the five answers are within 4 steps of it."""
    points = [[0], [3], [4], [5], [20]]
    promises = {"errors": (2.0,), "mean_errors": (1.0,), "spread_factor": 0.5, "radius_blocks": 1}
    found = Stable(np.array([12]), radius=8, failed=-3)
    measured = figures("sample_and_aggregate", cube(100, 1), points, found, promises, stable_fraction=0.7)
    assert measured == {
        "errors": (8 - 0.5 * 4) / 2,
        "mean_errors": 12 - 6.4,
        "failed_error": 3.0,
        "radius_blocks": 1.0,  # 0.7 of the blocks are four, and the ball holds three
    }


def statistic(measure: str, value: float | None, column: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(measure=measure, value=value, column=column, low=None, high=None)


@pytest.mark.parametrize("clamp", ["row", "unit"])
def test_statistics_are_as_far_off_as_the_worst_column(clamp):
    """Two columns from -1 to 3, of which the records of a unit are two."""
    grid, bounds = Grid((-1.0, -1.0), (3.0, 3.0), 0.5), Contributions(rows=2, clamp=clamp)
    points = np.array([[0, 8], [2, 8], [4, 8], [8, 8]])  # -1, 0, 1, 3 and 3, 3, 3, 3
    exact = {"row": (3.0, 12.0), "unit": (-1.0 + 3.0, 3.0 + 3.0)}[clamp]
    values = [
        statistic("count", 6.0),
        statistic("units", 5.0),
        statistic("sum", exact[0] - 6.0, 0),
        statistic("sum", exact[1] + 1.5, 1),
        statistic("mean", 1.75, 0),
        statistic("mean", 3.0, 1),
        statistic("minimum", -1.0, 0),
        statistic("maximum", 1.0, 0),
        statistic("quantile_0.5", 3.0, 0),
        statistic("quantile_0.5", 3.0, 1),
    ]
    found = SimpleNamespace(
        result=lambda _: SimpleNamespace(values=values),
        reading=SimpleNamespace(rows=lambda _: np.array([[10.0]])),
        totals=None,
    )
    case = Case("statistics", grid, {}, 1.0, "add_or_remove_one", "uniform", 4, bounds=bounds)
    assert dict(MEASURES["statistics"](case, points).figures(found, {})) == {
        "count_error": 2.0,
        "units_error": 3.0,
        "sum_error": 2.0,  # in parts of the largest absolute value, which is 3
        "mean_error": (1.75 - 0.75) * 6 / 2,  # times the released count, in parts of half of the width
        "extreme_error": 1.0,
        "rank_error": 1.0,
    }


def test_what_came_out_of_runs_is_their_spread_and_how_often_they_kept_a_promise():
    measured = [-3.0, *range(1, 9), 9.1]
    for promised, kept in ((9.0, 10), (9.2, 11), (0.0, 2), (None, 11), (math.inf, 11), ((2.0,), 3)):
        found = _summed("error", promised, measured, missing=1)
        assert (found.least, found.median, found.most) == (0.0, 4.5, 9.1)
        assert found.kept == pytest.approx(kept / 11)
        assert found.each_axis == isinstance(promised, tuple)
        assert found.promised == (
            None if promised in (None, math.inf) else 1.0 if found.each_axis else promised
        )
    last = _summed("error", 1.0, [0.0, 1.0, 1.0, 1.0], missing=0)
    assert (last.least, last.median, last.most, last.kept) == (0.0, 1.0, 1.0, 1.0)
