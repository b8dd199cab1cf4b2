"""Exact output distributions of small mechanisms, privacy by summation, and a test of goodness of fit."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

FLAKE = 1e-6  # probability that a statistical test fails on right code


def laplace_mass(scale: float, reach: int) -> tuple[NDArray[np.int64], Floats]:
    """Support -reach, ..., reach of discrete Laplace noise and its probabilities; the tails are dropped."""
    a = math.exp(-1 / scale)
    support = np.arange(-reach, reach + 1)
    return support, (1 - a) / (1 + a) * a ** np.abs(support)


def at_least(values: NDArray[np.int64], scale: float) -> Floats:
    """Pr[Z >= value] of discrete Laplace noise Z."""
    a = math.exp(-1 / scale)
    positive = a ** np.maximum(values, 0) / (1 + a)
    negative = 1 - a ** np.maximum(1 - values, 1) / (1 + a)
    return np.where(values > 0, positive, negative)


def excess(p: Floats, q: Floats, epsilon: float) -> float:
    """Smallest delta such that p(T) <= e^epsilon q(T) + delta for every set of outputs T."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def fits(observed: NDArray[np.int64], expected: Floats) -> bool:
    """Chi-square test at `FLAKE`: whether counts agree with probabilities, each expected at least 5 times."""
    expected = expected / expected.sum() * observed.sum()
    assert expected.min() >= 5
    statistic = ((observed - expected) ** 2 / expected).sum()
    return bool(statistic <= stats.chi2.isf(FLAKE, len(expected) - 1))
