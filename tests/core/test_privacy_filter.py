"""Privacy filters: against somebody who chooses each run by the answers so far, and against exact losses."""

import math
from functools import cache

import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from scipy.stats import norm

from core import privacy_filter
from core.budget import Budget, Mechanism
from core.draws import Gaussian
from core.privacy_filter import (
    Charge,
    allowed_divergence,
    at_most,
    best_order,
    filter_delta,
    filter_spend,
    pure_divergence,
)

Move = tuple[float, float]
"""A run of one draw: its epsilon and delta."""


def run(epsilon: float, delta: float = 0.0) -> Charge:
    return Charge(Budget(epsilon, delta), (Mechanism("r", "m", 1.0, 1.0, epsilon=epsilon, delta=delta),))


def worst_failure(budget: Budget, orders: tuple[float | None, ...], moves: tuple[Move, ...]) -> float:
    """Return the largest delta, at the budget's epsilon, that an adaptive choice of runs can reach.

    Every run is the worst (epsilon, delta) mechanism: its answer reveals the database with probability delta,
    and is randomized response otherwise. Before each run somebody looks at the loss so far and picks what a
    filter of one of the orders still admits, or stops. The best strategy comes by dynamic programming over
    (runs of each kind so far, how many of each answered for the true database).
    """

    @cache
    def admits(made: tuple[int, ...]) -> bool:
        charges = [run(*move) for move, times in zip(moves, made, strict=True) for _ in range(times)]
        spent = min(filter_spend(charges, budget, order).epsilon for order in orders)
        return spent <= budget.epsilon * (1 + 1e-9)

    @cache
    def value(made: tuple[int, ...], true: tuple[int, ...]) -> float:
        loss = sum((2 * t - n) * epsilon for (epsilon, _), n, t in zip(moves, made, true, strict=True))
        best = max(0.0, 1 - math.exp(budget.epsilon - loss))
        for i, (epsilon, delta) in enumerate(moves):
            more = (*made[:i], made[i] + 1, *made[i + 1 :])
            if not admits(more):
                continue
            up = 1 / (1 + math.exp(-epsilon))
            yes = value(more, (*true[:i], true[i] + 1, *true[i + 1 :]))
            best = max(best, delta + (1 - delta) * (up * yes + (1 - up) * value(more, true)))
        return best

    nothing = (0,) * len(moves)
    return value(nothing, nothing)


GAMES = [
    (Budget(1.0, 0.05), ((0.1, 0.0), (0.3, 0.0))),
    (Budget(1.0, 0.05), ((0.1, 0.0), (0.5, 0.05), (0.25, 0.025))),
    (Budget(2.0, 0.02), ((0.3, 0.004), (0.1, 0.0))),
    (Budget(1.0, 0.1), ((0.1, 0.0), (0.3, 0.05), (0.2, 0.05))),
    (Budget(3.0, 0.01), ((0.5, 0.001), (0.25, 0.0005), (1.5, 0.0))),
]


@pytest.mark.parametrize(("budget", "moves"), GAMES)
@pytest.mark.parametrize("accountant", ["basic", "renyi"])
def test_no_adaptive_choice_of_runs_beats_the_filter(
    budget: Budget, moves: tuple[Move, ...], accountant: str
) -> None:
    order = best_order(budget) if accountant == "renyi" else None
    assert worst_failure(budget, (order,), moves) <= budget.delta * (1 + 1e-9)


def test_either_of_two_filters_is_not_a_filter() -> None:
    """Why a ledger has one accountant: with two, the answers can choose which of them fails."""
    budget, moves = Budget(1.0, 0.05), ((0.05, 0.0), (0.5, 0.05), (0.25, 0.025))
    order = best_order(budget)
    alone = [worst_failure(budget, (one,), moves) for one in (None, order)]
    assert max(alone) <= budget.delta
    assert worst_failure(budget, (None, order), moves) > 1.01 * budget.delta


@pytest.mark.parametrize("wrong", ["divergence", "deltas"])
def test_the_game_catches_a_filter_that_admits_too_much(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half more divergence than is allowed, or all of delta for the draws' own, and delta is exceeded."""
    budget, moves = Budget(1.0, 0.05), ((0.05, 0.0), (0.5, 0.05), (0.25, 0.025))
    order = best_order(budget)
    if wrong == "divergence":
        monkeypatch.setattr(
            privacy_filter, "allowed_divergence", lambda *arguments: 1.5 * allowed_divergence(*arguments)
        )
    else:
        monkeypatch.setattr(privacy_filter, "at_most", lambda value, limit: value <= 2 * limit)
    assert worst_failure(budget, (order,), moves) > 1.01 * budget.delta


@pytest.mark.parametrize("order", [1.05, 1.5, 2.0, 7.3, 60.0])
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.3, 1.0, 4.0, 10.0])
def test_the_divergence_of_a_pure_draw_is_that_of_randomized_response(epsilon: float, order: float) -> None:
    up, down = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    exact = math.log(up**order * down ** (1 - order) + down**order * up ** (1 - order)) / (order - 1)
    said = pure_divergence(epsilon, order)
    assert said == pytest.approx(exact, rel=1e-6, abs=1e-13)
    assert said <= min(epsilon, order * epsilon**2 / 2) * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.5, 4.0, 23.0, 400.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_divergence_becomes_epsilon_as_dp_accounting_says(order: float, delta: float) -> None:
    allowed = allowed_divergence(60.0, delta, order)
    relation = privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = rdp_privacy_accountant.RdpAccountant([order], relation)
    accountant.compose(dp_event.ZCDpEvent(allowed / order))
    assert accountant.get_epsilon(delta) == pytest.approx(60.0, rel=1e-9)


