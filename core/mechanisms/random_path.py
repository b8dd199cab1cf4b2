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
    """Walk down to a leaf or to the first node of weight at most `trim`, at random.

    The weight of a node is the number of records below it. A child is chosen with probability proportional
    to exp(rate weight).

    What is private, under `replace_one`. The paths of neighbors need not stop at the same level. So the
    guarantee takes two paths for the same where one continues the other. Such paths embed as neighbors
    (`core.mechanisms.tree_paths.embed`). A path itself must not be released, only what a private mechanism
    draws from its embedding.

    Privacy. Let n be the largest number of records. The path costs
        epsilon = rate (3 + e^rate + log_{4/3}(n / trim))  where trim >= 2 ln(n) / rate,
        delta = n e^(-rate (trim - 2)).
    - Neighbors differ in the way down of one record.
    - Call a step even if the other child weighs at least as much as the chosen one less ln(n) / rate. An
      even step leaves at most 3/4 of the weight. So there are at most 1 + log_{4/3}(n / trim) of
      them, and each costs at most rate.
    - In every other step, the other child has probability at most 1 / n. These steps cost e^rate - 1
      together.
    - The record may appear on the path and leave it, which adds 2 rate.
    - delta bounds the probability that the path enters a child of weight 1 from a node of weight above
      `trim`.
    A balanced tree shows that the cost is not of order rate alone. Source: Kaplan, Ligett, Mansour, Naor
    and Stemmer 2020.

    Args:
        path_rate: the rate above.
        records: largest number of records.
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
        """Return a path with the exact weights of its nodes.

        Only the last node of the path is drawn. The weights are those of the data, and must not be released.

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
