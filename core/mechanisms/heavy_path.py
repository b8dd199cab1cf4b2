"""A private walk down the heavy path of a tree, to a node whose two children both hold records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from core.budget import Cost
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.tree_paths import Node, heavier, path
from core.neighbors import Neighbors
from core.noise import Noise

_REPLACE = Neighbors("replace_one")


@dataclass(frozen=True, kw_only=True)
class HeavyPathWalk(AboveThreshold):
    """Find an interior point where the heavy path of the tree splits well, under `replace_one`.

    The heavy path goes from each node to its heavier child. The weight w(v) of a node v is the number of
    records below it. AboveThreshold looks at one query for each node of the path: min(w(left), w(right),
    w(v) - stop) of its children left and right, w(v) - stop at a leaf, and 0 instead of anything negative.
    At the first node that passes, the last leaf of its left child is released. Both children hold records,
    so that leaf is an interior point. At a leaf, the leaf itself is released.

    Privacy. Between neighbors each weight differs by at most 1.
    - While the two heavy paths agree, the queries have sensitivity 1, and the same level means the same node.
    - Let the paths part at v, and let w be the larger of the two weights of v. The weights of its children
      then differ by at most 2, and all weights after v are at most w / 2 + 1.
    - If w <= 2 stop, all queries after v are 0 or 1 in both databases, so they have sensitivity 1 again.
    - If w > 2 stop, the query of v is at least stop - 2 in both databases. AboveThreshold passes over v only
      if its noise exceeds stop - 2 - threshold.
    - The released nodes may also differ where the path has ended in one database alone. The query is then
      at most 2, so the node is released only if the noise exceeds threshold - 3.
    - delta is the probability of noise that exceeds the smaller of these two margins.

    Args:
        threshold: value that a query must reach.
        stop: weight up to which queries are 0.
        levels: largest number of levels of a tree.
    """

    kind: ClassVar[str] = "walk down a heavy path"
    threshold: int
    stop: int
    levels: int

    @classmethod
    def calibrated(cls, what: str, epsilon: float, delta: float, levels: int, **more: Any) -> "HeavyPathWalk":
        """Return the walk with the smallest threshold that spends at most (epsilon, delta)."""
        split = AboveThreshold.of(what, epsilon, _REPLACE, counts=False)
        error = split.error(levels + 1, delta)
        return cls(
            what=what,
            threshold_scale=split.threshold_scale,
            query_scale=split.query_scale,
            threshold=3 + error,
            stop=6 + 2 * error,
            levels=levels,
            **more,
        )

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        margin = min(self.threshold - 3, self.stop - 2 - self.threshold)
        return Cost(super().cost_of_one().epsilon, self.missed(margin, self.levels + 1))

    def depth_needed(self, failure: float) -> int:
        """Return the query of some node at which a node is released with probability 1 - `failure`."""
        return self.threshold + self.error(self.levels + 1, failure) + 1

    def point(self, points: Sequence[int], bits: int, noise: Noise) -> int | None:
        """Release a point, or None.

        Args:
            points: ascending, each below 2^bits.
            bits: depth of the tree, at most `levels`.
            noise: where randomness comes from.
        """
        return noise.answer(self, lambda: self._point(points, bits, noise))

    def _point(self, points: Sequence[int], bits: int, noise: Noise) -> int | None:
        nodes = path(points, bits, self.stop, heavier)
        queries = [max(0, self.query(node)) for node in nodes]
        queries += [0] * (bits + 1 - len(queries))
        level = self.sampled(queries, self.threshold, noise)
        if level is None or level >= len(nodes) or queries[level] == 0:
            return None
        node = nodes[level]
        if node.left is None:
            return node.prefix << (bits - node.level)
        return ((2 * node.prefix + 1) << (bits - node.level - 1)) - 1

    def query(self, node: Node) -> int:
        """Return the query of a node; where it is negative, AboveThreshold sees 0."""
        above = node.weight - self.stop
        return above if node.left is None else min(node.left, node.weight - node.left, above)
