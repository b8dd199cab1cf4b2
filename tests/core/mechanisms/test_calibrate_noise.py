"""Admissible noise: its guarantee by integration, its draws by their exact distribution."""

import itertools
import math
import random

import numpy as np
import pytest
from scipy import integrate, stats

from core.mechanisms.admissible import Admissible, heavy_tailed_epsilon, laplace_delta, rounded
from core.mechanisms.calibrate_noise import calibrate_noise, heavy_tailed, laplace_noise
from core.mechanisms.smooth_noise import calibrate_smooth
from core.quantiles.params import Median
from tests.core.exact import fits
from tests.core.seeded import SeededNoise

DENSITY = {
    "cauchy": lambda z: 1 / (math.pi * (1 + z * z)),
    "student": lambda z: 2 / (math.pi * (1 + z * z) ** 2),
    "laplace": lambda z: np.exp(-np.abs(z)) / 2,
}
CDF = {
    "cauchy": stats.cauchy.cdf,
    "student": lambda z: stats.t.cdf(math.sqrt(3) * z, 3),
    "laplace": stats.laplace.cdf,
}


class Integers:
    """Uniform integers of any size from a seeded generator."""

    def __init__(self, seed):
        self.below = random.Random(seed).randrange


def worst_loss(kind, alpha, beta):
    """Largest log-ratio of densities, either way, over moves of at most alpha times the smaller scale."""
    h = DENSITY[kind]
    tail = np.geomspace(20, 1e6, 2000)
    z = np.concatenate([np.linspace(-20, 20, 40_001), tail, -tail])
    losses = [
        np.abs(np.log(h(z) / (math.exp(-scale) * h(math.exp(-scale) * (z - move))))).max()
        for move, scale in itertools.product(np.linspace(0, alpha, 5), np.linspace(0, beta, 5))
    ]
    return max(losses)


@pytest.mark.parametrize("kind", ["cauchy", "student"])
@pytest.mark.parametrize(("epsilon", "part"), [(0.1, 0.3), (1.0, 0.1), (1.0, 0.3), (4.0, 0.2)])
def test_heavy_tails_spend_epsilon_exactly(kind, epsilon, part):
    """By the densities; with 2% less noise, or a smoothness that is 30% worse, it is more."""
    noise = heavy_tailed(kind, part * epsilon, epsilon)
    assert worst_loss(kind, noise.alpha, noise.beta) == pytest.approx(epsilon, rel=1e-3)
    assert worst_loss(kind, noise.alpha, noise.beta) <= epsilon
    assert worst_loss(kind, 1.02 * noise.alpha, noise.beta) > epsilon
    if kind == "student":
        assert worst_loss(kind, noise.alpha, 1.3 * noise.beta) > epsilon


def test_smooth_cauchy_noise_is_free_up_to_a_smoothness():
    """At epsilon 1 alpha is that of a constant scale, 2 sinh(1/2), up to beta 0.73."""
    constant = 2 * math.sinh(0.5)
    assert heavy_tailed("cauchy", 0.73, 1.0).alpha == pytest.approx(constant)
    assert heavy_tailed("cauchy", 0.75, 1.0).alpha < constant
    assert worst_loss("cauchy", constant, 0.73) <= 1 + 1e-9
    assert worst_loss("cauchy", constant, 0.8) > 1


def split_moves(alpha, dimension):
    """Moves of each coordinate that are alpha in L1: on one, on all alike, and in between."""
    one, even = np.eye(dimension)[0], np.full(dimension, 1 / dimension)
    return [alpha * (part * one + (1 - part) * even) for part in np.linspace(0, 1, 5)]


def worst_product_loss(kind, alpha, beta, dimension):
    """Largest log-ratio of products of densities, either way: coordinates differ in moves, not in scale."""
    h = DENSITY[kind]
    z = np.concatenate([np.linspace(-20, 20, 8001), np.geomspace(20, 1e6, 500), -np.geomspace(20, 1e6, 500)])

    def loss(moves, scale):
        ratios = [np.log(h(z) / (math.exp(-scale) * h(math.exp(-scale) * (z - move)))) for move in moves]
        return max(sum(r.max() for r in ratios), sum((-r).max() for r in ratios))

    moves, scales = split_moves(alpha, dimension), np.linspace(0, beta, 5)
    return max(itertools.starmap(loss, itertools.product(moves, scales)))


