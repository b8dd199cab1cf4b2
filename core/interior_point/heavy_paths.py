"""HeavyPaths: interior points of huge universes with about log* as many records.

Kaplan, Ligett, Mansour, Naor and Stemmer 2020, Algorithms 2 to 6, with the random path replaced by a
noisy walk down the heavy one, which costs no more than one AboveThreshold.
"""

from dataclasses import dataclass

import numpy as np

from core.draws import Draw
from core.gaps import Order
from core.interior_point.tree_log import LevelUp, depth_of
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.heavy_path import HeavyPathWalk
from core.mechanisms.stopping import Stopping
from core.mechanisms.tree_paths import embed, heavier, path
from core.neighbors import Neighbors
from core.noise import Noise

_REPLACE = Neighbors("replace_one")


@dataclass(frozen=True)
class HeavyPaths:
    """Find an interior point under `replace_one`, through the first tree whose heavy path splits well.

    Tree i stands on the trimmed database i - 1, and its heavy path embeds that as database i (`embed`).
    AboveThreshold on the largest multiplicity of databases 1, 2, ... finds the tree, a `HeavyPathWalk` an
    interior point of the database it stands on, and a `LevelUp` each brings it back to the one before.

    Privacy. While multiplicities stay below theta = trim - 2, at most one child of a node exceeds the stop
    weight, so heavy paths of neighbors continue each other and the embedded databases are neighbors; the
    multiplicity of the first database that reaches theta still differs by at most 1 (Lemmas 4.3 and 4.5).
    `Stopping` passes over it only with its delta. Everything after it sees neighbors, or comes after a stop
    that cost that delta: adaptive composition.

    Args:
        bits: the universe has 2^bits points.
        trees: the last tree is taken if no earlier one is.
        trim: records cut off at each end of each database, and weight at which heavy paths stop.
        walk: finds an interior point of the database that the chosen tree stands on.
        stopping: chooses the tree; None where there is one.
        level_up: goes back up; None where there is one tree.
    """

    bits: int
    trees: int
    trim: int
    walk: HeavyPathWalk
    stopping: Stopping | None = None
    level_up: LevelUp | None = None

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
        each, levels = delta / (trees + 1), max(bits_of(bits, trees))
        walk = HeavyPathWalk.calibrated("point between records", second * epsilon, each, levels)
        splits = walk.depth_needed(failure / 3)
        if trees == 1:
            return cls(bits, trees, walk.stop + splits, walk)
        queries, what = trees - 1, "which tree"
        up = (1 - first - second) * epsilon / (2 * queries)
        level_up = LevelUp.of(up, up, each, queries)
        scales = AboveThreshold.of(what, first * epsilon, _REPLACE, counts=False)
        threshold = splits + scales.error(queries, failure / 3)
        trim = max(
            walk.stop + splits,
            threshold + scales.error(queries, each) + 3,
            level_up.depth_needed(failure / (3 * queries)),
        )
        stopping = Stopping(
            what=what,
            threshold_scale=scales.threshold_scale,
            query_scale=scales.query_scale,
            threshold=threshold,
            large=trim - 2,
            queries=queries,
        )
        return cls(bits, trees, trim, walk, stopping, level_up)

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder`."""
        if self.stopping is None or self.level_up is None:
            return (self.walk,)
        return (self.stopping, self.walk, *self.level_up.draws())

    def records_needed(self, failure: float) -> int:
        """Smallest n at which an interior point is promised.

        The last database keeps n - 3 trim trees records on as many levels as its tree has, so that some
        level is as frequent as the walk needs.
        """
        last = bits_of(self.bits, self.trees)[-1]
        splits = self.walk.depth_needed(failure / 3)
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
        tree = None if self.stopping is None else self.stopping.stop(frequencies, noise)
        tree = self.trees - 1 if tree is None else tree
        found = self.walk.point(self._trimmed(databases[tree]), widths[tree], noise)
        while found is not None and self.level_up is not None and tree > 0:
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
