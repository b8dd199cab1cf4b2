"""What `auto` takes, and what is promised, on plain, tied, heavy-tailed and clumped data alike."""

import itertools

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.rounds import run_in_memory
from pipelines.simulation.shapes import SHAPES, records
from tests.core.quantiles.planned import ADD, METHODS, REPLACE, plan_for, rank_errors
from tests.core.quantiles.values import block
from tests.core.seeded import SeededNoise
from tests.measured.cases import evenly, line


def measured(plan, values, runs):
    """Root mean square of the errors of all ranks, and the part of runs in which the promise is broken."""
    blocks, values = [block(values)], np.sort(values)
    found = (run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(seed)) for seed in range(runs))
    errors = [rank_errors(values, each) for each in found]
    broken = np.array(errors).max(axis=1) > plan.promises["rank_error"]
    return float(np.sqrt(np.mean(np.square(errors)))), float(broken.mean())


def check(sizes, numbers, epsilons, counts, runs):
    """Compare `auto` with every method; an error of half a record counts as none."""
    ratios, broken = [], []
    for size, n, epsilon, count, neighbors in itertools.product(
        sizes, numbers, epsilons, counts, (ADD, REPLACE)
    ):
        grid, budget = line(size), Budget(epsilon, 0.0)
        plans = {m: plan_for(evenly(count), m, budget, neighbors, grid) for m in METHODS}
        auto = plan_for(evenly(count), "auto", budget, neighbors, grid).method
        for i, shape in enumerate(SHAPES):
            values = records(shape, n, grid, np.random.default_rng(1000 * i + count))[:, 0]
            errors = {}
            for method, plan in plans.items():
                errors[method], part = measured(plan, values, runs)
                broken.append(part)
            ratios.append((errors[auto] + 0.5) / (min(errors.values()) + 0.5))
    assert np.median(ratios) <= 1.5
    assert np.quantile(ratios, 0.95) <= 3
    assert np.mean(broken) <= 0.1


def test_auto_is_near_the_best():
    check((100, 2**20), (2000,), (0.3,), (3, 49), runs=4)


@pytest.mark.audit
def test_auto_is_near_the_best_on_a_large_grid():
    check((100, 2**20, 2**31), (500, 20_000, 10**6), (0.1, 1.0), (3, 9, 99), runs=4)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize("shape", SHAPES[1:4])
def test_ties_in_a_wide_domain_cost_nothing(shape, neighbors):
    """2,000 rows with many zeros, 49 quantiles: most are exact, and none is far off.

    When all quantiles in the cell of the zeros shared its budget, the error was some 700 ranks.
    """
    grid = line(2**20)
    values = records(shape, 2000, grid, np.random.default_rng(5))[:, 0]
    plan = plan_for(evenly(49), "auto", Budget(1.0, 0.0), neighbors, grid)
    error, _ = measured(plan, values, 10)
    assert error <= 20 * neighbors.changes


@pytest.mark.parametrize(("count", "most"), [(9, 450), (40, 600), (99, 660)])
def test_the_promise_hardly_grows_with_the_number_of_quantiles(count, most):
    """It was 772 for 9, some 3,000 for 40 and 8,049 for 99, when all quantiles might share one cell."""
    plan = plan_for(evenly(count), "auto", Budget(1.0, 0.0), ADD, line(2**20))
    assert plan.promises["rank_error"] <= most


def test_the_promise_is_not_far_off_in_a_narrow_domain():
    """100 values, 200 rows: at most five times the 90% quantile of the largest error on the worst shape.

    Among more rows points hold many, which hides errors.
    """
    grid, worst = line(100), 0.0
    plan = plan_for(evenly(9), "auto", Budget(1.0, 0.0), ADD, grid)
    step = plan.rounds[0]
    for shape in SHAPES:
        values = records(shape, 200, grid, np.random.default_rng(3))[:, 0]
        counts = Counts.of(values)
        found = (step.release(counts, None, SeededNoise(seed)) for seed in range(40))
        worst = max(worst, float(np.quantile([rank_errors(values, each).max() for each in found], 0.9)))
    assert plan.promises["rank_error"] <= 5 * worst
