"""A_dist: privacy by exact summation, and the code against those exact distributions."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.mechanisms.a_dist import ADist
from core.secure_noise import SecureNoise
from tests.core.exact import at_least, excess
from tests.core.seeded import SeededNoise


def gap_distribution(gap, best, scale, threshold):
    """Probabilities of releasing candidate 0, candidate 1, nothing."""
    released = float(at_least(np.array([threshold - gap]), scale)[0])
    return np.array([released if best == i else 0.0 for i in (0, 1)] + [1 - released])


def largest_gap_excess(scale, threshold, epsilon):
    """Largest delta over neighbors: two scores, each moving by at most 1."""
    worst = 0.0
    for gap in range(-40, 41):
        for move in range(-2, 3):
            pair = [gap_distribution(abs(g), int(g < 0), scale, threshold) for g in (gap, gap + move)]
            worst = max(worst, excess(*pair, epsilon), excess(*pair[::-1], epsilon))
    return worst


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_it_is_private_exactly(epsilon):
    delta = 0.01
    draw = ADist.of("any", epsilon, delta)
    assert draw.cost.epsilon == pytest.approx(epsilon)
    assert largest_gap_excess(draw.scale, draw.threshold, epsilon) <= draw.cost.delta * (1 + 1e-9)
    assert draw.cost.delta <= delta
    assert largest_gap_excess(draw.scale, draw.threshold - 1, epsilon) > delta
    assert replace(draw, threshold=draw.threshold - 1).cost.delta > delta
    assert largest_gap_excess(draw.scale / 2, draw.threshold, epsilon) > delta


def test_the_printed_one_is_not_private():
    """Scale 1 / epsilon and threshold ln(1 / delta) / epsilon, as sometimes transcribed."""
    epsilon, delta = 1.0, 0.01
    assert largest_gap_excess(1 / epsilon, math.ceil(math.log(1 / delta)), epsilon) > 3 * delta


def test_it_draws_that_distribution():
    """2,000 draws; a halved scale would move the count by over 10 standard deviations."""
    draw = ADist.of("any", 1.0, 0.01)
    gap = draw.threshold - 3
    p = float(at_least(np.array([3]), 2.0)[0])

    def released(noise):
        drawn = [draw.leader(7, gap, noise) for _ in range(2000)]
        assert set(drawn) == {7, None}
        return 2000 - drawn.count(None)

    for noise in (SecureNoise(), SeededNoise(0)):
        assert abs(released(noise) - 2000 * p) < 5 * math.sqrt(2000 * p * (1 - p))
    assert abs(released(SeededNoise(0, factor=0.5)) - 2000 * p) > 5 * math.sqrt(2000 * p * (1 - p))
