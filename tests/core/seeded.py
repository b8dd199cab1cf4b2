"""Reproducible noise for tests: the distributions of `SecureNoise`, from a numpy generator."""

import math

import numpy as np
from numpy.typing import NDArray

from core.noise import Lengths, Noise, log_weights

Ints = NDArray[np.int64]


class SeededNoise(Noise):
    """A `core.noise.Noise` that repeats.

    The Laplace noise is exactly the discrete one; the Gaussian is a rounded continuous one, so tests of
    the noise itself must use `SecureNoise`.

    Args:
        seed: of the generator.
        factor: multiplies every scale; 0 leaves the values as they are.
    """

    def __init__(self, seed: int, factor: float = 1.0) -> None:
        self._rng = np.random.default_rng(seed)
        self._factor = factor

    def laplace(self, values: Ints, scale: float) -> Ints:
        """Add the difference of two geometric variables."""
        if self._factor == 0:
            return np.array(values)
        stop = -math.expm1(-1 / (scale * self._factor))
        up, down = self._rng.geometric(stop, size=(2, *np.shape(values)))
        return np.asarray(values + up - down, dtype=np.int64)

    def gaussian(self, values: Ints, scale: float) -> Ints:
        """Add rounded Gaussian noise."""
        noise = np.rint(self._rng.normal(scale=scale * self._factor, size=np.shape(values)))
        return np.asarray(values + noise.astype(np.int64), dtype=np.int64)

    def select(self, scores: Ints, scale: float) -> int:
        """Index of the largest score after Gumbel noise."""
        scores = np.asarray(scores)
        noise = self._rng.gumbel(scale=scale * self._factor, size=scores.shape)
        return int(np.argmax((scores - scores.max()) + noise))

    def select_run(self, scores: Ints, lengths: Lengths, scale: float) -> int:
        """Index of the largest logarithm of a run's weight after standard Gumbel noise."""
        if self._factor == 0:
            return int(np.argmax(scores))
        weights = log_weights(scores, lengths, scale * self._factor)
        return int(np.argmax(weights + self._rng.gumbel(size=weights.shape)))

    def below(self, bound: int) -> int:
        """Uniform integer, by rejection."""
        size = (bound.bit_length() + 7) // 8
        most = (1 << 8 * size) // bound * bound
        while True:
            drawn = int.from_bytes(self._rng.bytes(size), "little")
            if drawn < most:
                return drawn % bound