@pytest.mark.parametrize("dimension", [2, 3, 7])
@pytest.mark.parametrize("kind", ["cauchy", "student"])
@pytest.mark.parametrize(("epsilon", "part"), [(0.1, 0.03), (1.0, 0.01), (1.0, 0.04), (4.0, 0.02)])
def test_heavy_tails_in_several_dimensions(kind, epsilon, part, dimension):
    """By the densities at most epsilon, and more with 6% less noise (at epsilon 4, 30%)."""
    noise = heavy_tailed(kind, part * epsilon, epsilon, dimension)
    assert worst_product_loss(kind, noise.alpha, noise.beta, dimension) <= epsilon
    less = 1.06 if epsilon <= 1 else 1.4
    assert worst_product_loss(kind, less * noise.alpha, noise.beta, dimension) > epsilon


@pytest.mark.parametrize("kind", ["cauchy", "student"])
def test_dimensions_share_the_smoothness(kind):
    """Where beta alone spends epsilon, nothing is left to move by: dimension beta, or three times that."""
    last = {"cauchy": 1 / 4, "student": 1 / 12}[kind]
    assert heavy_tailed(kind, 1.001 * last, 1.0, 4) is None
    assert heavy_tailed(kind, 0.999 * last, 1.0, 4).alpha > 0


def integrated_delta(alpha, beta, epsilon):
    """Largest of the integrals of (P - e^epsilon Q)+ over a grid of shifts and scales."""

    def excess(shift, scale):
        def gap(z):
            q = math.exp(scale) * DENSITY["laplace"](math.exp(scale) * (z + shift))
            return max(0.0, DENSITY["laplace"](z) - math.exp(epsilon) * q)

        cuts = [-60, -25, -15, -10, -5, -shift, 0, 5, 10, 15, 25, 60]
        ends = sorted(set(cuts))
        return sum(integrate.quad(gap, a, b, limit=200, epsabs=1e-14)[0] for a, b in itertools.pairwise(ends))

    moves, scales = (0.0, alpha / 2, alpha), np.linspace(-beta, beta, 7)
    return max(excess(move * min(1.0, math.exp(-scale)), scale) for move in moves for scale in scales)


@pytest.mark.parametrize(
    ("epsilon", "delta", "beta"), [(1.0, 1e-4, 0.05), (1.0, 1e-3, 0.1), (0.5, 1e-3, 0.03), (2.0, 1e-5, 0.1)]
)
def test_laplace_delta_is_the_integral(epsilon, delta, beta):
    noise = laplace_noise(beta, epsilon, delta)
    assert laplace_delta(noise.alpha, beta, epsilon) == pytest.approx(delta, rel=1e-3)
    assert integrated_delta(noise.alpha, beta, epsilon) == pytest.approx(delta, rel=2e-3)
    assert integrated_delta(min(2 * noise.alpha, 10), beta, epsilon) > 1.5 * delta


def test_laplace_delta_counts_both_tails():
    """Of a small move both tails are alike, so one of them alone is half."""
    assert laplace_delta(0.01, 0.3, 0.5) == pytest.approx(integrated_delta(0.01, 0.3, 0.5), rel=2e-3)


def test_the_published_laplace_calibration_is_far_from_tight():
    epsilon, delta = 1.0, 1e-6
    assert laplace_delta(epsilon / 2, epsilon / (2 * math.log(2 / delta)), epsilon) < 1e-8
    assert laplace_delta(0.9, 0.5, epsilon) == math.inf


@pytest.mark.parametrize("kind", ["cauchy", "student", "laplace"])
@pytest.mark.parametrize("scale", [0.3, 2.7, 40.0])
def test_draws_are_the_rounded_ideal(kind, scale):
    """30,000 draws in 21 cells. Flake 1e-6 each; a scale 15% off fails with probability > 0.99."""
    source = Integers(5)
    drawn = np.array([rounded(kind, scale, source) for _ in range(30_000)])
    width = max(1, round(scale / 2))
    edges = (np.arange(-8, 9) * width) - 0.5
    keep = np.diff(np.concatenate([[0.0], CDF[kind](edges / scale), [1.0]])) * 30_000 >= 5

    def observed_fits(at):
        expected = np.diff(np.concatenate([[0.0], CDF[kind](edges / at), [1.0]]))
        counts = np.bincount(np.searchsorted(edges, drawn), minlength=len(expected))
        some = np.append(counts[keep], counts[~keep].sum())
        mass = np.append(expected[keep], expected[~keep].sum())
        some, mass = (some, mass) if mass[-1] * 30_000 >= 5 else (some[:-1], mass[:-1])
        return fits(some, mass)

    assert observed_fits(scale)
    if scale > 1:
        assert not observed_fits(scale * 1.15)
        assert not observed_fits(scale / 1.15)


