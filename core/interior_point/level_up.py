"""From an interior level of the embedded database to an interior point of the one it came from."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.budget import Cost
from core.draws import Draw
from core.mechanisms.choosing import Choosing
from core.mechanisms.exponential import Exponential
from core.noise import Noise


@dataclass(frozen=True)
class LevelUp:
    """Go from an interior level of the embedded database to an interior point of the one it came from.

    First the choosing mechanism picks a node of the level with many records below it. Then the exponential
    mechanism picks one of four leaves v below that node, with the score min(#{x <= v}, #{x >= v}): the
    node's first leaf, its last one, and the two in its middle.

    Privacy, under `replace_one`. A replacement is two changes of the counts that the choosing mechanism
    sees, so the node costs what two changes cost. A replacement raises or lowers the score of each leaf by at
    most 1, so the change of the scores has range 2.

    Args:
        node: chooses the node.
        leaf: chooses the leaf.
    """

    node: Choosing
    leaf: Exponential

    @classmethod
    def of(cls, node_epsilon: float, leaf_epsilon: float, delta: float, times: int) -> "LevelUp":
        """Set the scales.

        Args:
            node_epsilon: what choosing a node spends, each time.
            leaf_epsilon: what choosing a leaf spends, each time.
            delta: what choosing a node spends, each time.
            times: how often both are drawn.
        """
        one = Cost(node_epsilon, delta).per_change(2)
        return cls(
            Choosing.of("node of a level", one.epsilon, one.delta, 1, changes=2, times=times),
            Exponential.of("leaf about a node", leaf_epsilon, 2, times=times),
        )

    def draws(self) -> tuple[Draw, ...]:
        """Return both draws."""
        return self.node, self.leaf

    def depth_needed(self, failure: float) -> int:
        """Return the weight of a node, and depth of a leaf, at which `find` fails with at most `failure`."""
        node = self.node.nothing + self.node.scale * math.log(2 / failure)
        leaf = self.leaf.scale * math.log(6 / failure)
        return math.ceil(max(node, leaf))

    def find(
        self, points: Sequence[int], trimmed: Sequence[int], bits: int, level: int, noise: Noise
    ) -> int | None:
        """Release a point, or None where no node of the level was heavy enough.

        Args:
            points: the database, ascending.
            trimmed: the same without its extremes; these are the records of the tree.
            bits: depth of the tree.
            level: of the node.
            noise: where randomness comes from.
        """
        shift = bits - min(level, bits)
        weights = Counter(point >> shift for point in trimmed)
        nodes = np.array(list(weights), dtype=object), np.array(list(weights.values()), dtype=np.int64)
        chosen = self.node.choose(lambda: [nodes], noise)
        if chosen is None:
            return None
        first = chosen << shift
        last, middle = first + (1 << shift) - 1, first + (1 << shift >> 1)
        leaves = sorted({first, last, middle, max(first, middle - 1)})
        below = np.array([bisect_left(points, leaf) for leaf in leaves])
        upto = np.array([bisect_left(points, leaf + 1) for leaf in leaves])
        depths = np.minimum(upto, len(points) - below)
        return leaves[self.leaf.candidate(depths, noise)]
