"""One quantile by the exponential mechanism on ranks, whatever the width of the domain."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from core.aggregate import Counts
from core.draws import Charged, Draw
from core.focus import CELLS, Bools, Focused
from core.gaps import MOST_RECORDS, Ints, Order, Runs, rank_scores
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise
from core.quantiles.found import FoundQuantiles, FoundValue, Promises
from core.quantiles.params import OneValue
from core.task import Accuracy, Method
from core.tightness import Tightness

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
        margin: points that are added to the domain on the side to which w(n) is moved. They lie beyond all
            records, and stand for the domain's first or last point.
        far: see above, in records; None where scores do not end.
    """

    probability: float
    total_is_public: bool
    inside: int = 0
    shift: int = 0
    margin: int = 0
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
        low, high = (-self.margin, size) if self.shift < 0 else (0, size + self.margin)
        runs = Runs.between(order, low, high)
        scores = self.scores(runs, order.total)
        at = draw.point(runs.starts, runs.lengths, scores, noise, unit=max(self._up, UNIT - self._up))
        return min(max(at, 0), size - 1)

    def scores(self, runs: Runs, total: int) -> Ints:
        """Return the scores of the points of each run, in 1 / UNIT of a record.

        Args:
            runs: the points.
            total: number of records.
        """
        target = int(np.rint(self.probability * UNIT))
        depth = min(self.inside * UNIT, total * UNIT // 2)
        wanted = target * total + (depth if target == 0 else -depth) + self.shift * UNIT
        down = UNIT - self._up
        scores = rank_scores(runs, total, down * total - wanted, self._up, down)
        return scores if self._end is None else np.maximum(scores, self._end)

    def hot(self, runs: Runs, total: int) -> Bools:
        """Say of each run, which may be a cell of points of different ranks, whether a score does not end."""
        return self.scores(runs, total) > (-math.inf if self._end is None else self._end)

    @property
    def _up(self) -> int:
        return UNIT // 2 if self.total_is_public else UNIT - int(np.rint(self.probability * UNIT))

    @property
    def _end(self) -> int | None:
        return None if self.far is None else -min(self.far, MOST_RECORDS) * UNIT


def per_weight(what: str, epsilon: float, neighbors: Neighbors, **more: Any) -> Exponential:
    """Return a draw on ranks that spends `epsilon`; a replacement is a removal and an addition.

    Its scores are ranks divided by the larger weight of a record, so they change by amounts whose range is at
    most 2.
    """
    what, changes = f"{what}, scored by normalized rank", neighbors.changes
    return Exponential.of(what, epsilon / changes, spread=2, changes=changes, **more)


def distance_bound(aim: Aim, size: int, scale: float, failure: float) -> float:
    """Bound the distance of a chosen point from its aim, in records; the bound fails with `failure`.

    Some point must be at distance 0, as it is if the aim is from 0 to n. At most `size` points are farther
    than the bound. Each of them is less likely than that point by a factor of at most failure / size.

    The bound is attained if all records have one value and all other points are at this distance. On evenly
    spread records the distance is some seven times smaller.

    Args:
        aim: where it is sought.
        size: number of grid points.
        scale: half of the draw's scale, per unit of the larger weight of a record.
        failure: probability with which the bound may fail.
    """
    return 2 * aim.weight * scale * (math.log(size) - math.log(failure))


def hardest(aim: Aim, bound: float) -> Tightness:
    """Return on which rows the bound of `distance_bound` is attained."""
    rows = math.ceil(bound / aim.probability)
    return Tightness(
        "Hardly a smaller rank error can be promised. Where all of some "
        f"{rows:,} rows have the highest value of the domain, every other value is that far from the "
        "wanted rank. Together the others are released with nearly the probability that a promise may fail. "
        "On spread values, errors are several times smaller.",
        reached=True,
    )


def hardest_extreme(error: int) -> Tightness:
    """Return on which rows the promise about an extreme is attained; see `ExponentialByRank`, 6."""
    return Tightness(
        "Hardly a smaller rank error can be promised. The value is sought inside of the rows by about "
        f"half of it. Where all of some {error:,} rows have one value at the end of the domain, all other "
        "values are as far from that rank on its other side, and together they are released with nearly the "
        "probability that a promise may fail. On spread values, errors are about half of what is promised.",
        reached=True,
    )


def far_from(aim: Aim, size: int, draw: Exponential, failure: float, among: int | None = None) -> int | None:
    """Return the distance at which scores end: None in a domain whose points can all be counted.

    Points at this distance together are chosen with a ten billionth of the failure probability, at most.

    Args:
        aim: where it is sought.
        size: number of points, with those that are added to the domain.
        draw: chooses the point.
        failure: the probability with which the choice may fail.
        among: number of points that are counted at once; None where they are these points.
    """
    if (size if among is None else among) <= CELLS:
        return None
    return math.ceil(distance_bound(aim, size, draw.scale / 2, failure * 1e-10))


def typical_distance(aim: Aim, scale: float) -> float:
    """Return the standard deviation of the rank among dense records: that of a two-sided exponential."""
    return 2 * aim.weight * scale * math.sqrt(2)


@dataclass(frozen=True)
class ChooseByRank(Focused):
    """Release one quantile: the exponential mechanism over all grid points (Smith 2011).

    The points between two neighboring records have equal scores and are one run. In a wide domain the
    private stage gets the ranks of those points alone whose scores do not end; see `core.focus`. All others
    have one score, so the same points are chosen with the same probabilities as if all records were counted.

    Sensitivity: if a record is added or removed, the changes of the scores have a range of at most twice the
    larger weight of a record (see `Aim`).

    Cost: the release spends epsilon if the scale is twice the larger weight / epsilon. A replacement is a
    removal and an addition, so under `replace_one` the scale is twice as large.

    An interval takes two more choices, of ranks that are `reach` lower and higher. Each end is wrong with at
    most half of the failure probability, so together they enclose a point of the wanted rank p n. For the
    lower end, a point is wrong if all of its ranks are above p n:

    1. If p n >= reach, some point is at distance 0 from the aim p n - reach. Wrong points are farther away
       than `reach`. See `distance_bound`.
    2. If p n < reach, the points added below the domain have rank 0, at distance reach - p n from the aim,
       and wrong points are still farther away than `reach`. So wrong points are no more likely than as
       many added ones. There are at most `size` of them, and `margin` = size / (failure / 2) added ones.

    Added points are right for the lower end. The upper end is the mirror image. If p n is below about twice
    `reach`, the lower end is mostly the first point of the domain.

    Args:
        aim: the rank.
        size: number of grid points.
        draw: chooses the point, per unit of the larger weight.
        ends: chooses the ends of the interval; None where none is asked for.
        reach: see above.
        margin: see above.
        ends_far: where the scores of the ends' choices end; see `Aim`.
    """

    aim: Aim
    size: int
    draw: Exponential
    ends: Exponential | None = None
    reach: int = 0
    margin: int = 0
    ends_far: int | None = None
    purpose: ClassVar[str] = "a value whose rank is close to the wanted one"
    name: str = "release"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.draw,) if self.ends is None else (self.draw, self.ends)

    @property
    def points(self) -> int:
        """See `Focused.points`."""
        return self.size

    @property
    def near(self) -> tuple[int, ...]:
        """See `Focused.near`; a distance is one in records."""
        return tuple(2 * (aim.far or 0) for aim in self._aims)

    def hot(self, runs: Runs, total: int, state: None) -> Bools:
        """See `Focused.hot`."""
        return np.asarray(np.any([aim.hot(runs, total) for aim in self._aims], axis=0))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundValue | FoundQuantiles:
        """Release a grid point, and the interval if it is asked for."""
        at, interval = self.choose(aggregate, noise)
        return FoundValue(at, interval=interval)

    def choose(self, aggregate: Counts, noise: Noise) -> tuple[int, tuple[int, int] | None]:
        """Choose the grid point, and the interval if it is asked for, which is widened to hold the point."""
        order, (aim, *shifted) = Order.of_counts(aggregate), self._aims
        at = aim.point(order, self.size, self.draw, noise)
        if self.ends is None:
            return at, None
        low, high = (each.point(order, self.size, self.ends, noise) for each in shifted)
        return at, (min(low, at), max(high, at))

    @property
    def _aims(self) -> tuple[Aim, ...]:
        """The aim of the value, and those of the interval's ends."""
        if self.ends is None:
            return (self.aim,)
        end = replace(self.aim, margin=self.margin, far=self.ends_far)
        return (self.aim, replace(end, shift=-self.reach), replace(end, shift=self.reach))


