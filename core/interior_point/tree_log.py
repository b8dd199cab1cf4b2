"""TreeLog: reduce an interior point of a universe to one of its logarithm, down a random path.

Kaplan, Ligett, Mansour, Naor and Stemmer 2020, Algorithm 1. It is of theoretical interest: the exponential
mechanism needs fewer records on any universe that fits into memory.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from core.draws import Draw
from core.gaps import Order, Runs
from core.interior_point.exponential import depth
from core.interior_point.level_up import LevelUp
from core.interior_point.sampled import SampledMethod
from core.mechanisms.exponential import Exponential
from core.mechanisms.random_path import RandomPath
from core.mechanisms.tree_paths import embed
from core.noise import Noise

SMALL = 3  # bits of a universe on which the exponential mechanism is used


@dataclass(frozen=True)
class TreeLog:
    """Find an interior point under `replace_one`.

    1. Cut `trim` records off at both ends.
    2. Walk down a random path of the binary tree, which prefers heavy children.
    3. Embed the path as a database of levels, and find an interior point of that by the same steps.
    4. Go back up from that level to a point.
    A universe of at most 2^SMALL points is left to the exponential mechanism.

    Privacy. The random path is private (see `RandomPath`), and the embedded databases of neighbors are
    neighbors, so the recursion composes with it adaptively. `LevelUp` composes with both. The exponential
    mechanism at the end has the score of `ExponentialFinder`, whose change has range 2.

    Args:
        bits: the universe has 2^bits points.
        path: the way down. As many records are used as it is made for, and its `trim` is cut off at each end.
        level_up: goes back up.
        base: the exponential mechanism at the end.
    """

    bits: int
    path: RandomPath
    level_up: LevelUp
    base: Exponential

    @classmethod
    def calibrated(cls, bits: int, epsilon: float, delta: float, failure: float) -> "TreeLog":
        """Choose the scales that need the fewest records; a third of each level's epsilon is for the path.

        Each level cuts off 3 trim records, and the base needs as many as the exponential mechanism does.
        The path's rate, the trim and the number of records depend on each other, so they are iterated until
        they agree.

        Args:
            bits: the universe has 2^bits points.
            epsilon: sum over the draws.
            delta: sum over the draws.
            failure: probability of missing an interior point at `records_needed` records.
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
        return cls(bits, way, level_up, base)

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder.draws`."""
        down = (self.path, *self.level_up.draws()) if depth_of(self.bits) else ()
        return (self.base, *down)

    def records_needed(self, failure: float) -> int:
        """Return the number of records that it was calibrated for, with `failure`."""
        return self.path.records

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a point, or None where there are too few records or no node is heavy enough.

        If there are more records than it is made for, the smallest ones are used. The smallest ones of
        neighbors are neighbors, and an interior point of them is one of all records.
        """
        points = np.repeat(order.values, np.diff(order.ranks))[: self.path.records].tolist()
        return self._find(points, self.bits, noise)

    def _find(self, points: list[int], bits: int, noise: Noise) -> int | None:
        if bits <= SMALL:
            runs = Runs.between(Order.of(points), 0, 1 << bits)
            return self.base.point(runs.starts, runs.lengths, depth(runs, len(points)), noise)
        trim = self.path.trim
        if len(points) <= 3 * trim:
            return None  # the number of records is public
        trimmed = points[trim : len(points) - trim]
        nodes = self.path.down(trimmed, bits, noise)
        level = self._find(embed(nodes, len(trimmed) - trim), bits.bit_length(), noise)
        return None if level is None else self.level_up.find(points, trimmed, bits, level, noise)


class TreeLogMethod(SampledMethod):
    """TreeLog on a random subset of the records."""

    name: ClassVar[str] = "tree_log"
    tightness: ClassVar[str] = "No fewer rows suffice, on any data: with fewer the method gives no answer."

    def finder(self, share: float) -> TreeLog:
        """See `SampledMethod.finder`; half of delta is left for composition."""
        budget, failure = self.setting.budget, self.setting.params.failure
        return TreeLog.calibrated(self.bits, share * budget.epsilon, budget.delta / 2, failure)


def depth_of(bits: int) -> int:
    """Return how often the universe is replaced by the levels of its tree."""
    count = 0
    while bits > SMALL:
        bits, count = bits.bit_length(), count + 1
    return count
