"""The quantiles task: ties and extremes, promises and rank errors of all its methods."""

import math

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from core.quantiles.cells_and_searches import CellsAndSearches
from core.quantiles.found import FoundQuantiles, Result
from core.rounds import Block, run_in_memory
from tests.core.quantiles.planned import ADD, METHODS, NINE, REPLACE, plan_for, rank_errors, release
from tests.core.seeded import SeededNoise

NARROW, WIDE = Grid((0.0,), (999.0,), 1.0), Grid((0.0,), (999_999.0,), 1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.1, 1e-9), Budget(5.0, 1e-3)])
@pytest.mark.parametrize("probabilities", [(0.5,), (0.01,), (0.2, 0.9), NINE])
def test_the_budget_is_spent_and_not_overspent(method, neighbors, budget, probabilities):
    plan = plan_for(probabilities, method, budget, neighbors)
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    assert plan.method == method


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize(
    "budget", [Budget(1.0, 1e-6), Budget(1e-4, 0.0), Budget(1e-9, 1e-9), Budget(50.0, 0.1)]
)
def test_every_database_has_an_answer(method, neighbors, budget):
    databases = [[], [0], [999], [0] * 50, [999] * 50, [0] * 9 + [999] * 9, list(range(1000))]
    for probabilities in ((0.5,), NINE, (1e-10, 0.5, 1 - 1e-10)):
        plan = plan_for(probabilities, method, budget, neighbors)
        for seed, points in enumerate(databases):
            steps = release(plan, points, SeededNoise(seed)).steps
            assert len(steps) == len(probabilities)
            assert list(steps) == sorted(steps)
            assert steps[0] >= 0 and steps[-1] <= 999


@pytest.mark.parametrize("method", METHODS)
def test_ties_are_answered_by_their_point(method):
    """Point masses: every quantile well inside one is exact (each of 90 answers fails below 1e-9)."""
    points = np.repeat([10, 400, 401, 990], [30_000, 5_000, 35_000, 30_000])
    exact = [10, 10, 401, 401, 401, 401, 990, 990]
    plan = plan_for((0.1, 0.2, 0.4, 0.5, 0.6, 0.65, 0.8, 0.95), method)
    for seed in range(10):
        assert list(release(plan, points, SeededNoise(seed)).steps) == exact
    same = plan_for(NINE, method)
    assert set(release(same, np.full(20_000, 123), SeededNoise(1)).steps) == {123}


@pytest.mark.parametrize("method", ["recursive", "tree"])
def test_huge_universes_and_many_quantiles(method):
    grid = Grid((0.0,), (2.0**31 - 2,), 1.0)
    points = np.random.default_rng(0).integers(2**30, 2**30 + 10**6, 100_000)
    probabilities = tuple(i / 1000 for i in range(1, 1000))
    found = release(plan_for(probabilities, method, grid=grid), points, SeededNoise(0))
    assert rank_errors(points, found).mean() < 0.02 * len(points)


def typical(method, probabilities, points, runs, grid=WIDE):
    plan = plan_for(probabilities, method, Budget(1.0, 0.0), grid=grid)
    errors = [rank_errors(points, release(plan, points, SeededNoise(s))) for s in range(runs)]
    return float(np.sqrt(np.mean(np.square(errors)))) / plan.promises["typical_rank_error"]


@pytest.mark.parametrize(
    ("method", "count"),
    [("recursive", 1), ("recursive", 9), ("recursive", 99), ("tree", 9)],
)
def test_typical_error_is_typical(method, count):
    """Dense records: the root mean square over quantiles and runs is within a factor of 1.7 of the plan's."""
    points = np.random.default_rng(1).permutation(np.arange(2000) // 2)
    probabilities = tuple(i / (count + 1) for i in range(1, count + 1))
    assert typical(method, probabilities, points, 20, NARROW) <= 2.2


@pytest.mark.parametrize("probabilities", [(0.5,), (0.25,), (0.1, 0.5, 0.9)])
def test_the_typical_error_has_that_of_choosing_an_interval_in_it(probabilities):
    """40,000 records that all differ; the standard error of a ratio is 6% for one quantile, less for more.

    The noise has seeds, so it never fails by chance. Without the interval's part the ratio would be 1.35 to
    1.45, and with three quantiles 1.19.
    """
    points = np.arange(40_000) * 25 + 12
    assert 0.85 <= typical("recursive", probabilities, points, 400) <= 1.14


def promise_breaks(method, neighbors, runs):
    plan = plan_for(NINE, method, Budget(1.0, 1e-6), neighbors)
    rng, broken = np.random.default_rng(7), 0
    for seed in range(runs):
        kind = seed % 3
        points = [
            rng.integers(0, 1000, 3000),
            np.repeat(rng.integers(0, 1000, 3), 1500),
            np.minimum(999, rng.geometric(0.05, 2000)),
        ][kind]
        found = release(plan, points, SeededNoise(seed))
        broken += bool(rank_errors(points, found).max() > plan.promises["rank_error"])
    return broken


@pytest.mark.parametrize("method", METHODS)
def test_promise_holds_short(method):
    """30 runs, failure 0.1: more than 3 + 3 sd broken promises would need a broken bound."""
    assert promise_breaks(method, ADD, 30) <= 3 + 3 * math.sqrt(30 * 0.09)


@pytest.mark.audit
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_promise_holds(method, neighbors):
    """300 runs: a promise at failure 0.1 is broken in at most 0.1 + 3 standard deviations of them."""
    assert promise_breaks(method, neighbors, 300) <= 30 + 3 * math.sqrt(300 * 0.09)


def test_auto_takes_the_smaller_error_and_shows_the_other():
    """Few points: a tree of few levels. Few quantiles for the points: cells first. No rule sees the data."""
    many = tuple(i / 100 for i in range(1, 100))
    ages, delays, cents = (Grid((0.0,), (upper,), 1.0) for upper in (120.0, 1620.0, 2.0**31 - 1))
    taken = [plan_for(p, "auto", grid=grid).method for grid in (ages, delays, cents) for p in (NINE, many)]
    assert taken == ["tree", "tree", "recursive", "tree", "recursive", "recursive"]
    plan = plan_for(NINE, "auto")
    assert set(plan.alternatives) == {"recursive", "tree"} - {plan.method}


def test_the_plan_says_how_many_counts_are_held():
    few = plan_for(NINE, "auto")
    assert few.held.counts == few.rounds[0].size


def test_beam_sees_counts_and_the_result_is_in_data_units():
    grid = Grid((-90.0,), (90.0,), 0.5)
    plan = plan_for((0.25, 0.75), grid=grid)
    assert isinstance(plan.rounds[0], CellsAndSearches)
    points = grid.quantize(np.random.default_rng(0).normal(0, 30, (5000, 1)))
    blocks = [Block(part, np.arange(len(part), dtype=np.uint64)) for part in np.array_split(points, 3)]
    found = run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(0))
    assert found == release(plan, points[:, 0], SeededNoise(0))
    assert FoundQuantiles((0.25, 0.5), (0, 181)).result(grid) == Result((0.25, 0.5), (-90.0, 0.5))


def test_several_columns_are_refused():
    with pytest.raises(ValueError, match="columns has 2 columns"):
        plan_for(grid=Grid((0.0, 0.0), (9.0, 9.0), 1.0))
