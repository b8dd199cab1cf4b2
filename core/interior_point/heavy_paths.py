"""HeavyPaths: find an interior point of a huge universe with a number of records of order log* of its size.

Kaplan, Ligett, Mansour, Naor and Stemmer 2020, Algorithms 2 to 6. Their random path is replaced by a noisy
walk down the heavy path, which costs no more than one AboveThreshold.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.draws import Draw
from core.gaps import Order
from core.interior_point.level_up import LevelUp
from core.interior_point.sampled import SampledMethod
from core.interior_point.tree_log import depth_of
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

    Database 0 is the records. Tree i is built on database i - 1 without its extremes, and its heavy path
    embeds that database as database i (see `embed`).
    1. `Stopping` on the largest multiplicity of databases 1, 2, ... chooses a tree.
    2. A `HeavyPathWalk` finds an interior point of the database that the tree is built on.
    3. One `LevelUp` a tree leads from there back to an interior point of database 0.

    Privacy. Let theta = trim - 2, and consider two neighbors.
    - While the multiplicities stay below theta, at most one child of a node exceeds the stop weight. So one
      of the two heavy paths continues the other, and the embedded databases are neighbors (Lemma 4.3).
    - The multiplicities of the first database that reaches theta still differ by at most 1 (Lemma 4.5).
    - `Stopping` passes over that database with at most the probability that it is charged as its delta.
    - If it does not, the walk and all `LevelUp` see databases that are neighbors.
    So the draws compose adaptively.

    Args:
        bits: the universe has 2^bits points.
        trees: most trees; the last one is taken if `Stopping` chooses no earlier one.
        trim: number of records cut off at each end of each database; also the weight at which heavy paths
            stop.
        walk: finds an interior point of the database that the chosen tree is built on.
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
        """Set the scales, and the smallest trim that privacy and utility allow.

        Args:
            bits: the universe has 2^bits points.
            trees: 1 to `depth_of(bits)`.
            epsilon: sum over the draws.
            delta: sum over the draws.
            shares: of epsilon, for `Stopping` and for the walk; the rest is for `LevelUp`. One tree needs the
                walk alone.
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

    @classmethod
    def calibrated(cls, bits: int, epsilon: float, delta: float, failure: float) -> "HeavyPaths":
        """Choose the number of trees and the shares that need the fewest records; see `of`."""
        shares = [(a / 10, b / 10) for a in range(1, 6) for b in range(2, 7) if a + b < 9]
        tried = [
            cls.of(bits, trees, epsilon, delta, share, failure)
            for trees in range(1, max(1, depth_of(bits)) + 1)
            for share in (shares if trees > 1 else shares[:1])
        ]
        return min(tried, key=lambda one: one.records_needed(failure))

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder.draws`."""
        if self.stopping is None or self.level_up is None:
            return (self.walk,)
        return (self.stopping, self.walk, *self.level_up.draws())

    def records_needed(self, failure: float) -> int:
        """See `Finder.records_needed`.

        Of n records the last database keeps n - 3 trim trees. They lie on the levels of one tree, so some
        level is as frequent as the walk needs.
        """
        last = bits_of(self.bits, self.trees)[-1]
        splits = self.walk.depth_needed(failure / 3)
        return 3 * self.trim * self.trees + (last + 1) * splits

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a point, or None where there are too few records or a step found nothing."""
        points = np.repeat(order.values, np.diff(order.ranks)).tolist()
        if len(points) <= 3 * self.trim * self.trees:
            return None  # the number of records is public
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
    """Return the depths of the trees: each is built on the levels of the one before."""
    depths = [bits]
    for _ in range(trees - 1):
        depths.append(depths[-1].bit_length())
    return depths


class HeavyPathsMethod(SampledMethod):
    """HeavyPaths on a random subset of the records."""

    name: ClassVar[str] = "heavy_paths"
    tightness: ClassVar[str] = (
        "About half of the promised rows usually suffice: the promise adds up what the path, the splits "
        "and the way back up can each lose in every tree, and rows rarely make them lose it all at once."
    )

    def finder(self, share: float) -> HeavyPaths:
        """See `SampledMethod.finder`; half of delta is left for composition."""
        budget, failure = self.setting.budget, self.setting.params.failure
        return HeavyPaths.calibrated(self.bits, share * budget.epsilon, budget.delta / 2, failure)
