"""The samplers fed with every word, against probabilities computed apart to 90 digits."""

import bisect
import itertools
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import stats

from core.discrete_noise import DiscreteNoise, Rational, StepTable, discrete_noise, draw_noise, exp_bounds
from core.secure_noise import random_bits
from tests.core.exact import fits

mpmath.mp.dps = 110


class Script:
    """Random bits that are given, one word after the other, then zeros."""

    def __init__(self, *words):
        self._words = list(words)
        self.asked = 0

    def __call__(self, bits, count):
        assert count == 1
        self.asked += bits
        return np.array([self._words.pop(0) if self._words else 0], dtype=np.uint64)


def size_at(place, signed):
    """How far from 0 the step at a place of 0, 1, 2, ... is, or, if they are signed, of 0, 1, -1, 2, ..."""
    return (place + 1) // 2 if signed else place


def step_at(place, signed):
    return size_at(place, signed) * (-1 if signed and place % 2 == 0 else 1)


@cache
def cumulative(rate, power, signed=False):
    """F(0), F(1), ...: sums of exp(-rate |step|^power) over the sum of all, with 90 digits."""
    weights = []
    while not weights or weights[-1] > mpmath.mpf(10) ** -95:
        weights.append(weight(rate, power, size_at(len(weights), signed)))
    total = mpmath.fsum(weights)
    return [part / total for part in itertools.accumulate(weights)]


def weight(rate, power, size):
    return mpmath.exp(-mpmath.mpf(rate.numerator * size**power) / rate.denominator)


@pytest.mark.parametrize("bits", [8, 64, 300])
@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [(0, 1), (1, 3), (1, 2**80), (7, 2), (200, 1), (3 * 2**200, 2**197), (10**9, 1), (1, 10**400)],
)
def test_exponentials_lie_within_their_bounds(numerator, denominator, bits):
    low, high = exp_bounds(Rational(numerator, denominator), bits)
    with mpmath.workdps(600):
        exact = mpmath.exp(-mpmath.mpf(numerator) / denominator) * 2**bits
        assert low <= exact <= high
    assert 0 <= high - low <= 2


TABLES = [
    (Rational(1, 3), 1),
    (Rational(7, 2), 1),
    (Rational(1, 20), 1),
    (Rational(1, 8), 2),
    (Rational(5, 3), 2),
    (Rational(1, 300), 2),
]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("rate", "power"), TABLES)
def test_the_digits_are_those_of_the_distribution(rate, power, signed):
    table = StepTable(rate, power, signed=signed)
    bounds = cumulative(rate, power, signed)[: len(table.digits)]
    assert table.digits.tolist() == [int(mpmath.floor(bound * 2**47)) for bound in bounds]
    assert int(table.digits[-1]) == 2**47 - 1


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("rest", [0, 1, 2**63, 2**64 - 2])
@pytest.mark.parametrize(("rate", "power"), TABLES)
def test_every_word_gives_the_step_that_inversion_gives(rate, power, rest, signed):
    """All 2^12 words of 12 bits, each followed by bits that are given: U is known to 76 bits."""
    table = StepTable(rate, power, first=6, more=6, signed=signed)
    bounds = cumulative(rate, power, signed)
    for first in range(64):
        for more in range(64):
            drawn = table.draw(np.array([first]), Script(more, rest))
            exact = mpmath.mpf(((first << 6 | more) << 64) | rest) / 2**76
            assert drawn[0] == step_at(bisect.bisect_right(bounds, exact), signed)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize(("rate", "power"), TABLES)
def test_bits_are_drawn_until_they_decide(rate, power, words, signed):
    """U starts with the first 47 + 64 `words` bits of F(2); the bits after them decide."""
    table, bits = StepTable(rate, power, signed=signed), 47 + 64 * (words + 1)
    near = int(mpmath.floor(cumulative(rate, power, signed)[2] * 2**bits))
    for shift, place in ((-1, 2), (1, 3)):
        whole = near + shift
        parts = [whole >> 64 * i & (2**64 - 1) for i in reversed(range(words + 1))]
        head = whole >> 64 * (words + 1)
        script = Script(head & (2**32 - 1), *parts)
        assert table.draw(np.array([head >> 32]), script)[0] == step_at(place, signed)
        assert script.asked == 32 + 64 * (words + 1)


