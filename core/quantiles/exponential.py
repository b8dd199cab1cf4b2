"""One quantile by the exponential mechanism on ranks, whatever the width of the domain."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from core.aggregate import Counts
from core.draws import Charged, Draw
from core.focus import CELLS, Bools, Focused
from core.gaps import Order, Runs
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise
from core.quantiles.aim import Aim
from core.quantiles.brackets import Bins, most_pairs, widened
from core.quantiles.found import FoundQuantiles, FoundValue, Promises
from core.quantiles.hardest import hardest, hardest_extreme
from core.quantiles.params import OneValue
from core.task import Accuracy, Method

_FARTHEST = 1e6  # scales of a choice: an interval about a pivot that is farther off costs hardly anything


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


def widening(size: int, part: float, failure: float) -> float:
    """Return by how much an interval makes that deviation larger; see `core.quantiles.brackets.widened`.

    Args:
        size: number of grid points.
        part: of epsilon for the pivot of the interval; 0 for no interval.
        failure: see `choice_of`.
    """
    if not part:
        return 1.0
    pivot = min((1 - part) / part, _FARTHEST)
    return widened(math.log(outcomes_of(size, True)) - math.log(failure), pivot)


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

    An interval is chosen with the value, and costs a pivot; see `core.quantiles.brackets`. Here r = p n. If
    p n < `reach`, the lower end is sought below all records. It is then the first point of the domain or near
    it. The upper end is the mirror image.

    Args:
        aim: the rank.
        size: number of grid points.
        draw: chooses the point, per unit of the larger weight, and with it the interval.
        pivot: chooses the pivot; None where no interval is asked for.
        reach: see `core.quantiles.brackets`, in records.
        pivot_far: where the scores of the pivot end; see `Aim`.
    """

    aim: Aim
    size: int
    draw: Exponential
    pivot: Exponential | None = None
    reach: int = 0
    pivot_far: int | None = None
    purpose: ClassVar[str] = "a value whose rank is close to the wanted one"
    name: str = "release"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.draw,) if self.pivot is None else (self.pivot, self.draw)

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
        order, aim = Order.of_counts(aggregate), self.aim
        if self.pivot is None:
            return aim.point(order, self.size, self.draw, noise), None
        pivot = replace(aim, far=self.pivot_far).point(order, self.size, self.pivot, noise)
        bins = Bins.about(pivot, 0, self.size)
        at, (low, high) = aim.bracketed(order, self.size, self.draw, bins, self.reach, noise)
        return at, (min(low, at), max(high, at))

    @property
    def _aims(self) -> tuple[Aim, ...]:
        """The aim of the value, and those of the pivot and of the interval's ends."""
        if self.pivot is None:
            return (self.aim,)
        ends = (replace(self.aim, shift=shift) for shift in (-self.reach, self.reach))
        return (self.aim, replace(self.aim, far=self.pivot_far), *ends)


@dataclass(frozen=True)
class OneQuantile(ChooseByRank):
    """Release one quantile as a list of one; see `ChooseByRank`."""

    purpose: ClassVar[str] = "where the quantile lies"
    name: str = "quantiles"

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point, and the interval if it is asked for."""
        step, interval = self.choose(aggregate, noise)
        return FoundQuantiles((self.aim.probability,), (step,), interval and (interval,))


C = TypeVar("C", bound=ChooseByRank)


def choice_of(
    kind: type[C],
    what: str,
    aim: Aim,
    size: int,
    epsilon: float,
    part: float,
    failure: float,
    neighbors: Neighbors,
    among: int | None = None,
) -> C:
    """Return the round that releases one quantile and, where a part of epsilon pays for it, an interval.

    Args:
        kind: of round.
        what: is chosen.
        aim: of the quantile.
        size: number of grid points.
        epsilon: what all costs together.
        part: of it for the pivot of an interval; 0 for no interval.
        failure: probability with which the promise and the interval may fail, together.
        neighbors: the neighbor relation.
        among: see `far_from`.
    """
    draw, among = per_weight(what, (1 - part) * epsilon, neighbors), size if among is None else among
    bracketed = part > 0
    aim = replace(aim, far=far_from(aim, outcomes_of(size, bracketed), draw, failure, among))
    if not bracketed:
        return kind(aim, size, draw)
    pivot = per_weight("pivot of the interval", part * epsilon, neighbors)
    reach = math.ceil(distance_bound(aim, outcomes_of(size, bracketed), draw.scale / 2, failure))
    return kind(aim, size, draw, pivot, reach, far_from(aim, size, pivot, failure, among))


def outcomes_of(size: int, bracketed: bool) -> int:
    """Return the number of values that a choice has, with the bins of an interval's ends where it has one."""
    return size * most_pairs(size) if bracketed else size


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
        setting, params = self.setting, self.setting.params
        return (
            choice_of(
                ChooseByRank,
                "value",
                self._aim(share),
                self._size,
                share * setting.budget.epsilon,
                params.interval,
                params.failure,
                setting.neighbors,
                self.among,
            ),
        )

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        aim, bound, typical = (
            self._aim(share),
            self._bound(share),
            typical_distance(self._anywhere, self._scale(share)),
        )
        if not aim.inside:
            part = self.setting.params.interval
            more = widening(self._size, part, self.setting.params.failure)
            note = (
                f"An interval of values that holds the true quantile takes {100 * part:.4g}% of epsilon "
                f"(interval_share). The standard error of the rank is {more / (1 - part):.3g} times that "
                "without it."
                if part
                else "No interval of values is released beside the value, because interval_share is 0."
            )
            promises, tightness = (
                Promises(math.ceil(bound), typical * more),
                {"rank_error": hardest(aim.probability, bound, part > 0)},
            )
            return Accuracy(promises, error=bound, notes=(note,), tightness=tightness)
        error = aim.inside + math.floor(bound)
        note = (
            f"The value is sought {aim.inside:,} records inside of the extreme, because all values beyond "
            f"the records have the same rank. Among at least {2 * aim.inside:,} records the value is beyond "
            f"them with a probability of at most {self.setting.params.failure:.4g}; among fewer it is sought "
            "in their middle, and the fewer there are, the more often it is anywhere in the domain. No "
            "interval of values is released, because one row may lie anywhere beyond the others."
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
        params = self.setting.params
        size = outcomes_of(self._size, params.interval > 0)
        return distance_bound(self._anywhere, size, self._scale(share), params.failure)
