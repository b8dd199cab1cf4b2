"""A random path down the binary tree, which prefers heavy children."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.budget import Cost
from core.draws import Draw
from core.mechanisms.tree_paths import Node, path, path_to
from core.noise import Noise


@dataclass(frozen=True, kw_only=True)
class RandomPath(Draw):
    """Walk down to a leaf or the first node of weight at most `trim`: children weigh exp(rate weight).

    Neighbors (`replace_one`) need not stop at the same level. What is private is the way down as far as both
    go: for a set of paths, count those of the other database that continue them or are continued by them.
    Paths one of which continues the other embed as neighbors (`core.mechanisms.tree_paths.embed`), and
    nothing but what is drawn from that embedding may be released.

    With n the most records, epsilon is rate (3 + e^rate + log_{4/3}(n / trim)) for trim >= 2 ln(n) / rate:
    neighbors differ in one record's way down. A step whose other child has no less than the chosen one's
    weight minus ln(n) / rate shrinks the weight to at most 3/4, which happens at most 1 + log_{4/3}(n / trim)
    times, and costs at most `rate`. All other steps cost e^rate - 1 together, as their other child has
    probability at most 1 / n. The record may come and go, which adds twice `rate`. That the cost is not of
    order `rate` alone is seen on a balanced tree. delta is n e^(-rate (trim - 2)): a path enters a child
    of weight 1 above `trim`. (Kaplan, Ligett, Mansour, Naor and Stemmer 2020.)

    Args:
        path_rate: children are weighed by exp(path_rate weight).
        records: most records.
        trim: weight at which paths stop.
    """

    kind: ClassVar[str] = "random path"
    path_rate: float
    records: int
    trim: int

    @property
    def noise_scale(self) -> float:
        """Gumbel scale of each turn."""
        return 1 / self.path_rate

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return 1

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`; infinite where `trim` is too small for the proof."""
        rate, n = self.path_rate, self.records
        if self.trim < 2 * math.log(n) / rate:
            return Cost(math.inf)
        steps = 3 + math.exp(rate) + math.log(max(1.0, n / self.trim)) / math.log(4 / 3)
        return Cost(rate * steps, n * math.exp(-rate * (self.trim - 2)))

    def down(self, points: Sequence[int], bits: int, noise: Noise) -> list[Node]:
        """Return a path with the weights of the records on its way.

        The answer is the path's last node; the weights are exact, and not released.

        Args:
            points: ascending, each below 2^bits, at most `records`.
            bits: depth of the tree.
            noise: where randomness comes from.
        """

        def turn(left: int, right: int) -> int:
            if not (left and right):
                return int(right > 0)
            return noise.select(np.array([left, right]), self.noise_scale)

        def sample() -> tuple[int, int]:
            end = path(points, bits, self.trim, turn)[-1]
            return end.level, end.prefix

        return path_to(points, bits, *noise.answer(self, sample))