@dataclass(frozen=True)
class OneQuantile(ChooseByRank):
    """Release one quantile as a list of one; see `ChooseByRank`."""

    purpose: ClassVar[str] = "where the quantile lies"
    name: str = "quantiles"

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point, and the interval if it is asked for."""
        step, interval = self.choose(aggregate, noise)
        return FoundQuantiles((self.aim.probability,), (step,), interval and (interval,))


def interval_draw(
    aim: Aim, size: int, epsilon: float, failure: float, neighbors: Neighbors, among: int | None = None
) -> tuple[Exponential, int, int, int | None]:
    """Return the draw of an interval's two ends, its reach, its margin and `ends_far`; see `ChooseByRank`.

    Args:
        aim: of the quantile.
        size: number of grid points.
        epsilon: what both ends cost together.
        failure: probability with which the interval may hold no point of the wanted rank.
        neighbors: the neighbor relation.
        among: see `far_from`.
    """
    ends = per_weight("ends of the interval", epsilon / 2, neighbors, times=2)
    reach = math.ceil(distance_bound(aim, size, neighbors.changes / (epsilon / 2), failure / 2))
    margin = math.ceil(2 * size / failure)
    far = far_from(aim, size + margin, ends, failure / 2, size if among is None else among)
    return ends, reach, margin, far


@dataclass(frozen=True)
class ExponentialByRank(Method[OneValue]):
    """The exponential mechanism on ranks; it promises a rank.

    A minimum or maximum is sought `inside` records away from the extreme, toward the other records:

    1. Let there be n >= 2 inside records. A point beyond all of them is at distance `inside` from the aim.
    2. The chosen point is farther from the aim than a bound E with probability at most `failure`.
    3. So with `inside` = floor(E) + 1 the value is not beyond the extreme, except with that probability.
    4. Then at most inside + floor(E) records are beyond the value.
    5. The true minimum is then at most the value. No private interval holds it from below, because one record
       may lie anywhere below the others.
    6. No smaller rank suffices for all data. If all records have one value and all other points are beyond
       it, the released point is beyond it with probability about size e^(-inside / scale).

    Args:
        among: number of points of all columns that are counted at once; None where there is one column.
    """

    name: ClassVar[str] = "exponential"
    among: int | None = None

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        setting, part = self.setting, self.setting.params.interval
        epsilon = share * setting.budget.epsilon
        draw = per_weight("value", (1 - part) * epsilon, setting.neighbors)
        failure, aim = setting.params.failure, self._aim(share)
        aim = replace(aim, far=far_from(aim, self._size, draw, failure, self.among))
        if part == 0:
            return (ChooseByRank(aim, self._size, draw),)
        ends = interval_draw(
            self._anywhere, self._size, part * epsilon, failure, setting.neighbors, self.among
        )
        return (ChooseByRank(aim, self._size, draw, *ends),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        aim, bound, typical = (
            self._aim(share),
            self._bound(share),
            typical_distance(self._anywhere, self._scale(share)),
        )
        if not aim.inside:
            part = self.setting.params.interval
            note = (
                f"{100 * part:.4g}% of epsilon pays for an interval of values that holds the true quantile "
                "(interval_share)."
                if part
                else "No interval of values is released beside the value, because interval_share is 0."
            )
            promises, tightness = Promises(math.ceil(bound), typical), {"rank_error": hardest(aim, bound)}
            return Accuracy(promises, error=bound, notes=(note,), tightness=tightness)
        error = aim.inside + math.floor(bound)
        note = (
            f"The value is sought {aim.inside:,} records inside of the extreme, because all values beyond "
            f"the records have the same rank. Among at least {2 * aim.inside:,} records the value is not "
            "beyond them; among fewer it is sought in their middle. No interval of values is released, "
            "because one row may lie anywhere beyond the others."
        )
        promises, tightness = (
            Promises(error, math.hypot(aim.inside, typical)),
            {"rank_error": hardest_extreme(error)},
        )
        return Accuracy(promises, error=error, notes=(note,), tightness=tightness)

    @property
    def _size(self) -> int:
        return self.setting.grid.extents[0] + 1

    @property
    def _anywhere(self) -> Aim:
        """The aim of a quantile that is no extreme."""
        return Aim(self.setting.params.quantile, self.setting.neighbors.name == "replace_one")

    def _aim(self, share: float) -> Aim:
        aim = self._anywhere
        return replace(aim, inside=math.floor(self._bound(share)) + 1) if aim.probability in (0, 1) else aim

    def _scale(self, share: float) -> float:
        """Scale of the value's choice, per unit of the larger weight."""
        part = self.setting.params.interval
        return self.setting.neighbors.changes / (share * (1 - part) * self.setting.budget.epsilon)

    def _bound(self, share: float) -> float:
        return distance_bound(self._anywhere, self._size, self._scale(share), self.setting.params.failure)
