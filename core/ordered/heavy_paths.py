"""HeavyPaths: interior points of huge universes with about log* as many records.

Kaplan, Ligett, Mansour, Naor and Stemmer 2020, Algorithms 2 to 6, with the random path replaced by a
noisy walk down the heavy one, which costs no more than one AboveThreshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.budget import Mechanism
from core.neighbors import Neighbors
from core.noise import Noise
from core.ordered.gaps import Order
from core.ordered.tree_log import LevelUp, Node, depth_of, embed, heavier, path
from core.selection import ThresholdScales, above_threshold, above_threshold_error

_REPLACE = Neighbors("replace_one")


@dataclass(frozen=True)
class Walk:
    """Find an interior point where the heavy path of the tree splits well, under `replace_one`.

    Down the heavy path, AboveThreshold on min(w(left), w(right), w(v) - stop), and w(v) - stop at a leaf;
    0 from weight `stop` on. At the first node that passes, the last leaf of its left child is released: both
    children hold records.

    Privacy: (epsilon, delta). Between neighbors weights differ by at most 1, so as long as the heavy paths
    agree the queries have sensitivity 1 and the same node is released at the same level. Let them part at
    v, with w the larger of its two weights. Its children's weights then differ by at most 2, and all weights
    after it are at most w / 2 + 1. If w <= 2 stop, all queries after v are 0 or 1 on both: sensitivity 1
    again. If not, v's query is at least stop - 2 on both, and AboveThreshold passes over it only if its
    noise exceeds `error` (of probability delta). The nodes released may also differ where a path has
    ended on one database alone; the query is then at most 2, and is released only in the same event.

    Args:
        scales: of AboveThreshold.
        threshold: 3 + error.
        stop: threshold + error + 3.
    """

    scales: ThresholdScales
    threshold: int
    stop: int

    @classmethod
    def of(cls, epsilon: float, delta: float, bits: int) -> "Walk":
        """Calibrate for trees of at most `bits` levels."""
        scales = ThresholdScales.of(epsilon, _REPLACE, monotone=False)
        error = above_threshold_error(scales.threshold, scales.query, bits + 1, delta)
        return cls(scales, 3 + error, 6 + 2 * error)

    def depth_needed(self, bits: int, failure: float) -> int:
        """Query at some node from which a node is found that splits, but for `failure`."""
        error = above_threshold_error(self.scales.threshold, self.scales.query, bits + 1, failure)
        return self.threshold + error + 1

    def find(self, points: Sequence[int], bits: int, noise: Noise) -> int | None:
        """Release a point, or None.

        Args:
            points: ascending, each below 2^bits.
            bits: depth of the tree.
            noise: where randomness comes from.
        """
        nodes = path(points, bits, self.stop, heavier)
        queries = [max(0, self._query(node)) for node in nodes]
        queries += [0] * (bits + 1 - len(queries))
        level = above_threshold(queries, self.threshold, self.scales.threshold, self.scales.query, noise)
        if level is None or level >= len(nodes) or queries[level] == 0:
            return None
        node = nodes[level]
        if node.left is None:
            return node.prefix << (bits - node.level)
        return ((2 * node.prefix + 1) << (bits - node.level - 1)) - 1

    def _query(self, node: Node) -> int:
        above = node.weight - self.stop
        return above if node.left is None else min(node.left, node.weight - node.left, above)


@dataclass(frozen=True)
class HeavyPaths:
    """Find an interior point under `replace_one`, through the first tree whose heavy path splits well.

    Tree i stands on the trimmed database i - 1, and its heavy path embeds that as database i (`embed`).
    AboveThreshold on the largest multiplicity of databases 1, 2, ... finds the tree, a `Walk` an interior
    point of the database it stands on, and a `LevelUp` each brings it back to the one before.

    Privacy. While multiplicities stay below theta = trim - 2, at most one child of a node exceeds the stop
    weight, so heavy paths of neighbors continue each other and the embedded databases are neighbors; the
    multiplicity of the first database that reaches theta still differs by at most 1 (Lemmas 4.3 and 4.5).
    AboveThreshold with a threshold of theta - 1 - error passes over it only with probability delta.
    Everything after it sees neighbors, or comes after a stop that cost that delta: adaptive composition.

    Args:
        bits: the universe has 2^bits points.
        trees: the last tree is taken if no earlier one is.
        trim: records cut off at each end of each database, and weight at which heavy paths stop.
        stopping: scales of AboveThreshold.
        threshold: of it.
        stopping_epsilon: what it spends.
        stopping_delta: what it spends.
        walk: see there.
        walk_epsilon: what it spends.
        walk_delta: what it spends.
        level_up: see there.
    """

    bits: int
    trees: int
    trim: int
    stopping: ThresholdScales
    threshold: int
    stopping_epsilon: float
    stopping_delta: float
    walk: Walk
    walk_epsilon: float
    walk_delta: float
    level_up: LevelUp

    @classmethod
    def of(
        cls, bits: int, trees: int, epsilon: float, delta: float, shares: tuple[float, float], failure: float
    ) -> "HeavyPaths":
        """Calibrate, and find the smallest trim that privacy and utility allow.

        Args:
            bits: the universe has 2^bits points.
            trees: 1 to `depth_of(bits)`.
            epsilon: sum over the draws.
            delta: sum over the draws.
            shares: of epsilon, for AboveThreshold and the walk; the rest is for going up. One tree needs
                the walk alone.
            failure: probability of missing an interior point at `records_needed`.
        """
        first, second = shares if trees > 1 else (0.0, 1.0)
        each = delta / (trees + 1)
        walk = Walk.of(second * epsilon, each, max(bits_of(bits, trees)))
        up = (1 - first - second) * epsilon / (2 * max(1, trees - 1)) if trees > 1 else epsilon
        level_up = LevelUp(up, up, each)
        stopping = ThresholdScales.of((first if trees > 1 else 1.0) * epsilon, _REPLACE, monotone=False)
        splits = walk.depth_needed(max(bits_of(bits, trees)), failure / 3)
        queries, trim = max(1, trees - 1), walk.stop + splits
        accuracy = above_threshold_error(stopping.threshold, stopping.query, queries, failure / 3)
        threshold = splits + accuracy
        if trees > 1:
            trim = max(
                trim,
                threshold + above_threshold_error(stopping.threshold, stopping.query, queries, each) + 3,
                level_up.depth_needed(failure / (3 * queries)),
            )
        return cls(
            bits,
            trees,
            trim,
            stopping,
            threshold,
            first * epsilon,
            each,
            walk,
            second * epsilon,
            each,
            level_up,
        )

    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Every draw and what it costs."""
        walk = Mechanism(
            "interior_point",
            "AboveThreshold: walk down a heavy path",
            self.walk.scales.query,
            1,
            epsilon=self.walk_epsilon,
            delta=self.walk_delta,
        )
        if self.trees == 1:
            return (walk,)
        stopping = Mechanism(
            "interior_point",
            "AboveThreshold: which tree",
            self.stopping.query,
            1,
            epsilon=self.stopping_epsilon,
            delta=self.stopping_delta,
        )
        ups = [draw for i in range(self.trees - 1) for draw in self.level_up.mechanisms(f"tree {i + 1}")]
        return (stopping, walk, *ups)

    def records_needed(self, failure: float) -> int:
        """Smallest n at which an interior point is promised.

        The last database keeps n - 3 trim trees records on as many levels as its tree has, so that some
        level is as frequent as the walk needs.
        """
        last = bits_of(self.bits, self.trees)[-1]
        splits = self.walk.depth_needed(max(bits_of(self.bits, self.trees)), failure / 3)
        return 3 * self.trim * self.trees + (last + 1) * splits

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a point, or None where there are too few records or a step found nothing."""
        points = np.repeat(order.values, np.diff(order.ranks)).tolist()
        if len(points) <= 3 * self.trim * self.trees:
            return None  # public: the number of records is
        databases, frequencies = [points], []
        widths = bits_of(self.bits, self.trees)
        for bits in widths[:-1]:
            trimmed = self._trimmed(databases[-1])
            nodes = path(trimmed, bits, self.trim, heavier)
            databases.append(embed(nodes, len(trimmed) - self.trim))
            frequencies.append(int(np.bincount(databases[-1]).max()))
        tree = above_threshold(
            frequencies, self.threshold, self.stopping.threshold, self.stopping.query, noise
        )
        tree = self.trees - 1 if tree is None else tree
        found = self.walk.find(self._trimmed(databases[tree]), widths[tree], noise)
        while found is not None and tree > 0:
            tree -= 1
            database = databases[tree]
            found = self.level_up.find(database, self._trimmed(database), widths[tree], found, noise)
        return found

    def _trimmed(self, points: list[int]) -> list[int]:
        return points[self.trim : len(points) - self.trim]


def bits_of(bits: int, trees: int) -> list[int]:
    """Depths of the trees: each stands on the levels of the one before."""
    depths = [bits]
    for _ in range(trees - 1):
        depths.append(depths[-1].bit_length())
    return depths


def heavy_paths(bits: int, epsilon: float, delta: float, failure: float) -> HeavyPaths:
    """Return the number of trees and the shares that need the fewest records."""
    shares = [(a / 10, b / 10) for a in range(1, 6) for b in range(2, 7) if a + b < 9]
    tried = [
        HeavyPaths.of(bits, trees, epsilon, delta, share, failure)
        for trees in range(1, max(1, depth_of(bits)) + 1)
        for share in (shares if trees > 1 else shares[:1])
    ]
    return min(tried, key=lambda method: method.records_needed(failure))
