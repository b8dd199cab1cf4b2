"""The oracle against plain enumeration, closed forms and the bounds that any draw of its kind must keep."""

import itertools
import math

import numpy as np
import pytest

from tests.core.hockey_stick import (
    Normal,
    Pair,
    approximate,
    cost,
    discrete_gaussian,
    gaussian_delta,
    laplace,
    randomized_response,
)

STEP = 1 / 1024
EPSILONS = (0.0, 0.1, 0.75, 1.5, 3.0)


def enumerated(pairs: list[Pair], epsilon: float) -> float:
    """delta(epsilon) by going through every combination of outcomes."""
    outcomes = itertools.product(*(range(len(pair.p)) for pair in pairs))
    return math.fsum(
        max(
            0.0,
            math.prod(pair.p[i] for pair, i in zip(pairs, one, strict=True))
            - math.exp(epsilon) * math.prod(pair.q[i] for pair, i in zip(pairs, one, strict=True)),
        )
        for one in outcomes
    )


@pytest.mark.parametrize(
    "pairs",
    [
        [randomized_response(0.5)] * 8,
        [
            randomized_response(0.25),
            randomized_response(1.0),
            approximate(0.5, 0.01),
            approximate(0.125, 0.2),
        ],
        [randomized_response(0.0), approximate(0.0, 0.1), randomized_response(2.0)],
        [approximate(0.75, 1e-3)] * 5,
    ],
)
def test_losses_on_the_grid_are_exact(pairs: list[Pair]) -> None:
    found = cost(pairs, STEP)
    for epsilon in EPSILONS:
        lower, upper = found.delta(epsilon)
        exact = enumerated(pairs, epsilon)
        assert lower <= exact * (1 + 1e-12) + 1e-15
        assert exact <= upper * (1 + 1e-12) + 1e-15
        assert upper - lower <= 3e-9 * upper


def test_other_losses_are_bounded_from_both_sides() -> None:
    """Irrational losses, and pairs whose two orders differ."""
    for rate, neighbors in itertools.product((0.1, 0.7), (False, True)):
        pairs = [randomized_response(e).sampled(rate) for e in (0.3, 1 / 3, math.sqrt(2), 0.9)]
        if neighbors:
            pairs = [pair.swapped() for pair in pairs]
        found = cost(pairs, STEP)
        for epsilon in EPSILONS:
            lower, upper = found.delta(epsilon)
            assert lower <= enumerated(pairs, epsilon) <= upper
            assert (
                upper <= found.delta(max(0.0, epsilon - 2 * len(pairs) * STEP))[0] * (1 + 1e-8)
                or epsilon == 0
            )


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 5.0])
@pytest.mark.parametrize("draws", [1, 7])
def test_continuous_gaussians_have_their_closed_form(rho: float, draws: int) -> None:
    step = math.sqrt(2 * rho) / 500
    found = cost([Normal(rho / draws)] * draws, step)
    for epsilon in (0.5 * rho, rho + math.sqrt(2 * rho), rho + 4 * math.sqrt(2 * rho)):
        lower, upper = found.delta(epsilon)
        exact = gaussian_delta(rho, epsilon)
        assert lower <= exact <= upper
        assert upper <= 1.1 * lower


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1), (4.0, 1), (4.0, 3), (25.0, 10)])
def test_discrete_gaussians_keep_their_zcdp_and_come_near_the_continuous_one(
    scale: float, shift: int
) -> None:
    """zCDP is an upper bound of every moment; a wide discrete Gaussian is nearly a continuous one."""
    pair = discrete_gaussian(scale, shift)
    assert pair.p.sum() == pytest.approx(1.0, abs=1e-12)
    rho = shift**2 / (2 * scale**2)
    for order in (1.5, 3.0, 10.0):
        moment = (pair.p * np.exp((order - 1) * (np.log(pair.p) - np.log(pair.q)))).sum()
        divergence = math.log(moment) / (order - 1)
        assert divergence <= order * rho * (1 + 1e-9)
    if scale >= 4:
        epsilon = rho + math.sqrt(2 * rho)
        lower, upper = cost([pair], math.sqrt(2 * rho) / 2000).delta(epsilon)
        assert lower <= 1.1 * gaussian_delta(rho, epsilon)
        assert upper >= 0.9 * gaussian_delta(rho, epsilon)


@pytest.mark.parametrize(("scale", "shift", "draws"), [(2.0, 1, 6), (2.0, 4, 3), (8.0, 3, 12)])
def test_real_laplace_noise_costs_no_more_than_the_worst_draw_of_its_epsilon(
    scale: float, shift: int, draws: int
) -> None:
    real = cost([laplace(scale, shift, 50)] * draws, STEP)
    worst = cost([randomized_response(shift / scale)] * draws, STEP)
    for epsilon in (0.0, 0.3 * draws * shift / scale, 0.9 * draws * shift / scale):
        assert real.delta(epsilon)[0] <= worst.delta(epsilon)[1]
    alone = cost([laplace(scale, shift, 50)], STEP)
    assert alone.delta(shift / scale + STEP)[1] < 1e-9 < alone.delta(shift / scale - 3 * STEP)[0]


def test_epsilon_inverts_delta_on_the_side_of_the_bound() -> None:
    found = cost([randomized_response(0.3)] * 9 + [Normal(0.05)], STEP / 4)
    for delta in (1e-9, 1e-4, 0.05):
        lower, upper = found.epsilon(delta)
        assert lower <= upper <= lower + 12 * STEP / 4
        assert found.delta(upper)[1] <= delta <= found.delta(lower)[0]
    assert found.epsilon(0.99) == (0.0, 0.0)
    assert cost([approximate(0.1, 1e-3)], STEP).epsilon(1e-4) == (math.inf, math.inf)
