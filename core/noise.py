"""Where a release gets its randomness: what a source of noise does, and nothing that draws any."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Lengths = Ints | NDArray[np.object_] | Sequence[int]
"""Positive integers, shape (m,); Python integers of any size where int64 does not hold them."""

T = TypeVar("T")


class Noise(Protocol):
    """Where a release gets its randomness."""

    def laplace(self, values: Ints, scale: float) -> Ints:
        """Add discrete Laplace noise, Pr[z] proportional to exp(-|z| / scale), to each value (m,)."""

    def gaussian(self, values: Ints, scale: float) -> Ints:
        """Add discrete Gaussian noise, Pr[z] proportional to exp(-z^2 / (2 scale^2)), to each value (m,)."""

    def select(self, scores: Ints, scale: float) -> int:
        """Index i with probability proportional to exp(scores[i] / scale), scores of shape (m,).

        The exponential mechanism: also the index of the largest score after Gumbel noise of `scale`.
        """

    def select_run(self, scores: Ints, lengths: Lengths, scale: float) -> int:
        """Index i with probability proportional to lengths[i] exp(scores[i] / scale).

        The exponential mechanism over sum(lengths) candidates that come in m runs of equal score.
        """

    def below(self, bound: int) -> int:
        """Uniform integer from 0 to bound - 1; the bound may be of any size."""

    def answer(self, draw: object, sample: Callable[[], T], unit: object = 1.0) -> T:
        """Return what a draw releases.

        Args:
            draw: which one, a `core.draws.Draw`.
            sample: makes the release, by the methods above.
            unit: public, what the draw's scale is a multiple of here.
        """
        return sample()


def log_weights(scores: Ints, lengths: Lengths, scale: float) -> NDArray[np.float64]:
    """Logarithms of lengths exp((scores - max score) / scale), shape (m,), as floats.

    Raises:
        TypeError: scores are not integers that fit into int64.
    """
    signed = np.asarray(scores).astype(np.int64, casting="safe", copy=False)
    behind = signed.max().astype(np.uint64) - signed.view(np.uint64)  # exact, also beyond int64
    whole: Any = np.asarray(lengths)
    if whole.dtype == object:
        logs = np.array([math.log(length) for length in whole])
    else:
        logs = whole.astype(np.float64)
        np.log(logs, out=logs)
    logs -= behind / scale
    return logs
