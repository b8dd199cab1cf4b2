"""Noise that notes what it is asked for."""

import numpy as np
from numpy.typing import NDArray

from core.noise import Lengths, Noise

Ints = NDArray[np.int64]


class RecordingNoise(Noise):
    """Passes every draw on, and notes (kind, values, scale) in `calls`, and lengths and bounds beside."""

    def __init__(self, inner: Noise) -> None:
        self._inner = inner
        self.calls: list[tuple[str, Ints, float]] = []
        self.lengths: list[list[int]] = []
        self.bounds: list[int] = []

    def laplace(self, values: Ints, scale: float) -> Ints:
        """See `core.noise.Noise.laplace`."""
        self.calls.append(("laplace", np.array(values), scale))
        return self._inner.laplace(values, scale)

    def gaussian(self, values: Ints, scale: float) -> Ints:
        """See `core.noise.Noise.gaussian`."""
        self.calls.append(("gaussian", np.array(values), scale))
        return self._inner.gaussian(values, scale)

    def select(self, scores: Ints, scale: float) -> int:
        """See `core.noise.Noise.select`."""
        self.calls.append(("select", np.array(scores), scale))
        return self._inner.select(scores, scale)

    def select_run(self, scores: Ints, lengths: Lengths, scale: float) -> int:
        """See `core.noise.Noise.select_run`."""
        self.calls.append(("select_run", np.array(scores), scale))
        self.lengths.append([int(length) for length in lengths])
        return self._inner.select_run(scores, lengths, scale)

    def below(self, bound: int) -> int:
        """See `core.noise.Noise.below`."""
        self.bounds.append(bound)
        return self._inner.below(bound)
