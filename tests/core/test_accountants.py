"""Accountants against the exact loss of the worst draws of each cost: all of delta is counted, and once."""

import itertools
import math

import pytest
from scipy.stats import norm

from core.budget import Cost as DrawCost
from core.budget import Mechanism, spend

Cost = tuple[float, float, float]
"""Epsilon, delta and rho of a draw."""


def exact_delta(costs: list[Cost], epsilon: float) -> float:
    """Return the delta at which draws are (epsilon, delta)-private, each the worst of its cost.

    The worst (e, d)-private draw reveals the database with probability d, and is randomized response
    otherwise; the losses of Gaussians of rho in all are normal, with mean rho and variance 2 rho.
    """
    pure = [e for e, _, _ in costs if e > 0]
    rho = sum(r for _, _, r in costs)
    known = 1 - math.prod(1 - d for _, d, _ in costs)
    excess = 0.0
    for signs in itertools.product((1, -1), repeat=len(pure)):
        loss = sum(sign * e for sign, e in zip(signs, pure, strict=True))
        chance = math.prod(1 / (1 + math.exp(-sign * e)) for sign, e in zip(signs, pure, strict=True))
        if rho == 0:
            excess += chance * max(0.0, 1 - math.exp(epsilon - loss))
        else:
            over, wide = epsilon - loss, math.sqrt(2 * rho)
            excess += chance * (
                norm.cdf((rho - over) / wide) - math.exp(over) * norm.cdf((-rho - over) / wide)
            )
    return known + (1 - known) * excess


CASES: list[tuple[list[Cost], float]] = [
    ([(0.5, 0.0, 0.0)] * 8, 1e-3),
    ([(0.5, 4e-4, 0.0)] * 2 + [(0.4, 0.0, 0.0)] * 6, 1e-3),
    ([(0.3, 3e-4, 0.0)] * 3, 1e-3),
    ([(0.3, 0.0, 0.0)] * 2, 1e-9),  # added up: no delta is spent
    ([(0.5, 9e-4, 0.0), (0.4, 0.0, 0.0), (0.3, 0.0, 0.0)] + [(0.2, 0.0, 0.0)] * 6, 1e-3),
    ([(0.0, 0.0, 0.05)] * 2, 1e-3),
    ([(0.0, 0.0, 0.1), (0.2, 9e-4, 0.0)], 1e-3),
    ([(0.0, 0.0, 0.1), (0.2, 4.5e-4, 0.0), (0.2, 4.5e-4, 0.0)], 1e-3),
    ([(0.0, 0.0, 2.0), (0.1, 9.9e-3, 0.0)], 1e-2),
]


@pytest.mark.parametrize(("costs", "delta"), CASES)
def test_a_spend_holds_for_the_worst_draws(costs: list[Cost], delta: float) -> None:
    mechanisms = [Mechanism("r", "m", 1.0, 1.0, *cost) for cost in costs]
    spent = spend(mechanisms, delta)
    assert math.isfinite(spent.epsilon)
    assert exact_delta(costs, spent.epsilon) <= spent.delta * (1 + 1e-6) + 1e-15
    assert spent.delta <= delta
    assert exact_delta(costs, 0.5 * spent.epsilon) > delta or len(costs) == 1  # it is not far from what it is


@pytest.mark.parametrize("delta", [0.9e-3, 0.0])
def test_own_deltas_that_do_not_fit_are_refused(delta: float) -> None:
    for costs in ([(0.1, 1e-3, 0.0)], [(0.1, 0.5e-3, 0.0)] * 2, [(0.1, 1e-3, 0.0), (0.0, 0.0, 0.1)]):
        mechanisms = [Mechanism("r", "m", 1.0, 1.0, *cost) for cost in costs]
        assert spend(mechanisms, delta).epsilon == math.inf


@pytest.mark.parametrize("cost", [(0.5, 1e-3, 0.0), (2.0, 1e-6, 0.0), (0.0, 0.0, 0.3)])
def test_two_changes_of_a_draw_cost_what_a_replacement_does(cost: Cost) -> None:
    """The group privacy of a draw and that of the ledger, which are written apart."""
    group = DrawCost(*cost).grouped(2)
    replaced = Mechanism("r", "m", 1.0, 1.0, *cost).under_replacement()
    assert (group.epsilon, group.delta, group.rho) == pytest.approx(
        (replaced.epsilon, replaced.delta, replaced.rho), rel=1e-12
    )
    epsilon, delta, rho = cost
    worst = (2 * epsilon, delta + math.exp(epsilon) * delta, 4 * rho)
    assert (group.epsilon, group.delta, group.rho) == pytest.approx(worst, rel=1e-12)
