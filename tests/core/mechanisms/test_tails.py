"""Exact tails of discrete Laplace noise, against sums of its probabilities."""

import math

import numpy as np
import pytest

from core.mechanisms.tails import excess


@pytest.mark.parametrize("scale", [0.1, 0.7, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("failure", [0.6, 0.3, 0.1, 0.01, 1e-6])
def test_the_excess_is_the_smallest_that_fails_so_rarely(scale, failure):
    a = math.exp(-1 / scale)
    support = np.arange(-2000, 2001)
    mass = (1 - a) / (1 + a) * a ** np.abs(support)
    bound = excess(scale, failure)
    assert mass[support > bound].sum() <= failure * (1 + 1e-9)
    assert bound == 0 or mass[support > bound - 1].sum() > failure


def test_no_noise_exceeds_nothing():
    assert excess(0.0, 0.1) == 0
