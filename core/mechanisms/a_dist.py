"""A_dist: release the best of several candidates, or nothing if it does not lead clearly."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from core.budget import Cost
from core.draws import Draw
from core.noise import Noise


@dataclass(frozen=True, kw_only=True)
class ADist(Draw):
    """Release the candidate of the best score if its noisy lead over the second reaches a threshold.

    Privacy. Scores have sensitivity 1, so the gap between the best score and the second has sensitivity 2.
    - If neighbors have the same best candidate, only the gap changes. That costs epsilon = 2 / scale.
    - If they have different ones, both gaps are at most 2. Each best candidate is then released with
      probability at most delta = Pr[2 + Z >= threshold] = a^(threshold - 2) / (1 + a), where
      a = exp(-1 / scale).
    Source: Smith and Thakurta 2013. The scale 1 / epsilon, which is sometimes printed, is not private.

    Args:
        scale: Laplace scale of the gap.
        threshold: smallest noisy gap at which the best is released.
    """

    kind: ClassVar[str] = "A_dist"
    scale: float
    threshold: int

    @classmethod
    def of(cls, what: str, epsilon: float, delta: float, **more: Any) -> "ADist":
        """Return the draw with the smallest threshold that is (epsilon, delta)-private.

        The threshold is 2 + ceil((2 / epsilon) ln(1 / (delta (1 + a)))) with a = exp(-epsilon / 2). With
        continuous noise it would be 2 + (2 / epsilon) ln(1 / (2 delta)).
        """
        a = math.exp(-epsilon / 2)
        threshold = 2 + max(0, math.ceil(2 / epsilon * math.log(1 / (delta * (1 + a)))))
        return cls(what=what, scale=2 / epsilon, threshold=threshold, **more)

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return 2

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        a = math.exp(-1 / self.scale)
        return Cost(2 / self.scale, math.exp(-(self.threshold - 2) / self.scale) / (1 + a))

    def leader(self, best: int, gap: int, noise: Noise) -> int | None:
        """Release the best candidate, or None.

        Args:
            best: the candidate, by a name that does not depend on the data.
            gap: its score minus that of the second.
            noise: where randomness comes from.
        """

        def sample() -> int | None:
            noisy = noise.laplace(np.array([gap], dtype=np.int64), self.scale)[0]
            return best if noisy >= self.threshold else None

        return noise.answer(self, sample)
