"""The rank at which one quantile is sought, and the scores of points and bins by it."""

import math
from dataclasses import dataclass

import numpy as np

from core.focus import Bools
from core.gaps import MOST_RECORDS, Ints, Order, Runs, distances, rank_ends
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.quantiles.brackets import Bins, Ends

UNIT = 1 << 28
"""Ranks and probabilities are whole multiples of 1 / UNIT. Up to `MOST_RECORDS` records fit into int64."""


@dataclass(frozen=True)
class Aim:
    """The rank w(n) at which one quantile of n records is sought.

    - For 0 < p < 1, w(n) = p n.
    - For p = 0, w(n) = min(inside, n / 2). All points below all records have the same rank. So that none of
      these is chosen, a minimum is sought `inside` records above the smallest one, or in the middle if there
      are few records.
    - For p = 1, w(n) = n - min(inside, n / 2).

    A grid point v has all ranks from #{x < v} to #{x <= v}. Its score is minus the distance of w(n) from
    these ranks, in 1 / UNIT of a record.

    Sensitivity, for one record more or less:

    1. An end # of these ranks lies # - w(n) = up # - down (n - #) + (down n - w(n)) above w(n), for any
       weights with up + down = 1. In that form, "an end" changes as follows.
    2. n private, 0 < p < 1: down = p, and the last term is 0. A record more at y changes the ends of points
       above y by 1 - p and those of points below y by -p. At y itself it changes one end by each.
    3. n private, p = 0: w(n) grows by 0 to 1/2. So the ends of points above y change by 1/2 to 1, and those
       of points below y by -1/2 to 0. p = 1 is the mirror image.
    4. n public: up = down = 1/2. The last term is a public constant, and the rest changes by 1/2 or -1/2.
    5. So no end changes by more than `weight`: max(p, 1 - p) where n is private, 1/2 where it is public.
    6. A distance changes by at most what its ends do (see `rank_scores`). So the changes of the scores have a
       range of at most 2 `weight`.

    A replacement is one record less and one more: twice that (see `per_weight`).

    In a wide domain scores end at distance `far`: all points farther away have one score (see `core.focus`).
    A score that ends changes at most as far as before, and in the same direction. So all bounds still hold.

    Args:
        probability: p, in [0, 1].
        total_is_public: whether the number of records may be used: `replace_one`.
        inside: records from an extreme; 0 for 0 < p < 1.
        shift: records by which w(n) is moved, a public constant.
        far: see above, in records; None where scores do not end.
    """

    probability: float
    total_is_public: bool
    inside: int = 0
    shift: int = 0
    far: int | None = None

    @property
    def weight(self) -> float:
        """The larger weight of a record."""
        return 0.5 if self.total_is_public else max(self.probability, 1 - self.probability)

    def point(self, order: Order, size: int, draw: Exponential, noise: Noise) -> int:
        """Choose one of the points 0, ..., size - 1.

        Args:
            order: the records.
            size: number of grid points.
            draw: of spread 2, per unit of the larger weight of a record.
            noise: where randomness comes from.
        """
        runs = Runs.between(order, 0, size)
        scores = self.scores(runs, order.total)
        return draw.point(runs.starts, runs.lengths, scores, noise, unit=self._unit)

    def bracketed(
        self, order: Order, size: int, draw: Exponential, bins: Bins, reach: int, noise: Noise
    ) -> tuple[int, tuple[int, int]]:
        """Choose one of the points 0, ..., size - 1, and an interval; see `core.quantiles.brackets`.

        Args:
            order: the records.
            size: number of grid points.
            draw: see `point`.
            bins: of all points.
            reach: how far from the rank both ends are sought, in records.
            noise: where randomness comes from.
        """
        runs, total, unit = Runs.between(order, 0, size), order.total, self._unit
        pairs = bins.pairs(self.ends(bins.runs(order), total), min(reach, MOST_RECORDS) * UNIT, self._most)
        scores = self.scores(runs, total)
        at, pair = draw.both(runs.starts, runs.lengths, scores, -pairs.distances, noise, unit)
        low, high = pairs.interval(pair)
        return at, (0 if low is None else low, size - 1 if high is None else high)

    def ends(self, runs: Runs, total: int) -> Ends:
        """Return the lowest and the highest rank of the points of each run, minus w(n), in 1 / UNIT.

        Args:
            runs: the points.
            total: number of records.
        """
        target = int(np.rint(self.probability * UNIT))
        depth = min(self.inside * UNIT, total * UNIT // 2)
        wanted = target * total + (depth if target == 0 else -depth) + self.shift * UNIT
        down = UNIT - self._up
        return rank_ends(runs, total, down * total - wanted, self._up, down)

    def scores(self, runs: Runs, total: int) -> Ints:
        """Return the scores of the points of each run, in 1 / UNIT of a record; see `ends`."""
        off = distances(self.ends(runs, total))
        if self._most is not None:
            np.minimum(off, self._most, out=off)
        return np.negative(off, out=off)

    def hot(self, runs: Runs, total: int) -> Bools:
        """Say of each run, which may be a cell of points of different ranks, whether a score does not end."""
        end = -math.inf if self._most is None else -self._most
        return np.concatenate([self.scores(part, total) > end for part in runs.parts()])

    @property
    def _up(self) -> int:
        return UNIT // 2 if self.total_is_public else UNIT - int(np.rint(self.probability * UNIT))

    @property
    def _unit(self) -> int:
        return max(self._up, UNIT - self._up)

    @property
    def _most(self) -> int | None:
        """The distance at which scores end."""
        return None if self.far is None else min(self.far, MOST_RECORDS) * UNIT
