"""TreeLog: from an interior point of a huge universe to one of its logarithm, down a random path.

Kaplan, Ligett, Mansour, Naor and Stemmer 2020, Algorithm 1. Of theoretical interest: the exponential
mechanism needs fewer records on any universe that fits into memory.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.budget import Cost
from core.draws import Draw
from core.gaps import Order, Runs
from core.interior_point.finder import depth
from core.mechanisms.choosing import Choosing
from core.mechanisms.exponential import Exponential
from core.mechanisms.random_path import RandomPath
from core.mechanisms.tree_paths import embed
from core.noise import Noise

SMALL = 3  # bits of a universe on which the exponential mechanism is used


@dataclass(frozen=True)
class LevelUp:
    """From an interior level of the embedded database to an interior point of the one it came from.

    A node of the level with many records below it, by the choosing mechanism; then one of four leaves about
    it, by the exponential mechanism with the score min(#{x <= v}, #{x >= v}).

    Under `replace_one` the node costs what two changes do; a score of a leaf moves by 1 either way, so its
    change has range 2.

    Args:
        node: chooses the node.
        leaf: chooses the leaf.
    """

    node: Choosing
    leaf: Exponential

    @classmethod
    def of(cls, node_epsilon: float, leaf_epsilon: float, delta: float, times: int) -> "LevelUp":
        """Set scales that spend so much, each of `times` times."""
        one = Cost(node_epsilon, delta).per_change(2)
        return cls(
            Choosing.of("node of a level", one.epsilon, one.delta, 1, changes=2, times=times),
            Exponential.of("leaf about a node", leaf_epsilon, 2, times=times),
        )

    def draws(self) -> tuple[Draw, ...]:
        """Every draw."""
        return self.node, self.leaf

    def depth_needed(self, failure: float) -> int:
        """Weight of a node, and depth of a leaf, from which it succeeds but for `failure`."""
        node = self.node.nothing + self.node.scale * math.log(2 / failure)
        leaf = self.leaf.scale * math.log(6 / failure)
        return math.ceil(max(node, leaf))

    def find(
        self, points: Sequence[int], trimmed: Sequence[int], bits: int, level: int, noise: Noise
    ) -> int | None:
        """Release a point, or None where no node of the level was heavy enough.

        Args:
            points: the database, ascending.
            trimmed: the same without its extremes: the tree's records.
            bits: depth of the tree.
            level: of the node.
            noise: where randomness comes from.
        """
        shift = bits - min(level, bits)
        weights = Counter(point >> shift for point in trimmed)
        nodes = np.array(list(weights), dtype=object)
        chosen = self.node.choose(nodes, np.array(list(weights.values()), dtype=np.int64), noise)
        if chosen is None:
            return None
        first = chosen << shift
        last, middle = first + (1 << shift) - 1, first + (1 << shift >> 1)
        leaves = sorted({first, last, middle, max(first, middle - 1)})
        below = np.array([bisect_left(points, leaf) for leaf in leaves])
        upto = np.array([bisect_left(points, leaf + 1) for leaf in leaves])
        depths = np.minimum(upto, len(points) - below)
        return leaves[self.leaf.candidate(depths, noise)]


@dataclass(frozen=True)
class TreeLog:
    """Find an interior point under `replace_one`.

    Trim `trim` records at both ends, walk down a random path that prefers heavy children, embed it as a
    database of levels, find an interior point of that (recursively), and go back up.

    Privacy of a level: see `RandomPath`; the embedded databases of neighbors are neighbors, so the recursion
    composes with it; then `LevelUp`. The base is one exponential mechanism of range 2.

    Args:
        bits: the universe has 2^bits points.
        path: the way down; as many records are used as it is made for, and its `trim` is cut off at each end.
        level_up: see there.
        base: the exponential mechanism at the end.
    """

    bits: int
    path: RandomPath
    level_up: LevelUp
    base: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder`."""
        down = (self.path, *self.level_up.draws()) if depth_of(self.bits) else ()
        return (self.base, *down)

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a point, or None where there are too few records or no node is heavy enough.

        Of more records than it is made for, the smallest are used: those of neighbors are neighbors, and an
        interior point of them is one of all.
        """
        points = np.repeat(order.values, np.diff(order.ranks))[: self.path.records].tolist()
        return self._find(points, self.bits, noise)

    def _find(self, points: list[int], bits: int, noise: Noise) -> int | None:
        if bits <= SMALL:
            runs = Runs.between(Order.of(points), 0, 1 << bits)
            return self.base.point(runs.starts, runs.lengths, depth(runs, len(points)), noise)
        trim = self.path.trim
        if len(points) <= 3 * trim:
            return None  # public: the number of records is
        trimmed = points[trim : len(points) - trim]
        nodes = self.path.down(trimmed, bits, noise)
        level = self._find(embed(nodes, len(trimmed) - trim), bits.bit_length(), noise)
        return None if level is None else self.level_up.find(points, trimmed, bits, level, noise)


def tree_log(bits: int, epsilon: float, delta: float, failure: float) -> TreeLog:
    """Calibrate TreeLog to the fewest records; a third of each level's epsilon goes to the path.

    Each level cuts off 3 trim records, and the base needs as many as the exponential mechanism does.
    The path's rate, the trim and the number of records depend on each other: iterated until they agree.

    Args:
        bits: the universe has 2^bits points.
        epsilon: sum over the draws.
        delta: sum over the draws.
        failure: probability of missing an interior point at `records` records.
    """
    levels = depth_of(bits)
    share = epsilon / (3 * levels + 1)
    each, level_failure = delta / (2 * max(1, levels)), failure / (levels + 1)
    level_up = LevelUp.of(share, share, each, levels)
    base = Exponential.of("point of the last universe", share, 2)
    fewest = 2 * math.ceil(base.scale * math.log((1 << SMALL) / level_failure))
    way = RandomPath(what="down a tree", path_rate=share / 10, records=fewest, trim=1, times=levels)
    for _ in range(100 if levels else 0):
        # A little more than enough, so that rounding never leaves the bounds' conditions.
        rate, records = way.path_rate, way.records
        trim = max(
            math.ceil(2 * math.log(2 * records) / rate),
            3 + math.ceil(math.log(2 * records / each) / rate),
            level_up.depth_needed(level_failure),
        )
        records = 3 * trim * levels + fewest
        rate = share / (3 + math.exp(rate) + math.log(records / trim) / math.log(4 / 3))
        way = replace(way, path_rate=rate, records=records, trim=trim)
    return TreeLog(bits, way, level_up, base)


def depth_of(bits: int) -> int:
    """How often the universe is replaced by the levels of its tree."""
    count = 0
    while bits > SMALL:
        bits, count = bits.bit_length(), count + 1
    return count
