"""Exact tails of discrete Laplace noise, against sums of its probabilities."""

import math

import numpy as np
import pytest

from core.mechanisms.tails import (
    excess,
    excess_of_sum,
    largest_of_sums,
    largest_sum_of_two,
    rounded_deviation,
    some_exceeds,
    some_sum_exceeds,
    sum_exceeds,
    sum_of_errors,
    tail_of_sum,
    variance,
)


@pytest.mark.parametrize("scale", [0.1, 0.7, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("failure", [0.6, 0.3, 0.1, 0.01, 1e-6])
def test_the_excess_is_the_smallest_that_fails_so_rarely(scale, failure):
    a = math.exp(-1 / scale)
    support = np.arange(-2000, 2001)
    mass = (1 - a) / (1 + a) * a ** np.abs(support)
    bound = excess(scale, failure)
    assert mass[support > bound].sum() <= failure * (1 + 1e-9)
    assert bound == 0 or mass[support > bound - 1].sum() > failure


@pytest.mark.parametrize("noises", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [0.1, 0.7, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("failure", [0.4, 0.1, 0.01, 1e-6])
def test_the_excess_of_a_sum_is_the_smallest_that_fails_so_rarely(noises, scale, failure):
    a = math.exp(-1 / scale)
    one = (1 - a) / (1 + a) * a ** np.abs(np.arange(-2000, 2001))
    support, mass = np.arange(-2000, 2001), one
    for _ in range(noises - 1):
        support, mass = np.arange(support[0] - 2000, support[-1] + 2001), np.convolve(mass, one)
    bound = excess_of_sum(noises, scale, failure)
    assert mass[support > bound].sum() <= failure * (1 + 1e-9)
    assert bound == 0 or mass[support > bound - 1].sum() > failure
    bound = largest_of_sums(3, noises, scale, failure)
    assert 1 - mass[np.abs(support) <= bound].sum() ** 3 <= failure * (1 + 1e-9)
    assert bound == 0 or 1 - mass[np.abs(support) <= bound - 1].sum() ** 3 > failure * (1 - 1e-6)
    for unit in (1, 2, 7):
        rounded = np.sign(support) * np.floor(np.abs(support) / unit + 0.5)
        exact = math.sqrt((mass * rounded**2).sum())
        assert rounded_deviation(noises, scale, unit) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("noises", [1, 2, 3])
def test_the_tail_of_a_sum_of_any_scale(noises):
    """Against sums of probabilities for small scales, and against the continuous law for a huge one."""
    for scale in (0.3, 2.0, 9.0):
        a = math.exp(-1 / scale)
        one = (1 - a) / (1 + a) * a ** np.abs(np.arange(-1000, 1001))
        mass = one
        for _ in range(noises - 1):
            mass = np.convolve(mass, one)
        exact = mass[::-1].cumsum()[::-1][len(mass) // 2 :][:200]
        assert tail_of_sum(noises, scale, np.arange(200.0)) == pytest.approx(exact, rel=1e-9, abs=1e-14)
    y, scale = np.array([0.5, 3.0, 40.0]), 1e9
    polynomial = {1: 1, 2: 1 + y / 2, 3: 1 + 5 * y / 8 + y**2 / 8}[noises]
    assert tail_of_sum(noises, scale, y * scale) == pytest.approx(np.exp(-y) * polynomial / 2, rel=1e-7)


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


@pytest.mark.parametrize(("draws", "scale"), [(1, 0.3), (1, 5.0), (3, 2.0), (40, 2.2), (40, 30.0)])
def test_the_tail_of_a_sum_is_exact_and_below_the_bound_of_chernoff(draws, scale):
    a, support = math.exp(-1 / scale), np.arange(-4000, 4001)
    one, mass = (1 - a) / (1 + a) * a ** np.abs(support), np.ones(1)
    for _ in range(draws):
        mass = np.convolve(mass, one)
        cut = max(0, (len(mass) - len(support)) // 2)
        mass = mass[cut : len(mass) - cut]
    bounds = np.array([0.0, 0.5, 1.0, 3.0, 20.0, 100.0, 3000.0])
    expected = [mass[len(mass) // 2 + 1 + math.floor(bound) :].sum() for bound in bounds]
    assert sum_exceeds(draws, scale, bounds) == pytest.approx(expected, rel=1e-6, abs=1e-11)
    loose = some_sum_exceeds(np.array([draws * variance(scale)]), scale, bounds)
    assert (2 * np.array(expected) <= loose + 1e-12).all()


def test_a_sum_of_too_wide_a_law_is_bounded_by_chernoff():
    bound = np.array([4e5, 2e6])
    assert sum_exceeds(100, 1e5, bound) == pytest.approx(
        some_sum_exceeds(np.array([100 * variance(1e5)]), 1e5, bound) / 2
    )


def test_sums_of_equal_variance_count_as_often_as_they_are_there():
    each, bounds = np.array([3.0, 3.0, 3.0, 9.0]), np.array([1.0, 10.0])
    assert some_sum_exceeds(each, 2.0, bounds) == pytest.approx(
        some_sum_exceeds(np.array([3.0, 9.0]), 2.0, bounds, np.array([3.0, 1.0]))
    )


@pytest.mark.parametrize("failure", [0.3, 0.1, 0.001])
def test_the_sum_of_two_errors_is_that_of_independent_ones(failure):
    """Against the exact law of a sum of integers: no smaller, and at most one step larger."""
    steps = np.arange(200)
    first, second = np.minimum(1, 3 * 0.9 ** (steps + 1)), np.minimum(1, 0.8 ** (steps + 1))

    def law(tail):
        return -np.diff(np.append(1.0, tail))  # Pr[X = 0], Pr[X = 1], ...

    exact = 1 - np.cumsum(np.convolve(law(first), law(second)))[:200]
    smallest = int(np.argmax(exact <= failure))
    assert smallest <= sum_of_errors(first, second, failure) <= smallest + 1
