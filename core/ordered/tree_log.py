"""TreeLog: from an interior point of a huge universe to one of its logarithm, down a random path.

Kaplan, Ligett, Mansour, Naor and Stemmer 2020, Algorithm 1. Of theoretical interest: the exponential
mechanism needs fewer records on any universe that fits into memory.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from core.budget import Mechanism
from core.noise import Noise
from core.ordered.gaps import Order, Runs
from core.ordered.interior_point import depth
from core.selection import bar_for, choose

SMALL = 3  # bits of a universe on which the exponential mechanism is used


class Node(NamedTuple):
    """A node on a path of the binary tree over 2^bits points.

    Attributes:
        level: 0 at the root.
        prefix: first `level` bits of the points below it.
        weight: records below it.
        left: those below its left child; None at the end of a path.
    """

    level: int
    prefix: int
    weight: int
    left: int | None


def path(points: Sequence[int], bits: int, stop: int, turn: Callable[[int, int], int]) -> list[Node]:
    """Walk from the root to a leaf or the first node of weight at most `stop`.

    Args:
        points: ascending, each below 2^bits.
        bits: depth of the tree.
        stop: see above.
        turn: the child to go to, 0 or 1, given both weights.
    """
    nodes, low, high, prefix = [], 0, len(points), 0
    for level in range(bits):
        if high - low <= stop:
            break
        cut = bisect_left(points, (2 * prefix + 1) << (bits - level - 1), low, high)
        nodes.append(Node(level, prefix, high - low, cut - low))
        right = turn(cut - low, high - cut)
        prefix = 2 * prefix + right
        low, high = (cut, high) if right else (low, cut)
    return [*nodes, Node(len(nodes), prefix, high - low, None)]


def heavier(left: int, right: int) -> int:
    """Turn to the heavier child, and left at a tie."""
    return int(right > left)


def embed(nodes: Sequence[Node], size: int) -> list[int]:
    """Turn a path into a database of `size` levels: each level as often as records leave the path there.

    The rest is copies of the last level. If at most the stop weight is cut off (size is the number of
    records less it), paths of neighbors of which one continues the other give neighbors.
    """
    levels: list[int] = []
    for node, following in pairwise(nodes):
        levels += [node.level] * min(node.weight - following.weight, size - len(levels))
    return levels + [nodes[-1].level] * (size - len(levels))


@dataclass(frozen=True)
class LevelUp:
    """From an interior level of the embedded database to an interior point of the one it came from.

    A node of the level with many records below it, by the choosing mechanism; then one of four leaves about
    it, by the exponential mechanism with the score min(#{x <= v}, #{x >= v}).

    Under `replace_one` the choice is calibrated by group privacy: (epsilon / 2, .) for one addition or
    removal; a score moves by 1 either way, so its change has range 2.

    Args:
        node_epsilon: of the choosing mechanism.
        leaf_epsilon: of the exponential mechanism.
        delta: of the choosing mechanism.
    """

    node_epsilon: float
    leaf_epsilon: float
    delta: float

    @cached_property
    def bar(self) -> int:
        """Score of choosing no node."""
        half = self.node_epsilon / 2
        return bar_for(1, half, self.delta / (1 + math.exp(half)))

    def mechanisms(self, label: str) -> tuple[Mechanism, Mechanism]:
        """What it draws, and what that costs."""
        node = Mechanism(
            "interior_point", f"choosing: {label}", 2 / self.node_epsilon, 1, self.node_epsilon, self.delta
        )
        leaf = Mechanism(
            "interior_point", f"exponential: {label}", 2 / self.leaf_epsilon, 1, epsilon=self.leaf_epsilon
        )
        return node, leaf

    def depth_needed(self, failure: float) -> int:
        """Weight of a node, and depth of a leaf, from which it succeeds but for `failure`."""
        node = self.bar + 2 / self.node_epsilon * math.log(2 / failure)
        leaf = 2 / self.leaf_epsilon * math.log(6 / failure)
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
        nodes = list(weights)
        chosen = choose(
            np.array(list(weights.values()), dtype=np.int64), self.bar, 2 / self.node_epsilon, noise
        )
        if chosen is None:
            return None
        first = nodes[chosen] << shift
        last, middle = first + (1 << shift) - 1, first + (1 << shift >> 1)
        leaves = sorted({first, last, middle, max(first, middle - 1)})
        below = np.array([bisect_left(points, leaf) for leaf in leaves])
        upto = np.array([bisect_left(points, leaf + 1) for leaf in leaves])
        depths = np.minimum(upto, len(points) - below)
        return leaves[noise.select(depths, 2 / self.leaf_epsilon)]


@dataclass(frozen=True)
class TreeLog:
    """Find an interior point under `replace_one`.

    Trim `trim` records at both ends, walk down a random path that prefers heavy children, embed it as a
    database of levels, find an interior point of that (recursively), and go back up.

    Privacy of a level: see `path_epsilon` for the path; the embedded databases of neighbors are neighbors,
    so the recursion composes with it; then `LevelUp`. The base is one exponential mechanism of range 2.

    Args:
        bits: the universe has 2^bits points.
        records: at most so many are used, picked at random: the path's cost grows with them.
        trim: records cut off at each end, and weight at which paths stop.
        path_rate: children are weighed by exp(rate weight).
        level_up: see there.
        base_epsilon: of the exponential mechanism at the end.
    """

    bits: int
    records: int
    trim: int
    path_rate: float
    level_up: LevelUp
    base_epsilon: float

    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Every draw and what it costs."""
        draws = [
            Mechanism(
                "interior_point", "exponential: base", 2 / self.base_epsilon, 1, epsilon=self.base_epsilon
            )
        ]
        epsilon = path_epsilon(self.path_rate, self.records, self.trim)
        delta = path_delta(self.path_rate, self.records, self.trim)
        for level in range(depth_of(self.bits)):
            what = f"random path {level + 1}"
            draws.append(Mechanism("interior_point", what, 1 / self.path_rate, 1, epsilon, delta))
            draws += self.level_up.mechanisms(f"tree {level + 1}")
        return tuple(draws)

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a point, or None where there are too few records or no node is heavy enough.

        A random subset of each size keeps neighbors neighbors.
        """
        points = np.repeat(order.values, np.diff(order.ranks)).tolist()
        if len(points) > self.records:
            points = sorted(points[i] for i in _subset(len(points), self.records, noise))
        return self._find(points, self.bits, noise)

    def _find(self, points: list[int], bits: int, noise: Noise) -> int | None:
        if bits <= SMALL:
            runs = Runs.between(Order.of(points), 0, 1 << bits)
            return runs.choose(depth(runs, len(points)), 2 / self.base_epsilon, noise)
        if len(points) <= 3 * self.trim:
            return None
        trimmed = points[self.trim : len(points) - self.trim]
        nodes = path(trimmed, bits, self.trim, lambda left, right: self._turn(left, right, noise))
        level = self._find(embed(nodes, len(trimmed) - self.trim), bits.bit_length(), noise)
        return None if level is None else self.level_up.find(points, trimmed, bits, level, noise)

    def _turn(self, left: int, right: int, noise: Noise) -> int:
        if not (left and right):
            return int(right > 0)
        return noise.select(np.array([left, right]), 1 / self.path_rate)


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
    level_up = LevelUp(share, share, each)
    base = 2 * math.ceil(2 / share * math.log((1 << SMALL) / level_failure))
    rate, trim, records = share / 10, 1, base
    for _ in range(100 if levels else 0):
        # A little more than enough, so that rounding never leaves the bounds' conditions.
        trim = max(
            math.ceil(2 * math.log(2 * records) / rate),
            3 + math.ceil(math.log(2 * records / each) / rate),
            level_up.depth_needed(level_failure),
        )
        records = 3 * trim * levels + base
        rate = share / (3 + math.exp(rate) + math.log(records / trim) / math.log(4 / 3))
    return TreeLog(bits, records, trim, rate, level_up, share)


def path_epsilon(rate: float, records: int, trim: int) -> float:
    """Pure part of a random path's cost: rate (3 + e^rate + log_{4/3}(records / trim)).

    For trim >= 2 ln(records) / rate. Neighbors differ in one record's way down. A step whose other
    child has no less than the chosen one's weight minus ln(records) / rate shrinks the weight to at most 3/4,
    which happens at most 1 + log_{4/3}(records / trim) times, and costs at most `rate`; all other steps
    cost e^rate - 1 together, as their other child has probability at most 1 / records; the record may come
    and go, which adds twice `rate`. That the cost is not of order `rate` alone is seen on a balanced tree.
    """
    return rate * (3 + math.exp(rate) + math.log(max(1.0, records / trim)) / math.log(4 / 3))


def path_delta(rate: float, records: int, trim: int) -> float:
    """Additive part, records e^(-rate (trim - 2)): a path enters a child of weight 1 above `trim`."""
    return records * math.exp(-rate * (trim - 2))


def depth_of(bits: int) -> int:
    """How often the universe is replaced by the levels of its tree."""
    count = 0
    while bits > SMALL:
        bits, count = bits.bit_length(), count + 1
    return count


def _subset(total: int, size: int, noise: Noise) -> set[int]:
    """Choose `size` of `total` positions, each set as likely (Floyd): neighbors keep neighbors."""
    chosen: set[int] = set()
    for last in range(total - size, total):
        pick = noise.below(last + 1)
        chosen.add(last if pick in chosen else pick)
    return chosen