@pytest.mark.parametrize("words", [0, 1, 2])
@pytest.mark.parametrize("power", [1, 2])
def test_bits_of_a_coin_are_drawn_until_they_decide(power, words):
    """The coin of the proposal 3 = 4 * 0 + 3 starts with the first 15 + 64 `words` bits of exp(-x)."""
    noise, bits = discrete_noise(700.3, power), 15 + 64 * (words + 1)
    assert noise.low_bits == 2
    near = int(mpmath.floor(weight(noise.rate, power, 3) * 2**bits))
    for shift, keeps in ((-1, True), (0, True), (1, False)):
        whole = near + shift
        parts = [whole >> 64 * i & (2**64 - 1) for i in reversed(range(words + 1))]
        script = Script(0, 3, whole >> 64 * (words + 1), *parts)
        (z,), (kept,) = noise.proposals(1, script)
        assert z == 3
        assert kept == keeps  # the zeros that follow are below those of exp(-x)
        assert script.asked >= 16 + 2 + bits


SMALL = [
    (Rational(1, 3), 1, 1, 7),
    (Rational(1, 6), 1, 2, 7),
    (Rational(1, 90), 2, 2, 7),
]


class Every:
    """Every word, low word and coin once; further bits are the smallest or the largest."""

    def __init__(self, noise, largest):
        shape = 2 << noise.first, 1 << noise.low_bits, 1 << noise.first
        self.words, lows, coins = (axis.ravel() for axis in np.indices(shape))
        self._given = {noise.first + 1: self.words, noise.low_bits: lows, noise.first: coins}
        self._largest = largest

    def __call__(self, bits, count):
        if bits in self._given:
            return self._given.pop(bits).astype(np.uint64)
        most = (1 << bits) - (2 if bits == 64 else 1)  # ones for ever would never be below 1
        return np.full(count, most if self._largest else 0, dtype=np.uint64)


@pytest.mark.parametrize(("rate", "power", "low_bits", "first"), SMALL)
def test_every_word_proposes_as_the_distribution_says(monkeypatch, rate, power, low_bits, first):
    """No z is kept more often than its exact probability, and all of them together hardly less often.

    A proposal counts if it is the same and kept for the smallest and for the largest further bits. Its exact
    probability is exp(-rate |z|^power), over 2 signs, the low words and the sum of the weights of the steps.
    What is not decided is at most 24 intervals of the first bits, and one of each coin. Without low words
    every step is kept; see `test_every_word_gives_the_step_that_inversion_gives`.
    """
    monkeypatch.setattr("core.discrete_noise.exp_bounds", cache(exp_bounds))
    noise = DiscreteNoise(rate, power, low_bits, first=first, more=4)
    (z, kept), (z_high, kept_high) = (
        noise.proposals(len(every.words), every) for every in (Every(noise, False), Every(noise, True))
    )
    surely = z[kept & kept_high & (z == z_high)]
    step = 1 << low_bits
    each = 2 * step * mpmath.fsum(weight(rate, power, step * j) for j in range(600))
    values = np.arange(-600, 601)
    exact = [weight(rate, power, abs(int(value))) / each for value in values]
    counted = [mpmath.mpf(int((surely == value).sum())) / len(z) for value in values]
    assert all(one <= other for one, other in zip(counted, exact, strict=True))
    assert mpmath.fsum(exact) - mpmath.fsum(counted) < 25 / 2**first


LAPLACE, GAUSSIAN = 1, 2


def below(edges, scale, power):
    """Pr[z < edge]; for a large Gaussian by its density, whose error is e^(-2 pi^2 scale^2)."""
    if power == LAPLACE:
        above = np.exp(-np.maximum(edges, 1 - edges) / scale) / (1 + np.exp(-1 / scale))
        return np.where(edges > 0, 1 - above, above)
    if scale > 50:
        return stats.norm.cdf((edges - 0.5) / scale)
    masses = np.exp(-(np.arange(-1000, 1001) ** 2) / (2 * scale**2))
    return (np.cumsum(masses) / masses.sum())[edges + 999]


