"""Stability histograms: noisy counts of the cells that hold records, released from a threshold on."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost
from core.draws import Draw
from core.neighbors import Neighbors
from core.noise import Noise

Ints = NDArray[np.int64]
Keys = Ints | NDArray[np.object_]


@dataclass(frozen=True, kw_only=True)
class StabilityHistogram(Draw):
    """Laplace noise on the count of every occupied cell; counts from `threshold` on are released.

    Privacy. One record is in one cell.
    - The counts of cells that hold records in both of two neighbors differ by at most `l1` in L1 norm.
      That costs epsilon = l1 / scale.
    - A cell that holds the changed record alone is released with probability
      delta = Pr[1 + Z >= threshold] = a^(threshold - 1) / (1 + a), with a = exp(-1 / scale).
    - Under `replace_one` one cell may vanish and another one appear. Outputs with the first cell are
      impossible after the change, and outputs with the second one are impossible before it. In either
      direction only one of these events counts, so delta does not double.
    Sources: Korolova et al. 2009; Vadhan 2017.

    Args:
        scale: Laplace scale of every count; 0 where neighbors have equal counts, and no noise is added.
        threshold: smallest noisy count that is released.
        l1: L1 sensitivity of the counts.
    """

    kind: ClassVar[str] = "stability histogram"
    scale: float
    threshold: int
    l1: float

    @classmethod
    def of(
        cls, what: str, epsilon: float, delta: float, neighbors: Neighbors, **more: Any
    ) -> "StabilityHistogram":
        """Return the draw with the smallest threshold that is (epsilon, delta)-private.

        Args:
            what: see `Draw`.
            epsilon: pure part.
            delta: additive part, in (0, 1/2).
            neighbors: the relation.
            more: further fields.
        """
        l1 = neighbors.changes
        rate = epsilon / l1
        threshold = 1 + max(0, math.ceil(math.log(1 / (delta * (1 + math.exp(-rate)))) / rate))
        return cls(what=what, scale=l1 / epsilon, threshold=threshold, l1=l1, **more)

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
        if not self.l1:
            return Cost()
        rate = 1 / self.scale
        return Cost(self.l1 / self.scale, math.exp(-rate * (self.threshold - 1)) / (1 + math.exp(-rate)))

    def released(self, keys: Ints, counts: Ints, noise: Noise) -> tuple[Ints, Ints]:
        """Release the keys of all cells that reach the threshold, and their noisy counts.

        Args:
            keys: shape (m,), distinct.
            counts: shape (m,); a count of 0 counts as an empty cell.
            noise: where randomness comes from.
        """

        def sample() -> tuple[Ints, Ints]:
            occupied, noisy = _where(counts > 0, keys, counts)
            if self.scale and len(noisy):
                noisy = noise.laplace(noisy, self.scale)
            return _where(noisy >= self.threshold, occupied, noisy)

        return noise.answer(self, sample)

    def fullest(self, keys: Keys, counts: Ints, noise: Noise) -> int | None:
        """Release the key of the largest noisy count, or None where no cell reaches the threshold.

        Let M be the largest count of at most m occupied cells, and b = ceil(scale ln(m / failure)). With
        probability 1 - failure a cell is found if M >= threshold + b, and it holds at least M - 2 b records.

        Args:
            keys: shape (m,), distinct integers of any size.
            counts: shape (m,); a count of 0 counts as an empty cell.
            noise: where randomness comes from.
        """
        return noise.answer(self, lambda: self.sampled(keys, counts, noise))

    def sampled(self, keys: Keys, counts: Ints, noise: Noise) -> int | None:
        """Draw what `fullest` releases, as a part of a larger draw."""
        occupied = np.flatnonzero(counts > 0)
        if not len(occupied):
            return None
        noisy = noise.laplace(counts[occupied], self.scale)
        best = int(np.argmax(noisy))
        return int(keys[occupied[best]]) if noisy[best] >= self.threshold else None

    def needs(self, cells: int, failure: float) -> int:
        """Return the count at which the fullest of `cells` is released with probability 1 - `failure`."""
        return self.threshold + math.ceil(self.scale * math.log(cells / failure))


def _where(true: NDArray[np.bool_], keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the keys and counts where something is true, without a copy where it always is."""
    return (keys, counts) if true.all() else (keys[true], counts[true])
