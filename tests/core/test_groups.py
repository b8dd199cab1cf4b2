"""What each group may spend, so that all of them keep the promise of the run."""

import math

import pytest

from core.budget import Accountant, Budget, spend
from core.centers.params import KMeans
from core.centers.task import K_MEANS
from core.domain import Grid
from core.errors import InvalidValue
from core.groups import GroupedPlan, for_one_change, plan_groups
from core.histogram.params import Histogram
from core.histogram.task import HISTOGRAM
from core.neighbors import Neighbors
from core.plan import Plan

GRID = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10)
ONE = Neighbors("add_or_remove_one")


def gaussian(budget: Budget) -> Plan:
    return K_MEANS.plan(GRID, KMeans(k=3), budget, ONE, b"sixteen secrets!")


def pure(budget: Budget) -> Plan:
    return HISTOGRAM.plan(GRID, Histogram(cells=(8, 8), method="dense"), budget, ONE, b"sixteen secrets!")


def test_a_row_more_or_less_is_in_one_group_which_gets_all() -> None:
    budget = Budget(1.0, 1e-6)
    plan = plan_groups(gaussian, budget, 1, 1)
    assert plan.budget == budget
    assert repr(plan.each) == repr(gaussian(budget))
    assert plan.mechanisms == plan.each.mechanisms
    assert plan.spend == plan.each.spend


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_two_changes_of_the_worst_mechanism_keep_the_budget(epsilon: float) -> None:
    """Three databases in a row, and one event, as likely as (e, d) allows: d, then e^e d + d, then more.

    The record of the last one replaced that of the first one. Its event never happens in the first one. Half
    of delta would not be enough.
    """
    budget = Budget(epsilon, 1e-6)
    one = for_one_change(budget, 2)
    assert one.epsilon == epsilon / 2
    middle = math.exp(one.epsilon) * 0.0 + one.delta
    last = math.exp(one.epsilon) * middle + one.delta
    assert 0.999 * budget.delta < last - math.exp(budget.epsilon) * 0.0 <= budget.delta * (1 + 1e-12)
    half = budget.delta / 2
    assert math.exp(one.epsilon) * half + half > budget.delta


@pytest.mark.parametrize("plan_one", [gaussian, pure])
def test_a_replaced_row_is_charged_for_two_changes(plan_one: object) -> None:
    budget = Budget(1.0, 1e-6)
    plan = plan_groups(plan_one, budget, 2, 1)
    assert plan.budget == for_one_change(budget, 2)
    for draw, each in zip(plan.mechanisms, plan.each.mechanisms, strict=True):
        assert (draw.epsilon, draw.rho) == (2 * each.epsilon, 4 * each.rho)
        assert draw.delta >= 2 * each.delta
    assert 0.9 < plan.spend.epsilon <= 1.0
    assert plan.spend.epsilon <= spend(plan.mechanisms, budget.delta).epsilon


def test_where_draws_of_two_changes_do_not_compose_to_the_budget_group_privacy_does() -> None:
    budget = Budget(0.1, 1e-6)
    plan = plan_groups(gaussian, budget, 2, 1)
    assert spend(plan.mechanisms, budget.delta).epsilon > 0.1
    assert 0.0999 < plan.spend.epsilon <= 0.1 and Accountant.GROUP in plan.spend.accountants
    assert plan.spend.delta == pytest.approx(1e-6, rel=1e-9) and plan.spend.delta <= budget.delta


@pytest.mark.parametrize("changes", [1, 2])
def test_groups_of_a_unit_compose(changes: int) -> None:
    """Gaussian draws of ten groups get about the root of ten times their part; pure ones nothing."""
    budget = Budget(1.0, 1e-6)
    one = for_one_change(budget, changes)
    plan = plan_groups(gaussian, budget, changes, 10)
    assert plan.budget.epsilon > 2.5 * one.epsilon / 10
    assert plan.budget.delta * 10 <= one.delta
    assert len(plan.mechanisms) == 10 * len(plan.each.mechanisms)
    assert 0.97 < plan.spend.epsilon <= 1.0
    single = plan_groups(pure, Budget(1.0, 0.0), changes, 10)
    assert single.budget.epsilon == pytest.approx(0.1 / changes)
    assert single.spend.epsilon == pytest.approx(1.0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidValue):
        plan_groups(gaussian_only, Budget(1.0, 0.0), 1, 3)


def gaussian_only(budget: Budget) -> Plan:
    if not budget.delta:
        raise InvalidValue("delta", budget.delta, "it must be above 0")
    return gaussian(budget)


def test_the_plan_of_groups_says_what_that_of_each_says() -> None:
    plan: GroupedPlan = plan_groups(pure, Budget(1.0, 0.0), 1, 1)
    assert (plan.method, plan.rounds, plan.start) == (plan.each.method, plan.each.rounds, plan.each.start)
    assert plan.hides is None and plan.policy is None