@pytest.mark.parametrize("kind", ["cauchy", "student", "laplace"])
def test_extreme_scales_draw_integers(kind):
    source = Integers(6)
    tiny = [rounded(kind, 2.0**-20, source) for _ in range(200)]
    huge = [rounded(kind, 2.0**62 / 3, source) for _ in range(200)]
    assert tiny.count(0) >= 198
    assert all(isinstance(value, int) for value in tiny + huge)
    assert 2**58 < float(np.median(np.abs(np.array(huge, dtype=float)))) < 2**63
    assert min(huge) < 0 < max(huge)


@pytest.mark.parametrize("kind", ["cauchy", "student", "laplace"])
@pytest.mark.parametrize("failure", [0.5, 0.1, 1e-3])
def test_tails(kind, failure):
    noise = Admissible(what="a number", density=kind, alpha=1.0, beta=0.1)
    assert 2 * (1 - CDF[kind](noise.tail(failure))) == pytest.approx(failure)


def test_calibration_picks_the_least_error_and_refuses_what_does_not_fit():
    auto = calibrate_noise("a number", "auto", 1.0, 1e-6, 0.1, 1.0)
    named = [
        calibrate_noise("a number", kind, 1.0, 1e-6, 0.1, 1.0) for kind in ("cauchy", "student", "laplace")
    ]

    def error(noise):
        x = noise.beta
        return (
            max(math.exp(-x * k) * (1 + k) for k in np.linspace(0, 300, 3001)) * noise.tail(0.1) / noise.alpha
        )

    assert error(auto) == min(error(noise) for noise in named)
    assert calibrate_noise("a number", "auto", 1.0, 0.0, 0.1, 1.0).cost.delta == 0
    assert calibrate_noise("a number", "auto", 1.0, 1e-2, 1e-6, 1.0, axes=3).density != "laplace"
    with pytest.raises(ValueError, match="noise is laplace"):
        calibrate_noise("a number", "laplace", 1.0, 0.0, 0.1, 1.0)


@pytest.mark.parametrize("kind", ["cauchy", "student", "laplace"])
@pytest.mark.parametrize("doubling", [0.2, 20.0])
def test_the_smoothness_has_the_least_error_where_sensitivities_grow_as_expected(kind, doubling):
    def error(noise):
        grown = max(math.exp(-noise.beta * k) * (1 + k / doubling) for k in np.linspace(0, 3000, 30_001))
        return grown * noise.tail(0.1) / noise.alpha

    tried = (1.0 * np.geomspace(2e-3, 0.99, 50)).tolist()
    others = [laplace_noise(b, 1.0, 1e-6) if kind == "laplace" else heavy_tailed(kind, b, 1.0) for b in tried]
    ours = calibrate_noise("a number", kind, 1.0, 1e-6, 0.1, doubling)
    assert error(ours) <= 1.001 * min(error(noise) for noise in others if noise is not None)


def test_an_epsilon_that_leaves_no_noise_is_not_spent():
    assert calibrate_noise("a number", "auto", 1e4, 0.0, 0.1, 1.0).cost.epsilon <= 100


def test_the_released_value_is_private_by_exact_masses():
    """f moves by S and S stays, the worst here: the loss is met, and half the noise breaks it."""
    noise = heavy_tailed("cauchy", 0.3, 1.0)

    def loss(factor):
        smooth, f = 3.0, np.arange(-4000, 4001)

        def masses(center, s):
            z = factor * noise.scale(s)
            return CDF["cauchy"]((f + 0.5 - center) / z) - CDF["cauchy"]((f - 0.5 - center) / z)

        p, q = masses(0, smooth), masses(3, smooth)
        return float(np.abs(np.log(p / q)).max())

    assert 0.95 < loss(1.0) <= 1.0
    assert loss(0.5) > 1.0


@pytest.mark.parametrize("kind", ["cauchy", "student"])
@pytest.mark.parametrize("axes", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("part", [1e-3, 0.02, 0.1, 0.3, 0.9])
def test_the_cost_of_heavy_tails_inverts_their_calibration(kind, axes, epsilon, part):
    """To the rounding that both allow for, never above; of alpha and beta alone."""
    noise = heavy_tailed(kind, part * epsilon, epsilon, axes)
    if noise is None:
        return
    cost = noise.cost_of_one()
    assert (1 - 1e-4) * epsilon <= cost.epsilon <= epsilon
    assert cost.delta == cost.rho == 0
    assert heavy_tailed_epsilon(kind, 1.01 * noise.alpha, 1.01 * noise.beta, axes) > epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (4.0, 1e-3)])
