"""What all aggregators share: the failed blocks, the radius about the answers, and the promises."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from core.budget import Cost
from core.draws import Laplace
from core.mechanisms.admissible import Admissible
from core.mechanisms.exponential import Exponential, missed_scores
from core.mechanisms.tails import largest_of
from core.sample_and_aggregate.found import Promises
from core.sample_and_aggregate.outputs import CountFailures
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.stable_radius import StableRadius, candidate_radii
from core.task import Accuracy, Method, geometric_mean
from core.tightness import Tightness

FAILURES_SHARE = 0.03
"""Part of epsilon that is spent on the number of failed blocks, where there are many blocks."""

RADIUS_SHARE = 0.2
"""Largest part of epsilon that is spent on the radius about a released value."""

TYPICAL_SPREAD = 0.0005
"""Spread D of the answers that agree, for which methods are compared, as a part of each axis."""

DIVIDED = 0.65
"""Part of the blocks that agree where methods are compared for divided answers; see `Expected`."""

VOID = 2.0
"""Added to the error of a method whose promise is void, in widths of an axis. No value errs by more."""

_WORTH = 0.25  # a promise of a larger error is void, in widths of an axis: the middle of the axis has 0.5

_LEAST = 0.001  # errors below this part of an axis count as this
_RADIUS, _FAILURES = 0.25, 0.25  # parts of the failure probability; the value has what is left
_FALSE_ALARM = 0.002  # probability that a run without a failed block ends as not_found
_ALARM = 2 / 3  # part of the blocks above which a number of failures must end as not_found
_MOST_FAILURES_SHARE = 0.25  # largest part of epsilon that is spent on the number of failed blocks
_MISSED = 0.25  # part of the stable answers that the radius may miss, where RADIUS_SHARE suffices for that
_MOST_MISSED = 0.5  # part that it may miss where RADIUS_SHARE does not suffice


@dataclass(frozen=True)
class Expected:
    """Errors on three shapes of answers, as parts of the axis on which each is largest.

    At least half of the runs have a smaller error.

    Args:
        agreeing: `stable_fraction` of the answers lie within `TYPICAL_SPREAD`; the others scatter.
        even: all answers lie evenly over the whole axis.
        divided: a part `DIVIDED` of the answers lies within `TYPICAL_SPREAD`; the others agree far away.
    """

    agreeing: float
    even: float
    divided: float

    @property
    def mean(self) -> float:
        """Return the geometric mean, in which agreeing answers count twice, as they are what is hoped for."""
        errors = (self.agreeing, self.agreeing, self.even, self.divided)
        return geometric_mean([min(1.0, max(_LEAST, error)) for error in errors])


_NOTHING = Tightness(
    "Nothing is promised about the value, so leftover is the width of the widest axis.", reached=False
)
_OF_MEANS = Tightness(
    "The noise of the mean does not depend on the answers. A radius and the number of failed blocks have "
    "parts of the failure probability, so errors of the mean are usually smaller than promised by up to a "
    "third.",
    reached=False,
)
_OF_RADIUS = Tightness(
    "The promise about the radius holds for any distances of the answers. Where they lie evenly about the "
    "value, the radius holds two to three times nearer the promised number.",
    reached=False,
)
_OF_FAILURES = Tightness(
    "The error of the number of failed blocks gets a quarter of the failure probability, because the value "
    "may fail too. So it is usually smaller by a third or more.",
    reached=False,
)


class Aggregator(Method[SampleAndAggregate]):
    """One round on the answers of all blocks, which are its records.

    A privacy unit falls into one block, by its identity. So adding or removing a unit changes one answer. A
    replaced unit may fall into another block than before, so it changes up to two answers.
    """

    of_errors: ClassVar[Tightness]
    """How near answers come to the promised errors of the value."""
    own_radius: ClassVar[bool] = False
    """Whether the value comes with a radius of its own, so that none is chosen about it."""

    @property
    def stable(self) -> int:
        """Blocks that are expected to agree."""
        params = self.setting.params
        return max(1, math.floor(params.stable_fraction * params.blocks))

    def between(self, agreeing: int) -> float:
        """Return the distance of neighbors, in parts of an axis, of so many answers that agree.

        They lie evenly within `TYPICAL_SPREAD` of a point.
        """
        return 2 * TYPICAL_SPREAD / max(1, agreeing)

    @property
    def usual_failure(self) -> float:
        """Failure probability of an axis; at most half of the runs then have a larger error on some axis."""
        return 0.5 / self.setting.grid.dimension

    @property
    def divided(self) -> int:
        """Blocks that agree where the answers are divided; see `Expected`."""
        return math.floor(DIVIDED * self.setting.params.blocks)

    @property
    def changes(self) -> int:
        """How many answers differ between neighbors."""
        return self.setting.neighbors.changes

    @property
    def value_failure(self) -> float:
        """Probability that the promise about the value fails."""
        others = (_FAILURES if self.failures_share else 0) + (_RADIUS if self._radius_share else 0)
        return (1 - others) * self.setting.params.failure

    def per_answer(self, share: float) -> Cost:
        """Return what the round may cost where one answer changes."""
        budget = self.setting.budget
        return Cost(share * budget.epsilon, budget.delta).per_change(self.changes)

    def common(self, share: float) -> dict[str, Any]:
        """Return the fields that all rounds of this task have."""
        grid, params = self.setting.grid, self.setting.params
        default = np.array(grid.bounding_center)
        if params.default is not None:
            default = grid.quantize(np.array([params.default]))[0]
        return {
            "grid": grid,
            "blocks": params.blocks,
            "default": tuple(default.tolist()),
            "failures": self.failures(share),
            "radius": self.radius(share),
        }

    def failures(self, share: float) -> CountFailures | None:
        """Return how failed blocks are counted; None where the count could not tell all blocks from none.

        The stable answers need not include those of `blocks - stable` failed blocks. Above this number, and
        above what the noise alone reaches with probability 0.2%, no value is released.
        """
        if not self.failures_share:
            return None
        epsilon = self.failures_share * self.per_answer(share).epsilon
        draw = Laplace.of("number of failed blocks", epsilon, 1, changes=self.changes)
        noise = largest_of(1, draw.scale, 2 * _FALSE_ALARM)
        return CountFailures(draw, max(self.setting.params.blocks - self.stable, noise))

    def radius(self, share: float) -> StableRadius | None:
        """Return how the radius is chosen; None where it is not, or where its rank error leaves no promise.

        The answers that are not stable may be arbitrarily far away, so a radius that holds more than the
        stable answers may be arbitrarily large. The mechanism may miss its target by its rank error. So its
        target is the number of stable answers minus the rank error.
        """
        part = self._radius_share
        if part == 0:
            return None
        epsilon = part * self.per_answer(share).epsilon
        choice = Exponential.of("radius", epsilon, 2, changes=self.changes)
        error = StableRadius(self.setting.grid, self.stable, 0, choice).rank_error(self._radius_failure)
        return StableRadius(self.setting.grid, self.stable - error, self.stable - 2 * error, choice)

    @cached_property
    def value_share(self) -> float:
        """Part of epsilon that is left for the value."""
        return 1 - self.failures_share - self._radius_share

    @cached_property
    def failures_share(self) -> float:
        """Part of epsilon that is spent on the number of failed blocks, or 0.

        Few blocks need more of it than many, because what the noise alone reaches must be at most two thirds
        of them. Then a run of which all blocks failed ends as not_found with probability 97%, or with 70% if
        `stable_fraction` is so small that few blocks are called too few.
        """
        needed = self._blocks_to_count / self.setting.params.blocks * _MOST_FAILURES_SHARE
        return 0.0 if needed > _MOST_FAILURES_SHARE else max(FAILURES_SHARE, needed)

    @property
    def _blocks_to_count(self) -> float:
        """Smallest number of blocks of which the failed ones are counted, but for rounding."""
        largest = -math.log(2 * _FALSE_ALARM) / (_MOST_FAILURES_SHARE * self.per_answer(1.0).epsilon)
        return largest / _ALARM

    @cached_property
    def _radius_share(self) -> float:
        """Part of epsilon that the radius needs so that it misses few stable answers, or 0."""
        if self.own_radius:
            return 0.0
        for missed in (_MISSED, _MOST_MISSED):
            spare = missed * self.stable / 2 - 1  # a rank error is rounded up
            if spare > 0 and self._whole_rank_error / spare <= RADIUS_SHARE:
                return self._whole_rank_error / spare if missed == _MISSED else RADIUS_SHARE
        return 0.0

    @property
    def _whole_rank_error(self) -> float:
        """Rank error of the radius if it got the whole epsilon."""
        scales = missed_scores(len(candidate_radii(self.setting.grid)), self._radius_failure)
        return 2 / self.per_answer(1.0).epsilon * scales

    @property
    def _blocks_for_radius(self) -> int:
        """Smallest number of blocks with which a radius is released, but for rounding."""
        stable = 2 / _MOST_MISSED * (self._whole_rank_error / RADIUS_SHARE + 1)
        return math.floor(stable / self.setting.params.stable_fraction) + 1

    @property
    def _radius_failure(self) -> float:
        return _RADIUS * self.setting.params.failure

    def promised(
        self,
        share: float,
        parts: Sequence[float] | None,
        spread_factor: float | None = None,
        mean_errors: tuple[float, ...] | None = None,
        expected: Expected | None = None,
    ) -> Accuracy:
        """Return the accuracy of a method.

        Args:
            share: of the budget.
            parts: `Promises.errors`, each as a part of its axis; None where nothing is promised.
            spread_factor: see `Promises`.
            mean_errors: see `Promises`.
            expected: the errors by which methods are compared; None for a method that serves nobody here.
        """
        grid, radius, failures = self.setting.grid, self.radius(share), self.failures(share)
        widths = [extent * grid.step for extent in grid.extents]
        errors = None
        if parts is not None:
            errors = tuple(max(grid.step, part * width) for part, width in zip(parts, widths, strict=True))
        failed = None
        if failures is not None:
            failed = largest_of(1, failures.count.scale, _FAILURES * self.setting.params.failure)
        promises = Promises(
            leftover=max(widths) if errors is None else max(errors),
            radius_blocks=None if radius is None else self.stable - radius.holds,
            errors=errors,
            spread_factor=None if errors is None else spread_factor,
            mean_errors=mean_errors,
            failed_error=failed,
            failed_most=None if failures is None else failures.most,
        )
        void = parts is None or max(parts) > _WORTH
        error = (1.0 if expected is None else expected.mean) + (VOID if void else 0.0)
        return Accuracy(promises, error, self._notes(radius, failures), tightness=self._tightness(promises))

    def _tightness(self, promises: Promises) -> dict[str, Tightness]:
        """Return how near errors come to each promise."""
        each = {
            "leftover": self.of_errors if promises.errors is not None else _NOTHING,
            "errors": self.of_errors,
            "mean_errors": _OF_MEANS,
            "radius_blocks": _OF_RADIUS,
            "failed_error": _OF_FAILURES,
        }
        return {name: why for name, why in each.items() if getattr(promises, name) is not None}

    def _notes(self, radius: StableRadius | None, failures: CountFailures | None) -> tuple[str, ...]:
        notes = []
        if radius is None and not self.own_radius:
            notes.append(
                "No radius about the value is released: at this budget and number of blocks it could not be "
                "promised to hold half of the stable answers. That takes about "
                f"{self._blocks_for_radius:,} blocks. Its part of epsilon is spent on the value."
            )
        if failures is None:
            notes.append(
                "Failed blocks cannot be seen: with so few blocks at this budget, the noise of their number "
                f"could not tell all blocks from none. That takes about {math.ceil(self._blocks_to_count):,} "
                "blocks. A block that fails counts as the default answer, which draws the value towards it. "
                "So try the function with check-function."
            )
        return tuple(notes)


def vanishing(noise: Admissible, spare: int, failure: float, widths: float) -> float:
    """Bound the part of a center's noise that remains even where all stable answers are equal.

    Args:
        noise: the noise of the center.
        spare: how many answers may change before the center can leave the stable answers. Below 0, the center
            may be outside of them already.
        failure: probability that the noise is larger than the bound.
        widths: the largest possible sensitivity, in widths of an axis.

    Returns:
        The bound, as a part of the axis; at most 1.
    """
    if spare < 0:
        return 1.0
    return min(1.0, widths * noise.scale(math.exp(-noise.beta * spare)) * noise.tail(failure))
