import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from core.budget import (
    Budget,
    Charge,
    Mechanism,
    Spend,
    before_sampling,
    calibrate,
    gaussian,
    laplace,
    sampled,
    spend,
    spend_in_turn,
)


def exact_pure(epsilons, delta):
    """Optimal composition of pure mechanisms (Kairouz, Oh and Viswanath 2015), by enumeration."""
    losses = {0.0: 1.0}
    for e in epsilons:
        up = math.exp(e) / (1 + math.exp(e))
        nxt: dict[float, float] = {}
        for loss, p in losses.items():
            for value, weight in ((loss + e, up), (loss - e, 1 - up)):
                key = round(value, 9)
                nxt[key] = nxt.get(key, 0.0) + p * weight
        losses = nxt
    low, high = 0.0, sum(epsilons)
    for _ in range(60):
        middle = (low + high) / 2
        mass = sum(p * max(0.0, 1 - math.exp(middle - loss)) for loss, p in losses.items())
        low, high = (middle, high) if mass > delta else (low, middle)
    return high


@pytest.mark.parametrize("epsilons", [(0.5, 0.5), (0.1,) * 12, (0.3, 0.1, 0.2, 0.4)])
def test_pure_composition_is_the_optimal_one(epsilons):
    mechanisms = [laplace("r", "x", e, 1) for e in epsilons]
    spent = spend(mechanisms, 1e-5).epsilon
    best = exact_pure(epsilons, 1e-5)
    assert best - 1e-9 <= spent <= best + 0.02 * len(epsilons) * 0.1 + 0.01


def test_gaussians_compose_by_zcdp_no_looser_than_the_closed_form():
    rho = 0.02
    spent = spend([gaussian("r", "x", rho / 2, 3.0)] * 2, 1e-6).epsilon
    assert spent <= rho + 2 * math.sqrt(rho * math.log(1e6))
    # The exact privacy of one continuous Gaussian with the same rho is below: the sum can't be.
    assert spent >= 0.5


def test_scales_follow_from_sensitivities():
    assert laplace("r", "x", 0.5, 3).scale == 6
    assert gaussian("r", "x", 0.02, 3).scale == pytest.approx(3 / math.sqrt(0.04))


def test_deltas_are_taken_from_the_budget():
    choice = Mechanism("r", "choosing", 1, 1, epsilon=0.1, delta=1e-6)
    assert spend([choice], 1e-6).epsilon == pytest.approx(0.1)
    assert spend([choice, laplace("r", "x", 0.2, 1)], 0.5e-6).epsilon == math.inf
    assert spend([choice, gaussian("r", "x", 0.01, 1)], 1e-6).epsilon == math.inf


def build(multiplier):
    e = 0.3 * multiplier
    return [laplace("a", "x", e, 1), gaussian("b", "y", e**2 / 50, 1), laplace("c", "z", e, 1)]


def test_calibration_spends_exactly_the_budget():
    for budget in (Budget(1.0, 1e-6), Budget(0.1, 1e-9), Budget(8.0, 1e-5)):
        spent = spend(build(calibrate(budget, build)), budget.delta).epsilon
        assert budget.epsilon * 0.999 <= spent <= budget.epsilon


def test_calibration_without_enough_delta_is_refused():
    with pytest.raises(ValueError, match=r"privacy\.delta is 0\.0"):
        calibrate(Budget(1.0, 0.0), build)


@given(st.floats(0.001, 3), st.floats(0.001, 1))
@settings(max_examples=50)
def test_amplification_inverts(epsilon, rate):
    assert sampled(before_sampling(epsilon, rate), rate) == pytest.approx(epsilon)
    assert before_sampling(epsilon, rate) >= epsilon - 1e-12


def test_amplification_is_exact_for_a_sampled_randomized_response():
    # One record sampled at rate q, answered by an epsilon-private coin: losses as P7 says.
    epsilon, q = 1.0, 0.1
    up, down = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    loss = math.log(((1 - q) * down + q * up) / down)
    assert loss == pytest.approx(sampled(epsilon, q))


