"""The fullest cell on each of several axes, by stability histograms that are charged as one draw."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost
from core.draws import Draw
from core.mechanisms.stability import StabilityHistogram
from core.neighbors import Neighbors
from core.noise import Noise

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class StabilityAxes(Draw):
    """Release nearly the fullest cell of each axis, or nothing where some axis has none.

    Each of d axes has a `StabilityHistogram` of epsilon e and delta f. Together they spend the smaller
    epsilon of two compositions:
    - basic: epsilon d e and delta d f;
    - advanced: epsilon 2 d e^2 + e sqrt(2 d ln(1 / slack)) and delta d f + slack (Nissim, Stemmer and Vadhan
      2016, Theorem 4.7).

    Args:
        scale: Laplace scale of every count.
        threshold: smallest noisy count that is released.
        l1: L1 sensitivity of the counts of one axis.
        axes: d.
        slack: additional delta of advanced composition.
    """

    kind: ClassVar[str] = "stability histograms"
    scale: float
    threshold: int
    l1: float
    axes: int
    slack: float

    @classmethod
    def of(
        cls,
        what: str,
        epsilon: float,
        delta: float,
        neighbors: Neighbors,
        axes: int,
        slack: float,
    ) -> "StabilityAxes":
        """Return the draw whose histograms are (epsilon, delta)-private each."""
        one = StabilityHistogram.of(what, epsilon, delta, neighbors)
        return cls(what=what, scale=one.scale, threshold=one.threshold, l1=one.l1, axes=axes, slack=slack)

    @property
    def one(self) -> StabilityHistogram:
        """The histogram of one axis."""
        return StabilityHistogram(what=self.what, scale=self.scale, threshold=self.threshold, l1=self.l1)

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return self.l1

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        d, one = self.axes, self.one.cost_of_one()
        advanced = 2 * d * one.epsilon**2 + one.epsilon * math.sqrt(2 * d * math.log(1 / self.slack))
        if d * one.epsilon <= advanced:
            return Cost(d * one.epsilon, d * one.delta)
        return Cost(advanced, d * one.delta + self.slack)

    def fullest(self, axes: Iterable[tuple[Ints, Ints]], noise: Noise) -> tuple[int, ...] | None:
        """Release the key of a cell of every axis, or None.

        Args:
            axes: distinct keys and counts of each axis, both of shape (m,).
            noise: where randomness comes from.
        """

        def sample() -> tuple[int, ...] | None:
            found = [self.one.sampled(keys, counts, noise) for keys, counts in axes]
            return None if None in found else tuple(key for key in found if key is not None)

        return noise.answer(self, sample)