def test_the_cost_of_laplace_noise_inverts_its_calibration(epsilon, delta):
    """All of delta is spent at some smoothness, never more at any; epsilon as counted."""
    spent = []
    for beta in (epsilon * np.geomspace(1e-3, 1, 100)).tolist():
        noise = laplace_noise(beta, epsilon, delta)
        if noise is not None:
            cost = noise.cost_of_one()
            assert cost.epsilon == epsilon
            assert cost.delta <= delta
            spent.append(cost.delta)
    assert max(spent) == pytest.approx(delta, rel=1e-3)


def test_a_large_delta_is_not_overspent_by_moves_that_are_out_of_range():
    found = [laplace_noise(beta, 0.3, 0.1) for beta in np.geomspace(3e-4, 0.29, 50).tolist()]
    assert max(noise.cost_of_one().delta for noise in found if noise is not None) <= 0.1


def test_more_noise_costs_less_and_a_smoother_bound_too():
    for kind, epsilon in (("cauchy", 0.0), ("student", 0.0), ("laplace", 1.0)):

        def cost(alpha, beta, kind=kind, epsilon=epsilon):
            draw = Admissible(what="a number", density=kind, alpha=alpha, beta=beta, epsilon=epsilon)
            return draw.cost_of_one().epsilon, draw.cost_of_one().delta

        assert cost(0.3, 0.2) > cost(0.15, 0.2)
        assert cost(0.3, 0.3) > cost(0.3, 0.1) or kind == "cauchy"
    assert cost(0.9, 0.5)[1] == math.inf
    wide = Admissible(what="two numbers", density="laplace", alpha=0.1, beta=0.01, axes=2, epsilon=1.0)
    assert wide.cost_of_one().epsilon == math.inf


@pytest.mark.parametrize("axes", [1, 3])
def test_every_value_has_noise_of_the_scale_of_the_sensitivity(monkeypatch, axes):
    drawn = []
    monkeypatch.setattr(
        "core.mechanisms.admissible.rounded",
        lambda density, scale, source: drawn.append((density, scale)) or len(drawn),
    )
    draw = Admissible(what="numbers", density="student", alpha=0.25, beta=0.1, axes=axes)
    assert draw.add([10] * axes, 3.0, SeededNoise(0)) == tuple(10 + i for i in range(1, axes + 1))
    assert drawn == [("student", 12.0)] * axes
    with pytest.raises(ValueError, match="2 values"):
        draw.add([1, 2], 3.0, SeededNoise(0))


@pytest.mark.parametrize("density", ["cauchy", "student", "laplace"])
def test_a_released_scale_says_how_far_off_the_value_is(density):
    """Of 3,000 draws at most a fifth may be farther off, which more than 0.24 of them are never by chance."""
    noise, exact, sensitivity, draws = SeededNoise(0), 10**6, 37.5, 3000
    smooth = calibrate_smooth(
        Median(noise=density, scale_share=0.1, failure=0.2), 1.0, 1e-6, changes=1, doubling=50.0
    )
    off = []
    for _ in range(draws):
        value = smooth.value(exact, sensitivity, 0, 2 * exact, noise)
        off.append(abs(value - exact) / smooth.within(smooth.scale(sensitivity, noise)))
    assert np.mean(np.array(off) > 1) < 0.24
    assert np.mean(np.array(off) > 0.25) > 0.1  # it is no more than some four times what it could be
    secret = calibrate_smooth(Median(noise=density, scale_share=0.0), 1.0, 1e-6, changes=1, doubling=50.0)
    assert secret.within(secret.scale(sensitivity, noise)) is None
    often = calibrate_smooth(
        Median(noise=density, scale_share=0.1, failure=0.99), 1.0, 1e-6, changes=1, doubling=50.0
    )
    assert 0 < often.within(17.0) < smooth.within(17.0)


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_value_and_the_scale_of_its_noise_spend_the_budget_together(changes, share):
    draws = calibrate_smooth(
        Median(noise="laplace", scale_share=share), 1.0, 1e-6, changes=changes, doubling=1.0
    ).draws()
    assert [draw.changes for draw in draws] == [changes] * (2 if share else 1)
    assert sum(draw.cost.epsilon for draw in draws) == pytest.approx(1.0)
    assert 0.5e-6 < sum(draw.cost.delta for draw in draws) <= 1e-6
