import math

import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st

from core import budget as module
from core.budget import (
    _ORDERS,
    Budget,
    Cost,
    Mechanism,
    _least,
    _pld,
    _zcdp,
    before_sampling,
    calibrate,
    sampled,
    spend,
)
from core.draws import Gaussian, Laplace


def laplace(round_, what, epsilon, l1):
    (mechanism,) = Laplace.of(what, epsilon, l1).mechanisms(round_)
    return mechanism


def gaussian(round_, what, rho, l2):
    (mechanism,) = Gaussian.of(what, rho, l2).mechanisms(round_)
    return mechanism


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


@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("rho", [1e-13, 1e-9, 1e-6, 1e-3, 0.02, 0.5, 3.0, 200.0])
def test_zcdp_is_converted_as_dp_accounting_does(rho, delta):
    accountant = rdp_privacy_accountant.RdpAccountant(_ORDERS)
    accountant.compose(dp_event.ZCDpEvent(rho))
    assert _zcdp(rho, delta) == pytest.approx(accountant.get_epsilon(delta), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("pure", [(), (0.02,), (0.5, 0.1), (0.05,) * 12])
@pytest.mark.parametrize("rho", [1e-6, 0.001, 0.5])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_a_loss_distribution_that_is_not_computed_would_gain_nothing(pure, rho, delta):
    draws = [*(laplace("r", "x", epsilon, 1) for epsilon in pure), gaussian("r", "x", rho, 1)]
    joint = _zcdp(rho, delta / 2)
    composed = _pld((*pure, joint), delta / 2)
    assert composed >= _least((*pure, joint), delta / 2) - 1e-9
    assert spend(draws, delta).epsilon <= composed + 1e-9


def test_scales_follow_from_sensitivities():
    assert laplace("r", "x", 0.5, 3).scale == 6
    assert gaussian("r", "x", 0.02, 3).scale == pytest.approx(3 / math.sqrt(0.04))


def test_deltas_are_taken_from_the_budget():
    choice = Mechanism("r", "choosing", 1, 1, epsilon=0.1, delta=1e-6)
    assert spend([choice], 1e-6).epsilon == pytest.approx(0.1)
    assert spend([choice, laplace("r", "x", 0.2, 1)], 0.5e-6).epsilon == math.inf
    assert spend([choice, gaussian("r", "x", 0.01, 1)], 1e-6).epsilon == math.inf
    assert spend([choice], 1e-5).delta == 1e-6  # no more where nothing is gained by more
    assert spend([laplace("r", "x", 0.2, 1)], 1e-6).delta == 0


def test_epsilons_whose_power_is_no_float_are_added_up():
    assert spend([laplace("r", "x", 800.0, 1)] * 2, 1e-3).epsilon == 1600


def build(multiplier):
    e = 0.3 * multiplier
    return [laplace("a", "x", e, 1), gaussian("b", "y", e**2 / 50, 1), laplace("c", "z", e, 1)]


def test_calibration_spends_exactly_the_budget():
    for budget in (Budget(1.0, 1e-6), Budget(0.1, 1e-9), Budget(8.0, 1e-5)):
        spent = spend(build(calibrate(budget, build)), budget.delta).epsilon
        assert budget.epsilon * 0.999 <= spent <= budget.epsilon


def test_calibration_without_enough_delta_is_refused():
    with pytest.raises(ValueError, match=r"delta is 0\.0"):
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
    with pytest.raises(ValueError, match=rf"{field} is"):
        Budget(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-6), (1.0, 0.3), (1.0, 0.99), (100.0, 1e-100)])
def test_budgets_at_the_edges_are_calibrated(epsilon, delta):
    def build(rho):
        return [gaussian("a", "sums", rho, 1.0), laplace("b", "count", math.sqrt(rho), 1.0)]

    multiplier = calibrate(Budget(epsilon, delta), build)
    assert 0 < spend(build(multiplier), delta).epsilon <= epsilon


@given(st.floats(0, 20), st.floats(0, 1e-3), st.floats(0, 20), st.integers(1, 5))
def test_what_one_change_may_cost_inverts_group_privacy(epsilon, delta, rho, changes):
    cost = Cost(epsilon, delta, rho)
    back = cost.per_change(changes).grouped(changes)
    assert (back.epsilon, back.delta, back.rho) == pytest.approx((epsilon, delta, rho))


def test_group_privacy_is_what_was_published():
    assert Cost(0.5, 1e-6, 0.1).grouped(1) == Cost(0.5, 1e-6, 0.1)
    pair, triple = Cost(0.5, 1e-6, 0.1).grouped(2), Cost(0.5, 1e-6).grouped(3)
    assert (pair.epsilon, pair.rho) == (1.0, 0.4)
    assert pair.delta == pytest.approx((1 + math.exp(0.5)) * 1e-6)
    assert triple.delta == pytest.approx((1 + math.exp(0.5) + math.exp(1)) * 1e-6)


def test_group_privacy_of_an_epsilon_whose_power_is_no_float_promises_no_delta():
    assert Cost(800.0).grouped(3) == Cost(2400.0)
    assert Cost(800.0, 1e-9).grouped(2).delta == math.inf
    assert Cost(2000.0, 1e-9).per_change(2).epsilon == 1000.0


def test_gaussians_and_the_composition_of_all_draws_have_half_of_delta_each(monkeypatch):
    pure, delta, rho, asked = [0.1] * 40, 1e-5, 0.002, []

    def composed(epsilons, part):
        asked.append((epsilons, part))
        return 0.0  # the least, so that it counts

    monkeypatch.setattr(module, "_pld", composed)
    total = spend([*(laplace("r", "x", each, 1) for each in pure), gaussian("r", "y", rho, 1)], delta)
    ((epsilons, part),) = asked
    assert (total.epsilon, part) == (0.0, delta / 2)
    assert epsilons == pytest.approx((*pure, _zcdp(rho, delta / 2)))
