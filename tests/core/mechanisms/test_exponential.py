"""The exponential mechanism over runs and candidates against its exact distribution."""

import numpy as np
import pytest

from core.mechanisms.exponential import Exponential
from core.secure_noise import SecureNoise
from tests.core.exact import fits
from tests.core.seeded import SeededNoise


def test_it_weighs_every_point_alike():
    """4,000 draws over 22 points; power over 0.999 against halved noise, seen in the last line."""
    scores, lengths, starts = np.array([2, 4, 1]), np.array([11, 1, 10]), np.array([11, 10, 0])
    draw = Exponential.of("any", 1.1, 2)
    assert draw.scale == pytest.approx(2 / 1.1)
    assert draw.cost.epsilon == pytest.approx(1.1)
    expected = np.exp(np.repeat([1, 4, 2], [10, 1, 11]) / draw.scale)

    def observed(noise):
        drawn = [draw.point(starts, lengths, scores, noise) for _ in range(4000)]
        return np.bincount(drawn, minlength=22)

    assert fits(observed(SecureNoise()), expected)
    assert fits(observed(SeededNoise(3)), expected)
    assert not fits(observed(SeededNoise(3, factor=0.5)), expected)


def test_candidates_in_units():
    """4,000 draws; power over 0.999 against half the unit."""
    scores, draw = np.array([0, 30, 50]), Exponential(what="any", scale=2.0, spread=1)
    expected = np.exp(scores / 20.0)

    def observed(noise, unit):
        return np.bincount([draw.candidate(scores, noise, unit) for _ in range(4000)], minlength=3)

    assert fits(observed(SecureNoise(), 10.0), expected)
    assert fits(observed(SeededNoise(3), 10.0), expected)
    assert not fits(observed(SeededNoise(3), 5.0), expected)
