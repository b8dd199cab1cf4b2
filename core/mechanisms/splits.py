"""Cut an axis into cells by repeated halving, wherever a noisy count says that many records are there."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost
from core.draws import Draw
from core.noise import Noise

Ints = NDArray[np.int64]

_UP = 2.607  # U scale, at most, if a^decay <= 1/2


@dataclass(frozen=True, kw_only=True)
class Splits(Draw):
    """Halve an interval of points, and again every half that seems to hold many records.

    This is PrivTree (Zhang, Xiao and Xie, SIGMOD 2016) for integers. A node of depth i with c records is
    split if b + Z > threshold, where Z is discrete Laplace noise and

        b = max(c - i decay, threshold - decay).

    A node of a single point is never split. So what is spent does not depend on the depth, and many records
    at one point end in a cell of their own.

    Privacy, for one record more. Let a = exp(-1 / scale), and let a node have b = threshold + x before.

    1. The record lies in the nodes of one path from the root. Only their b change, each by at most 1.
    2. In any outcome one node of the path is not split, or it is a single point. That it stays whole
       becomes less likely by a factor of at most e^(1 / scale). All splits become more likely. So no outcome
       becomes less likely by more than that factor.
    3. A split is Pr[Z > -x]. For x <= 0 that is a^(1 - x) / (1 + a), and it grows by the factor
       e^(1 / scale). For x >= 1 it is 1 - a^x / (1 + a), and its logarithm grows by

        f(x) = ln(1 + (1 - a) a^x / (1 + a - a^x)),

       which falls as x grows, and is at most 1 / scale.
    4. If b changes, then x >= -decay. From such a node to its parent x grows by at least decay. So the nodes
       whose b change have x >= -decay, 0, decay, 2 decay, ... from the deepest one up.
    5. So no outcome becomes more likely by more than e to the power of

        U = 2 / scale + f(decay) + f(2 decay) + ....

    Privacy, for one record replaced. It is removed and another one is added. By the removal an outcome
    becomes more likely by at most e^(1 / scale), and less likely by at most e^U. By the addition it becomes
    more likely by at most e^U, and less likely by at most e^(1 / scale). Together both factors are at most
    e^(U + 1 / scale), which is less than the e^(2 U) of group privacy.

    If a^decay is at most 1/2, U is at most 2.607 / scale. A node without records is then split with
    probability below 1/4, so on average such nodes have less than one child that is split, and the cells
    remain few.

    Args:
        scale: of the noise.
        decay: how much more records a node needs than its parent.
        replaced: whether the two changes are a removal and an addition.
    """

    kind: ClassVar[str] = "noisy splits"
    scale: float
    decay: int
    replaced: bool = False

    @classmethod
    def of(cls, what: str, epsilon: float, changes: int = 1) -> "Splits":
        """Return the draw that spends at most `epsilon` between neighbors, with a^decay about 1/2."""
        scale = (_UP + (changes - 1)) / epsilon
        decay = math.ceil(scale * math.log(2))
        return cls(what=what, scale=scale, decay=decay, replaced=changes == 2, changes=changes)

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return 1

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`. After 64 terms of U the others are bounded by a geometric series."""
        a, split = math.exp(-1 / self.scale), 2 / self.scale
        powers = [math.exp(-i * self.decay / self.scale) for i in range(65)]
        split += sum(math.log1p((1 - a) * power / (1 + a - power)) for power in powers[1:])
        return Cost(split + (1 - a) * powers[64] * powers[1] / (1 - powers[1]))

    @property
    def cost(self) -> Cost:
        """See `Draw.cost`; a replacement costs less than two additions."""
        if not self.replaced or (self.changes, self.rate) != (2, 1.0):
            return super().cost
        return Cost(self.cost_of_one().epsilon + 1 / self.scale)

    def edges(
        self, ranks_at: Callable[[Ints], Ints], size: int, threshold: int, most: int, noise: Noise
    ) -> Ints:
        """Release the edges of at most `most` cells of the points 0, ..., size - 1, from 0 to size.

        The halves of one depth are split together. Where this would make more than `most` cells, none of
        them is split.

        Args:
            ranks_at: gives the number of records below each of some points.
            size: number of points, public.
            threshold: public.
            most: public, at least 1.
            noise: where randomness comes from.
        """

        def sample() -> Ints:
            edges = np.array([0, size], dtype=np.int64)
            lows, highs, depth = edges[:1], edges[1:], 0
            while True:
                wide = highs - lows > 1
                lows, highs = lows[wide], highs[wide]
                if not len(lows):
                    return np.sort(edges)
                counts = ranks_at(highs) - ranks_at(lows)
                biased = np.maximum(counts - depth * self.decay, threshold - self.decay)
                split = noise.laplace(biased, self.scale) > threshold
                lows, highs = lows[split], highs[split]
                if len(edges) - 1 + len(lows) > most:
                    return np.sort(edges)
                middles = lows + (highs - lows) // 2
                edges = np.append(edges, middles)
                lows, highs = np.append(lows, middles), np.append(middles, highs)
                depth += 1

        return noise.answer(self, sample, (1.0, size, threshold, most))
