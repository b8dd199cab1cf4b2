"""Exact tails of discrete Laplace noise, against sums of its probabilities."""

import math

import numpy as np
import pytest

from core.mechanisms.tails import excess, largest_sum_of_two, some_exceeds


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


@pytest.mark.parametrize(
    ("draws", "scale", "margin", "base"),
    [(1, 8.0, 30, 8.0), (60, 8.0, 56, 8.0), (60, 8.3, 10, 4.0), (5, 2.0, 0, 3.0), (400, 3.0, 40, 20.0)],
)
def test_some_exceeds_is_the_sum_over_the_base_noise(draws, scale, margin, base):
    """And it covers the exact probability, of which it is at most a third more."""
    a, b = math.exp(-1 / scale), math.exp(-1 / base)
    z = np.arange(-3000, 3001)
    beyond = margin + z
    tail = np.where(
        beyond >= 0, a ** (np.maximum(beyond, 0) + 1) / (1 + a), 1 - a ** np.maximum(-beyond, 0) / (1 + a)
    )
    at = (1 - b) / (1 + b) * b ** np.abs(z)
    capped = np.where(beyond < 0, 1.0, np.minimum(1.0, draws * tail))
    bound = some_exceeds(draws, scale, margin, base)
    assert bound == pytest.approx(float(at @ capped))
    exact = float(at @ (1 - (1 - tail) ** draws))
    assert exact <= bound <= 4 / 3 * exact


def test_some_exceeds_of_hardly_any_noise():
    assert some_exceeds(10, 1e-3, 0, 1e-3) < 1e-9


@pytest.mark.parametrize("scales", [(5.0, 1.0), (1.0, 5.0), (6.7, 4.1), (3.0, 3.0), (3.0, 2.9999)])
@pytest.mark.parametrize("failure", [0.9, 0.3, 0.02, 1e-6])
def test_the_sum_of_two_errors_exceeds_its_bound_as_rarely_as_stated(scales, failure):
    """The probability is integrated over the first error, whose density is known."""
    first, second = scales
    bound = largest_sum_of_two(first, second, failure)
    spacing = bound / 200_000
    x = np.arange(200_000) * spacing + spacing / 2
    density = np.exp(-x / first) / first
    exceeds = math.exp(-bound / first) + float((density * np.exp(-(bound - x) / second)).sum() * spacing)
    assert exceeds <= failure * (1 + 1e-5)
    assert exceeds >= failure * 0.98  # equal scales are taken apart by a thousandth
