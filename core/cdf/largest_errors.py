"""How large the errors of all counts, and of all ranges, are at most: learned from simulated noise."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PILOTS, TRIALS = 100, 1_000
"""Simulations that set the ratio of both bounds, and others that set their size."""

_DOUBT = 1e-6  # probability with which simulations may mislead; each bound pays for it


@dataclass(frozen=True)
class LargestErrors:
    """Bounds that hold together.

    Args:
        count: every cumulative count is off by at most this.
        range: the count of every range is off by at most this. Ranges from the lowest value on are counts.
    """

    count: float
    range: float


def simulated(errors: Iterable[Floats]) -> Callable[[float], LargestErrors]:
    """Return a function that bounds the largest errors of counts, given the failure probability.

    The errors before isotonic regression are a linear function of the noise, whatever the data. So simulated
    noise shows their distribution, and no data are needed. Isotonic regression makes neither of both figures
    larger: it is monotone, and adds what is added to all counts. So its errors stay between the largest and
    the smallest error, and 0. Rounding adds at most half a record to either side.

    With C the largest error of a count, R that of a range, and c, r their medians in the first simulations,
    X = max(C / c, R / r) is the figure whose quantile is sought among the other simulations. With probability
    1 - failure X is at most its true quantile. That is above the k-th smallest of m simulations only if k of
    them are below it, and the number of these is binomial. So k is chosen such that this has probability
    1e-6, which the bound pays for.

    Args:
        errors: of all counts, shape (size,), one array for each simulation. The first `PILOTS` of them set
            the ratio of both bounds.

    Returns:
        A function of the failure probability. Where that is too small for so many simulations, it returns
        infinite bounds.
    """
    sides = np.array([(each.max(), -each.min()) for each in errors])
    above, below = np.floor(sides.clip(0) + 0.5).T
    counts, ranges = np.maximum(above, below), above + below
    count, range_ = (max(1.0, float(np.median(each[:PILOTS]))) for each in (counts, ranges))
    both = np.sort(np.maximum(counts / count, ranges / range_)[PILOTS:])

    def bound(failure: float) -> LargestErrors:
        smaller = 1 - failure + _DOUBT
        rank = int(scipy.stats.binom.isf(_DOUBT, len(both), smaller)) + 1 if smaller < 1 else len(both) + 1
        if rank > len(both):
            return LargestErrors(math.inf, math.inf)
        return LargestErrors(count * float(both[rank - 1]), range_ * float(both[rank - 1]))

    return bound


def made_up(scale: float, draws: int, rng: np.random.Generator) -> Floats:
    """Return public discrete Laplace noise, the difference of two geometric variables, shape (draws,)."""
    if scale == 0:
        return np.zeros(draws)
    first, second = (np.floor(rng.exponential(scale, draws)) for _ in range(2))
    return np.asarray(first - second)