def agrees(drawn, scale, power):
    """Chi-square at 1e-6 over cells of up to 2.4 scales."""
    edges = np.unique(np.rint(scale * np.linspace(-2.4, 2.4, 25)).astype(np.int64)) + 1
    expected = np.diff(below(edges, scale, power), prepend=0, append=1)
    return fits(np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=len(expected)), expected)


SCALES = (1.2, 7.3, 300.7, 5000.1, 2.0**41 + 0.7, 2.0**55)


@pytest.mark.parametrize("power", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("scale", SCALES)
def test_many_draws_have_the_distribution(scale, power):
    """60,000 draws, chi-square at 1e-6; 7% more or less of the scale is rejected (power above 1 - 1e-6)."""
    drawn = draw_noise(60_000, scale, power, random_bits)
    assert agrees(drawn, scale, power)
    assert not agrees(drawn, 1.07 * scale, power)
    assert not agrees(drawn, scale / 1.07, power)


@pytest.mark.parametrize("power", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("scale", [1.2, 7.3, 5000.1, 2.0**55])
def test_draws_one_by_one_have_the_distribution(scale, power):
    """A single draw uses a coarser table; 6,000 draws, chi-square at 1e-6."""
    drawn = np.concatenate([draw_noise(1, scale, power, random_bits) for _ in range(6000)])
    assert agrees(drawn, scale, power)


@pytest.mark.parametrize("power", [LAPLACE, GAUSSIAN])
def test_low_digits_of_large_noise_are_uniform(power):
    drawn = draw_noise(60_000, 2.0**41 + 0.7, power, random_bits)
    for shift in (0, 10, 28):
        assert fits(np.bincount(drawn >> shift & 31, minlength=32), np.ones(32))


@pytest.mark.parametrize("power", [LAPLACE, GAUSSIAN])
def test_a_tiny_scale_draws_zeros(power):
    for scale in (1e-300, 5e-324, 1e-3):
        assert not draw_noise(1000, scale, power, random_bits).any()


def test_the_scale_is_the_rational_number_that_the_float_is():
    assert discrete_noise(0.1, 1).rate == Rational(2**55, 3602879701896397)
    assert discrete_noise(0.1, 2).rate == Rational(2**110, 2 * 3602879701896397**2)
    assert discrete_noise(3.0, 2).low_bits == 0
    assert discrete_noise(2.0**55, 1).steps.rate == Rational(2**48, 2**55)
    assert discrete_noise(2.0**55, 2).steps.rate == Rational(2**96, 2**111)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", [1000.0, 1e6])
def test_proposals_that_are_kept_at_once_would_be_kept_by_any_later_bits(power, scale):
    """For every step of the table; of the later ones, of which there are few, none is kept at once."""
    noise = discrete_noise(scale, power)
    *kept, later = noise._surely_kept.tolist()
    width = 1 << noise.low_bits
    assert later == 0 < kept[0] and width > 1
    for step, most in enumerate(kept):
        farthest = (width * (step + 1)) ** power - (width * step) ** power
        assert most == 0 or most <= 2**noise.first * weight(noise.rate, 1, farthest)


@pytest.mark.parametrize("count", [0, 1, 3, (1 << 16) - 1, (1 << 16) + 1, 200_000])
@pytest.mark.parametrize("scale", [2.0, 1000.0])
def test_as_many_as_asked_for(count, scale):
    drawn = draw_noise(count, scale, 1, random_bits)
    assert drawn.shape == (count,)
    assert drawn.dtype == np.int64
    halves = drawn[: count // 2], drawn[count // 2 : 2 * (count // 2)]
    assert count < 10 or not np.array_equal(*halves)


def test_noise_beyond_int64_wraps():
    """A step that the table does not list, by a uniform number of many ones."""
    noise = discrete_noise(2.0**55, 1)
    every = iter([np.array([2**16 - 2]), np.array([2**32 - 1]), *[np.array([2**64 - 1])] * 4, np.array([5])])

    def random(bits, count):
        if bits == 15:
            return np.array([0], dtype=np.uint64)
        return next(every).astype(np.uint64) if bits != noise.low_bits else np.array([9], dtype=np.uint64)

    (z,), (kept,) = noise.proposals(1, random)
    assert kept
    assert z % 2**noise.low_bits == 9