@pytest.mark.parametrize(
    ("epsilon", "delta", "field"),
    [
        (0.0, 1e-6, "epsilon"),
        (-1.0, 1e-6, "epsilon"),
        (math.inf, 1e-6, "epsilon"),
        (math.nan, 1e-6, "epsilon"),
        (1.0, 1.0, "delta"),
        (1.0, -0.1, "delta"),
        (1.0, math.nan, "delta"),
    ],
)
def test_bad_budgets_say_so(epsilon, delta, field):
    with pytest.raises(ValueError, match=rf"privacy\.{field} is"):
        Budget(epsilon, delta)


def runs(times: int, epsilon: float, *, own: float = 0.0, parts: int = 3) -> list[Charge]:
    draws = tuple(Mechanism("r", "m", 1.0, 1.0, epsilon=epsilon / parts, delta=own) for _ in range(parts))
    return [Charge(Budget(epsilon, 1e-6), draws)] * times


def test_few_runs_add_up_and_many_compose_by_zcdp() -> None:
    few, many = spend_in_turn(runs(7, 1.0), 7e-6), spend_in_turn(runs(400, 0.05), 1e-3)
    assert few == Spend(7.0, "basic composition")
    assert many.accountant == "zCDP"
    rho = 400 * 3 * (0.05 / 3) ** 2 / 2
    assert rho < many.epsilon <= rho + 2 * math.sqrt(rho * math.log(2 / 1e-3))
    assert many.epsilon < 400 * 0.05


def test_deltas_of_a_ledger_run_out() -> None:
    assert spend_in_turn(runs(7, 1.0), 7e-6).epsilon == 7.0
    assert spend_in_turn(runs(8, 1.0, own=1e-6), 7e-6).epsilon == math.inf
    assert spend_in_turn([], 0.0).epsilon == 0


def test_zcdp_of_a_ledger_keeps_its_own_deltas_within_half() -> None:
    enough, too_much = runs(400, 0.05, own=0.99e-3 / 2400), runs(400, 0.05, own=1.01e-3 / 2400)
    assert spend_in_turn(enough, 1e-3).accountant == "zCDP"
    assert spend_in_turn(too_much, 1e-3).accountant == "basic composition"


def test_a_replacement_is_charged_as_two_moves() -> None:
    """By Gaussians: the total of k runs under replacement is that of 4 k rho, as doubling a shift gives."""
    draw = Mechanism("r", "m", 1.0, 1.0, rho=0.01)
    charge = Charge(Budget(0.5, 1e-7), (draw,)).under_replacement()
    assert charge.budget == Budget(1.0, (1 + math.exp(0.5)) * 1e-7)
    assert charge.mechanisms[0].rho == 4 * draw.rho
    pure = Mechanism("r", "m", 1.0, 1.0, epsilon=0.3, delta=1e-8).under_replacement()
    assert (pure.epsilon, pure.delta) == (0.6, (1 + math.exp(0.3)) * 1e-8)


def test_what_a_ledger_says_is_no_less_than_the_true_loss() -> None:
    """100 Gaussian draws of rho 0.002 are one of rho 0.2, whose delta at the said epsilon is smaller."""
    charges = [Charge(Budget(1.0, 1e-5), (Mechanism("r", "m", 1.0, 1.0, rho=0.002),))] * 100
    said = spend_in_turn(charges, 1e-6)
    assert said.accountant == "zCDP"
    shift = math.sqrt(2 * 0.2)
    upper = norm.cdf(shift / 2 - said.epsilon / shift)
    exact = upper - math.exp(said.epsilon) * norm.cdf(-shift / 2 - said.epsilon / shift)
    assert 1e-9 < exact <= 5e-7


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-6), (1.0, 0.3), (1.0, 0.99), (100.0, 1e-100)])
def test_budgets_at_the_edges_are_calibrated(epsilon, delta):
    def build(rho):
        return [gaussian("a", "sums", rho, 1.0), laplace("b", "count", math.sqrt(rho), 1.0)]

    multiplier = calibrate(Budget(epsilon, delta), build)
    assert 0 < spend(build(multiplier), delta).epsilon <= epsilon
