"""Several questions with one budget: parts, the common factor, and what all draws spend together."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from scipy.stats import norm

from core.budget import Accountant, Budget, Spend, spend
from core.domain import Grid
from core.draws import charged
from core.errors import InvalidValue
from core.neighbors import Neighbors
from core.plan import Plan
from core.questions import JointPlan, plan_together
from pipelines.tasks import TASKS

GRID = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10)
BUDGET = Budget(1.0, 1e-6)


def question(
    task: str, grid: Grid = GRID, neighbors: str = "add_or_remove_one", **params: object
) -> Callable[[Budget], Plan]:
    def plan(budget: Budget) -> Plan:
        return TASKS[task].core.plan(
            grid, TASKS[task].params(**params), budget, Neighbors(neighbors), bytes(16)
        )

    return plan


def many(count: int, plan: Callable[[Budget], Plan]) -> dict[str, tuple[float, Callable[[Budget], Plan]]]:
    return {f"q{number}": (1.0, plan) for number in range(count)}


MIXED = {
    "spot": (2.0, question("one_cluster", target=3000)),
    "centers": (1.0, question("k_means", k=3)),
    "cells": (0.5, question("histogram", cells=8)),
    "sparse": (0.5, question("histogram", cells=8, method="sparse")),
}


def totals(plan: JointPlan) -> tuple[float, float, float]:
    draws = [draw for its in plan.plans.values() for draw in charged(its.rounds)]
    return sum(d.epsilon for d in draws), sum(d.delta for d in draws), sum(d.rho for d in draws)


def gaussian_delta(epsilon: float, rho: float) -> float:
    mu = math.sqrt(2 * rho)
    upper, lower = norm.cdf(mu / 2 - epsilon / mu), norm.cdf(-mu / 2 - epsilon / mu)
    return float(upper - math.exp(epsilon) * lower)


def test_one_question_is_planned_as_it_is_alone() -> None:
    alone, joint = question("k_means", k=3), plan_together(many(1, question("k_means", k=3)), BUDGET)
    assert joint.factor == 1.0
    assert joint.mechanisms == alone(replace(BUDGET, delta=joint.budgets["q0"].delta)).mechanisms
    assert joint.spend.epsilon <= 1.0


def test_ten_questions_with_gaussian_noise_get_three_times_their_part() -> None:
    joint = plan_together(many(10, question("k_means", k=3)), BUDGET)
    assert 3.0 < joint.factor < 3.5
    assert 0.99 < joint.spend.epsilon <= 1.0
    pure, delta, rho = totals(joint)
    assert pure == delta == 0
    # the exact delta of Gaussian noise at epsilon 1 (Balle and Wang 2018), without the accountant
    assert gaussian_delta(1.0, rho) < 1e-6 < gaussian_delta(1.0, 1.3**2 * rho)


def test_questions_that_spend_more_than_in_proportion_fit_too() -> None:
    def plan(budget: Budget) -> Plan:
        return question("k_means", k=3)(
            replace(budget, epsilon=budget.epsilon * (budget.epsilon / 0.1) ** 0.2)
        )

    joint = plan_together(many(10, plan), BUDGET)
    assert joint.factor > 1.5 and 0.8 < joint.spend.epsilon <= 1.0 + 1e-9


def test_pure_questions_that_gain_nothing_are_planned_once() -> None:
    calls = 0

    def plan(budget: Budget) -> Plan:
        nonlocal calls
        calls += 1
        return question("histogram", cells=8)(budget)

    joint = plan_together(many(5, plan), Budget(1.0, 0.0))
    assert joint.factor == 1.0 and calls == 5
    assert joint.spend.epsilon == pytest.approx(1.0)
    assert joint.spend.accountant == "basic composition"


def test_shares_divide_epsilon_and_delta() -> None:
    joint = plan_together(MIXED, BUDGET)
    assert [part.epsilon / joint.factor for part in joint.budgets.values()] == pytest.approx(
        [0.5, 0.25, 0.125, 0.125]
    )
    assert [part.delta for part in joint.budgets.values()] == pytest.approx([5e-7, 2.5e-7, 1.25e-7, 1.25e-7])
    assert sum(part.delta for part in joint.budgets.values()) <= 1e-6
    assert joint.factor >= 1.0


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_the_spend_is_that_of_all_draws_that_the_rounds_hold(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    joint = plan_together(MIXED, budget)
    draws = [draw for its in joint.plans.values() for draw in charged(its.rounds)]
    assert list(joint.mechanisms) == draws
    apart = sum(
        spend(charged(its.rounds), joint.budgets[name].delta).epsilon for name, its in joint.plans.items()
    )
    assert joint.spend.epsilon == min(spend(draws, delta).epsilon, apart) <= epsilon * (1 + 1e-9)
    assert joint.recomputed(delta) == joint.spend


def test_rounds_that_hold_more_noise_than_they_say_are_found() -> None:
    joint = plan_together(MIXED, BUDGET)
    other = replace(
        joint.plans["cells"], rounds=plan_together(MIXED, Budget(3.0, 1e-6)).plans["cells"].rounds
    )
    assert replace(joint, plans={**joint.plans, "cells": other}).recomputed(1e-6).epsilon > 1.05


def test_a_question_that_does_not_fit_its_part_is_refused() -> None:
    with pytest.raises(InvalidValue, match="replace_one"):
        plan_together(
            {
                "a": (1.0, question("k_means", k=3)),
                "b": (1.0, question("one_cluster", target=9, method="paper")),
            },
            Budget(1.0, 0.0),
        )


def test_what_questions_hide_is_told_once() -> None:
    weights = Grid((0.0,) * 3, (16.0,) * 3, 1.0)
    edges = question("mst_cost", weights, "replace_one", change="weight")
    joint = plan_together(
        {"a": (1.0, edges), "b": (1.0, edges), "c": (1.0, question("histogram", cells=8))}, BUDGET
    )
    assert joint.hides is not None and joint.hides == joint.plans["a"].hides
    assert plan_together(MIXED, BUDGET).hides is None


def test_different_things_that_questions_hide_are_all_told() -> None:
    plan = question("histogram", cells=8)(BUDGET)
    plans = {name: replace(plan, hides=hides) for name, hides in (("a", "this"), ("b", None), ("c", "that"))}
    assert JointPlan(plans, {}, 1.0, Spend(0.0)).hides == "this; and that"


def test_where_draws_of_questions_compose_to_more_the_spends_of_questions_add_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = question("histogram", cells=8)(BUDGET)
    monkeypatch.setattr(
        "core.questions.spend", lambda draws, delta: Spend(float(len(draws) ** 2), (), delta / 2)
    )
    budgets = {"a": Budget(1.0, 2e-7), "b": Budget(1.0, 4e-7)}
    found = JointPlan({"a": plan, "b": plan}, budgets, 1.0, Spend(0.0)).recomputed(1e-6)
    assert found == Spend(2.0, (Accountant.QUESTIONS,), pytest.approx(3e-7))
