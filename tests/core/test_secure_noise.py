"""Statistical tests of the real noise: flake rate at most 1e-6 each, power stated."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from core.draws import Laplace
from core.secure_noise import SecureNoise, _happens, random_bits, secret_salt
from tests.core.exact import FLAKE
from tests.core.exact import fits as agrees
from tests.core.seeded import SeededNoise

NOISE = SecureNoise()
DRAWS = 20_000
SCALE = 7.3


def discrete_laplace_tail(scale, cut):
    """Pr[|Z| > cut] = 2 a^(cut + 1) / (1 + a) with a = exp(-1 / scale)."""
    a = math.exp(-1 / scale)
    return 2 * a ** (cut + 1) / (1 + a)


def discrete_gaussian_tail(scale, cut):
    support = np.arange(-20 * math.ceil(scale), 20 * math.ceil(scale) + 1)
    mass = np.exp(-(support**2) / (2 * scale**2))
    return float(mass[np.abs(support) > cut].sum() / mass.sum())


CASES = [("laplace", discrete_laplace_tail), ("gaussian", discrete_gaussian_tail)]


def fits(kind, tail, claimed, factor):
    """Whether draws at factor * claimed scale pass as draws at the claimed scale (level 1e-6)."""
    draws = getattr(NOISE, kind)(np.zeros(DRAWS, dtype=np.int64), claimed * factor)
    assert draws.dtype == np.int64
    cut = math.ceil(1.5 * claimed)
    outside = int((np.abs(draws) > cut).sum())
    return stats.binomtest(outside, DRAWS, tail(claimed, cut)).pvalue > 1e-6


@pytest.mark.parametrize(("kind", "tail"), CASES)
def test_noise_has_the_claimed_scale(kind, tail):
    assert fits(kind, tail, SCALE, 1.0)


@pytest.mark.parametrize(("kind", "tail"), CASES)
@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
def test_another_scale_is_rejected(kind, tail, factor):
    """Power: a scale 10% off shifts the tail by over 10 standard errors, so misses have p < 1e-6."""
    assert not fits(kind, tail, SCALE, factor)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_is_unbiased_and_added_to_each_value(kind):
    values = np.array([0, 10**6, -(10**12)] * 3000, dtype=np.int64)
    moved = getattr(NOISE, kind)(values, SCALE) - values
    assert abs(moved.mean()) < 5 * math.sqrt(2) * SCALE / math.sqrt(len(values))
    assert len(np.unique(moved)) > 20


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_selection_is_the_exponential_mechanism(factor):
    """Pr[i] is proportional to exp(score / scale); half the scale is rejected with power above 1 - 1e-6."""
    scores, scale = np.array([0, 3, 6], dtype=np.int64), 4.0
    draws = 6000
    chosen = [NOISE.select(scores, scale * factor) for _ in range(draws)]
    weights = np.exp(scores / scale)
    expected = weights / weights.sum() * draws
    accepted = stats.chisquare(np.bincount(chosen, minlength=3), expected).pvalue > 1e-6
    assert accepted == (factor == 1.0)


RUNS = (np.array([0, -3, 5, 2]), np.array([4, 40, 1, 7]), 3.0)


@pytest.mark.parametrize("noise", [NOISE, SeededNoise(3)])
def test_runs_are_chosen_by_length_and_score(noise):
    """10,000 draws; half or twice the scale and forgotten lengths are rejected (power above 1 - 1e-6)."""
    scores, lengths, scale = RUNS
    drawn = np.bincount([noise.select_run(*RUNS) for _ in range(10_000)], minlength=4)
    assert agrees(drawn, lengths * np.exp(scores / scale))
    for wrong in (
        lengths * np.exp(scores / (2 * scale)),
        lengths * np.exp(2 * scores / scale),
        np.exp(scores / scale),
    ):
        assert not agrees(drawn, wrong)


@pytest.mark.parametrize("noise", [NOISE, SeededNoise(4)])
def test_runs_of_any_length(noise):
    """Lengths of 4,000 bits whose weights differ by small factors; 4,000 draws, chi-square at 1e-6."""
    lengths = np.array([2**4000, 3 * 2**4000, 5], dtype=object)
    scores = np.array([7, 0, 2770], dtype=np.int64)
    drawn = np.bincount([noise.select_run(scores, lengths, 7.0) for _ in range(4000)], minlength=3)
    assert drawn[2] == 0
    assert agrees(drawn[:2], np.array([math.e, 3.0]))
    assert noise.select_run(scores, lengths, 0.9) == 2


def test_a_run_without_rivals_and_a_hopeless_one():
    assert NOISE.select_run(np.array([-(2**60)]), np.array([2**62]), 1e-3) == 0
    scores = np.array([0, -(2**61)])
    assert {NOISE.select_run(scores, np.array([1, 2**62]), 1e-6) for _ in range(50)} == {0}
    many = np.zeros(1 << 20, dtype=np.int64)
    assert 0 <= NOISE.select_run(many, np.full(1 << 20, 2**40), 1.0) < 1 << 20


@pytest.mark.parametrize("noise", [NOISE, SeededNoise(5)])
def test_integers_below_a_bound_are_uniform(noise):
    drawn = np.bincount([noise.below(5) for _ in range(5000)], minlength=5)
    assert agrees(drawn, np.ones(5))
    assert {noise.below(1) for _ in range(9)} == {0}
    high = sum(noise.below(3 << 4000) >= 1 << 4001 for _ in range(4000))
    assert stats.binomtest(high, 4000, 1 / 3).pvalue > FLAKE


def test_salts_differ():
    assert len({secret_salt() for _ in range(100)}) == 100


def test_noise_hides_sums_that_wrapped():
    """Added modulo 2^64, noise about the largest integer is noise; saturated, it would be told apart."""
    largest = np.full(200, 2**63 - 1)
    for noisy in (SecureNoise().laplace(largest, 50.0), SecureNoise().gaussian(largest, 50.0)):
        moved = noisy - largest
        assert (moved > 0).any()
        assert (moved < 0).any()
        assert np.abs(moved).max() < 50 * 60


@pytest.mark.parametrize("draw", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [2.0**57, 2.0**61, 2.0**62, 2.0**80, 1e300, np.inf])
@pytest.mark.parametrize("shape", [(0,), (4000,), (2000, 2)])
def test_noise_of_any_scale_is_no_error(draw, scale, shape):
    """An error would tell whether a number was there. Modulo 2^64, the noise is about even over int64."""
    noise = getattr(SecureNoise(), draw)(np.full(shape, 2**62), scale)
    assert noise.shape == shape and noise.dtype == np.int64
    if noise.size and scale >= 2.0**62:
        counts = np.bincount((noise.ravel().view(np.uint64) >> np.uint64(61)).astype(int), minlength=8)
        assert stats.chisquare(counts).pvalue > FLAKE / 10


@pytest.mark.parametrize("draw", ["laplace", "gaussian"])
def test_large_noise_that_wraps_is_the_same_modulo_2_to_the_64(draw):
    """At 2^61 the sum is noise alone but for what wraps: a shift by 2^61 is as likely as the density says."""
    noise = getattr(SecureNoise(), draw)(np.zeros(20_000, np.int64), 2.0**61)
    reach = np.arange(-40, 41) * 8.0
    density = (lambda x: np.exp(-np.abs(x))) if draw == "laplace" else (lambda x: np.exp(-(x**2) / 2))
    ends = np.linspace(-4, 4, 9)  # in scales; the range of int64 is 8 of them
    fine = (np.arange(8000) + 0.5) / 1000 - 4
    weight = sum(density(fine + shift) for shift in reach).reshape(8, 1000).sum(axis=1)
    counts = np.histogram(noise / 2.0**61, ends)[0]
    assert stats.chisquare(counts, weight / weight.sum() * counts.sum()).pvalue > FLAKE / 10


@pytest.mark.parametrize("bits", [1, 7, 8, 15, 16, 32, 33, 47, 64])
def test_random_bits_are_uniform(bits):
    """The highest, the lowest and a middle bit of 4,000 integers; each count at 1e-7."""
    drawn = random_bits(bits, 4000)
    assert drawn.shape == (4000,)
    assert int(drawn.max()) < 1 << bits
    for place in {0, bits // 2, bits - 1}:
        ones = sum(int(word) >> place & 1 for word in drawn)
        assert stats.binomtest(ones, 4000, 0.5).pvalue > FLAKE / 10


@pytest.mark.parametrize("draw", ["laplace", "gaussian"])
def test_noise_without_a_scale_is_refused(draw):
    for scale in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="is not above 0"):
            getattr(SecureNoise(), draw)(np.array([0]), scale)


@pytest.mark.parametrize("draw", ["laplace", "gaussian"])
def test_values_of_any_shape_get_noise_each(draw):
    noisy = getattr(SecureNoise(), draw)(np.zeros((3, 40), dtype=np.int64), 1e6)
    assert noisy.shape == (3, 40)
    assert len(np.unique(noisy)) > 100
    assert getattr(SecureNoise(), draw)(np.zeros(0, dtype=np.int64), 1.0).shape == (0,)


def test_scores_at_both_ends_of_int64_are_compared_exactly() -> None:
    """The better one wins but for e^-2^62; narrower integers are compared like int64, others are refused."""
    noise = SecureNoise()
    for scores in (np.array([2**62 + 5, -(2**62) - 5]), np.array([2**63 - 1, -(2**63)])):
        assert {noise.select(scores, 1.0) for _ in range(20)} == {0}
        assert {noise.select(scores[::-1], 1.0) for _ in range(20)} == {1}
    assert {noise.select(np.array([100, -100], dtype=np.int8), 1.0) for _ in range(20)} == {0}
    for wrong in (np.array([0.5, -0.5]), np.array([0, 5], dtype=np.uint64)):
        with pytest.raises(TypeError):
            noise.select(wrong, 1.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_selection_of_no_scale_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale"):
        SecureNoise().select(np.array([1, 2]), scale)


@pytest.mark.parametrize("scale", [-1.0, math.nan])
def test_a_draw_of_no_scale_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        Laplace(what="a count", scale=scale, sensitivity=1.0).add(np.array([7]), SecureNoise())


COINS = [(1, 3, 0, 1.0), (2**59, 2**59 + 12345, -7, 3.3), (5, 7, -(10**6), 1e5), (3**50, 3**50, -1, 1.1e12)]


@pytest.mark.parametrize("coin", COINS)
def test_a_coin_is_decided_by_as_many_bits_as_it_takes(coin, monkeypatch):
    """Right below and right above its probability, by words of 64 bits: one word decides, or two do."""
    numerator, denominator, score, scale = coin
    with localcontext(prec=200):
        chance = Decimal(numerator) / denominator * (Decimal(score) / Decimal(scale)).exp()
        first, second = divmod(int(chance * 2**128), 2**64)
    for words, happens in (
        ([first - 1], True),
        ([first + 1], False),
        ([first, second - 1], True),
        ([first, second + 1], False),
    ):
        left = list(words)
        monkeypatch.setattr("core.secure_noise.secrets.randbits", lambda bits, left=left: left.pop(0))
        assert _happens(*coin) == happens and not left


@pytest.mark.parametrize("scale", [0.7, 3.0, 1e9])
def test_a_run_is_proposed_and_kept_in_proportion_to_its_weight(scale, monkeypatch):
    """Exactly: proposals are as likely as integers below their sum, and coins make up for the rest."""
    rng = np.random.default_rng(0)
    scores, lengths = rng.integers(-4, 4, 40), rng.integers(1, 9, 40)
    scores[17], lengths[17], coins, sums = 4, 9, [], []
    monkeypatch.setattr("core.secure_noise._happens", lambda *coin: coins.append(coin) or True)

    def proposed(value):
        monkeypatch.setattr("core.secure_noise.secrets.randbelow", lambda bound: sums.append(bound) or value)
        return NOISE.select_run(scores, lengths, scale)

    start, units = 0, set()
    for run in range(40):
        assert proposed(start) == run
        numerator, denominator, score, of = coins[-1]
        proposals, rest = divmod(denominator, 9)
        assert (rest, score, of) == (0, scores[run] - 4, scale)
        assert proposed(start + proposals - 1) == run
        start += proposals
        units.add(Fraction(numerator * proposals, denominator) * 9 / int(lengths[run]))
        with localcontext(prec=60):
            chance = Decimal(numerator) / denominator * (Decimal(score) / Decimal(scale)).exp()
        assert 0.999 < chance <= 1
    assert set(sums) == {start} and len(units) == 1


def test_a_salt_has_128_bits():
    assert len(secret_salt()) == 16