def test_what_a_renyi_filter_admits_of_gaussians_is_below_their_exact_loss_and_not_far() -> None:
    """Gaussian draws are one of the sum of their rho, whose delta is known exactly."""
    budget = Budget(1.0, 1e-6)
    order = best_order(budget)
    charge = Charge(Budget(0.5, 1e-7), Gaussian.of("m", 0.0005, 1.0).mechanisms("r"))
    cost = filter_spend([charge], budget, order).epsilon
    shift = math.sqrt(2 * 0.0005 * math.floor(1.0 / cost))
    exact = norm.cdf(shift / 2 - 1 / shift) - math.exp(1) * norm.cdf(-shift / 2 - 1 / shift)
    assert 1e-8 < exact <= 5e-7


def test_the_order_is_the_best_of_its_neighbors() -> None:
    for budget in (Budget(1.0, 1e-6), Budget(5.0, 1e-9), Budget(0.1, 1e-5)):
        order = best_order(budget)
        rates = [
            allowed_divergence(budget.epsilon, budget.delta / 2, a) / a
            for a in (order * 0.99, order, order * 1.01)
        ]
        assert rates[1] >= max(rates) * (1 - 1e-3)
        assert rates[1] > 0


def test_deltas_run_out() -> None:
    budget = Budget(7.0, 7e-6)
    assert filter_spend([run(1.0, 1e-6)] * 7, budget, None).epsilon == 7.0
    assert filter_spend([run(0.1, 1e-6)] * 8, budget, None).epsilon == math.inf
    order = best_order(budget)
    assert filter_spend([run(0.1, 1e-6)] * 3, budget, order).epsilon < 7.0
    assert filter_spend([run(0.1, 1e-6)] * 4, budget, order).epsilon == math.inf
    assert filter_spend([], Budget(1.0, 0.0), None).epsilon == 0
    with pytest.raises(ValueError, match=r"delta is 0\.0"):
        best_order(Budget(1.0, 0.0))


def test_spends_add_up_and_many_small_runs_are_cheaper() -> None:
    budget = Budget(4.0, 1e-6)
    order = best_order(budget)
    one = filter_spend([run(0.05)], budget, order).epsilon
    many = filter_spend([run(0.05)] * 100, budget, order)
    assert many.epsilon == pytest.approx(100 * one)
    assert many.epsilon < 0.4 * filter_spend([run(0.05)] * 100, budget, None).epsilon
    assert many.accountant.startswith("Rényi filter of order ")


def test_a_replacement_is_charged_as_two_moves() -> None:
    """By Gaussians: the total of k runs under replacement is that of 4 k rho, as doubling a shift gives."""
    draw = Mechanism("r", "m", 1.0, 1.0, rho=0.01)
    charge = Charge(Budget(0.5, 1e-7), (draw,)).under_replacement()
    assert charge.budget.epsilon == 1.0
    assert charge.budget.delta == pytest.approx((1 + math.exp(0.5)) * 1e-7, rel=1e-15)
    assert (charge.mechanisms[0].rho, charge.mechanisms[0].sensitivity) == (4 * draw.rho, 2.0)
    assert Charge(Budget(50.0, 1e-6), ()).under_replacement().budget.delta < 1
    pure = Mechanism("r", "m", 1.0, 1.0, epsilon=0.3, delta=1e-8).under_replacement()
    assert pure.epsilon == 0.6
    assert pure.delta == pytest.approx((1 + math.exp(0.3)) * 1e-8, rel=1e-15)


def test_delta_is_spent_by_runs_or_by_their_draws() -> None:
    """A Rényi filter counts the deltas of draws against half of its delta."""
    budget, charges = Budget(3.0, 1e-5), [run(1.0, 1e-6), run(0.5, 2e-6)]
    assert filter_delta(charges, budget, None) == pytest.approx((3e-6, 1e-5))
    gaussian = Charge(Budget(1.0, 1e-6), Gaussian.of("sum", 0.01, 1).mechanisms("r"))
    assert filter_delta([*charges, gaussian], budget, 10.0) == pytest.approx((3e-6, 5e-6))


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.3, 1e-9), Budget(5.0, 1e-3)])
def test_draws_without_a_delta_fill_a_renyi_filter_where_they_need_half_of_its_delta(budget: Budget) -> None:
    """The other half is for the deltas of draws: a filter that converts with all of it promises 1.5 delta."""
    order = best_order(budget)
    rho = allowed_divergence(budget.epsilon, budget.delta / 2, order) / order
    charge = Charge(Budget(0.1, 0.0), (Mechanism("r", "m", 1.0, 1.0, rho=rho / 4),))
    assert filter_spend([charge] * 4, budget, order).epsilon == pytest.approx(budget.epsilon, rel=1e-12)


def test_no_run_spends_nothing_where_an_order_allows_nothing() -> None:
    assert allowed_divergence(0.01, 5e-10, 1.5) < 0
    assert filter_spend([], Budget(0.01, 1e-9), 1.5).epsilon == 0
    assert filter_spend([run(1e-6)], Budget(0.01, 1e-9), 1.5).epsilon == math.inf


def test_a_sum_may_exceed_its_limit_by_rounding_alone() -> None:
    assert at_most(1 + 5e-10, 1.0)
    assert not at_most(1 + 1e-8, 1.0)
    assert not at_most(1e-300, 0.0)
