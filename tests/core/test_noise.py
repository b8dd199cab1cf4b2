"""Statistical tests of the real noise: flake rate at most 1e-6 each, power stated."""

import math

import numpy as np
import pytest
from scipy import stats

from core.noise import SecureNoise, secret_salt

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


def test_salts_differ():
    assert len({secret_salt() for _ in range(100)}) == 100
