"""Quantiles and extremes by a search over noisy counts: which ranks are sought, and what is promised."""

import math

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.policy import Distance, Partition, Policy
from core.quantiles.params import Median, Minimum, Quantiles
from core.quantiles.task import MEDIAN, MINIMUM, QUANTILES
from tests.core.quantiles.planned import rank_errors, release
from tests.core.seeded import SeededNoise

GRID = Grid((0.0,), (4095.0,), 1.0)
PURE = Budget(0.5, 0.0)
NEAR = [Neighbors("replace_one", Policy(secrets)) for secrets in (Distance(1), Distance(9), Partition((16,)))]


def value_plan(neighbors, *, quantile=None, largest=False):
    if quantile is None:
        return MINIMUM.plan(GRID, Minimum(largest=largest, method="ordered"), PURE, neighbors, bytes(16))
    return MEDIAN.plan(GRID, Median(quantile=quantile, method="ordered"), PURE, neighbors, bytes(16))


def nearly_exact():
    return SeededNoise(0, factor=1e-9)


@pytest.mark.parametrize("neighbors", NEAR, ids=lambda each: str(each.policy.secrets))
def test_each_quantile_is_sought_at_its_own_rank(neighbors):
    points, given = np.arange(3, 2003), (0.1, 0.25, 0.5, 0.9)
    plan = QUANTILES.plan(GRID, Quantiles(given, "ordered"), PURE, neighbors, bytes(16))
    assert max(rank_errors(points, release(plan, points, nearly_exact()))) == 0
    for p in given:
        found = release(value_plan(neighbors, quantile=p), points, nearly_exact())
        assert abs(found.step - 3 - 2000 * p) <= 1


@pytest.mark.parametrize("n", [0, 1, 12, 4000])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("neighbors", NEAR, ids=lambda each: str(each.policy.secrets))
def test_extremes_are_sought_inside_or_in_the_middle_of_few_records(neighbors, largest, n):
    plan = value_plan(neighbors, largest=largest)
    points, inside = 50 + np.arange(n), plan.rounds[0].inside
    assert 12 < 2 * inside < 4000
    rank = min(inside, n / 2)
    found = release(plan, points, nearly_exact()).step - 50
    if n:
        assert abs(found - (n - rank if largest else rank)) <= 1
    else:
        assert 0 <= found + 50 <= 4095


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("neighbors", NEAR, ids=lambda each: str(each.policy.secrets))
def test_a_search_that_is_as_far_off_as_it_may_be_does_not_leave_the_records(neighbors, largest):
    """At one more record inside than it may be off, it ends at rank 1 at the least."""
    plan = value_plan(neighbors, largest=largest)
    (step,) = plan.rounds
    off = step.search.largest_error(1, plan.failure)
    assert step.inside == off + 1
    assert plan.promises["rank_error"] == step.inside + off
    typical = step.search.typical_error
    assert plan.promises["typical_rank_error"] == pytest.approx(math.hypot(step.inside, typical))
    assert f"{2 * step.inside:,} records" in plan.notes[0]


def test_what_is_promised_of_quantiles_is_what_the_search_may_be_off():
    """The more ranks are sought, the larger is the error that all of them keep."""
    for neighbors in NEAR:
        middle = value_plan(neighbors, quantile=0.5)
        search = middle.rounds[0].search
        assert middle.promises["rank_error"] == search.largest_error(1, middle.failure)
        assert middle.promises["typical_rank_error"] == pytest.approx(search.typical_error)
        given = (0.2, 0.5, 0.7)
        three = QUANTILES.plan(GRID, Quantiles(given, "ordered"), PURE, neighbors, bytes(16))
        search = three.rounds[0].search
        assert three.promises["rank_error"] == search.largest_error(3, three.failure)
        assert three.promises["rank_error"] > search.largest_error(1, three.failure)
