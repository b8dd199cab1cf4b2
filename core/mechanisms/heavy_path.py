"""A walk down the heavy path of a tree: a point between records, where the path splits well."""

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

    Down the heavy path, AboveThreshold on min(w(left), w(right), w(v) - stop), and w(v) - stop at a leaf;
    0 from weight `stop` on. At the first node that passes, the last leaf of its left child is released: both
    children hold records.

    Privacy. Between neighbors weights differ by at most 1, so as long as the heavy paths agree the queries
    have sensitivity 1 and the same node is released at the same level. Let them part at v, with w the larger
    of its two weights. Its children's weights then differ by at most 2, and all weights after it are at most
    w / 2 + 1. If w <= 2 stop, all queries after v are 0 or 1 on both: sensitivity 1 again. If not, v's query
    is at least stop - 2 on both, and AboveThreshold passes over it only if its noise exceeds stop - 2 -
    threshold. The nodes released may also differ where a path has ended on one database alone; the query is
    then at most 2, and is released only if the noise exceeds threshold - 3. The probability of noise that
    exceeds the smaller of these margins is delta.

    Args:
        threshold: query to reach.
        stop: weight from which on queries are 0.
        levels: how many levels a tree has at most.
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
        """Query at some node from which a node is found that splits, but for `failure`."""
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
        """Return what AboveThreshold sees of a node, where that is positive."""
        above = node.weight - self.stop
        return above if node.left is None else min(node.left, node.weight - node.left, above)
