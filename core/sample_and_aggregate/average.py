"""Average the blocks' answers (GUPT; Mohan, Thakurta, Shi, Song and Culler 2012)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.domain import Points
from core.draws import Charged, Draw, Laplace
from core.mechanisms.exponential import Exponential
from core.mechanisms.tails import largest_of
from core.noise import Noise
from core.order_statistics import Rank, choose_by_rank
from core.sample_and_aggregate.aggregator import DIVIDED, Aggregator, Expected
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.outputs import Aggregation
from core.task import Accuracy
from core.tightness import Tightness

QUARTILES = (Rank(1, 4), Rank(3, 4))

_APART = 0.5  # of the width of an axis: distance of two groups of answers
_SCATTERED = 0.25  # of the width of an axis: mean distance of a uniform answer from the middle


@dataclass(frozen=True, kw_only=True)
class ClampedAverage(Aggregation):
    """Release the mean of the answers, clamped per axis to a range, with discrete Laplace noise on their sum.

    Changing one answer moves the clamped sum of an axis by at most the width of the range. Without `quartile`
    the range is the whole axis. With `quartile` its ends are private quartiles of the answers
    (`choose_by_rank`). Then the noise follows the spread of the answers, but the mean is biased: answers
    outside of the quartiles count as the nearer quartile.

    Args:
        sum: noise of a sum, per step of the range's width.
        quartile: chooses each quartile, or None.
        failure: probability that a mean is farther from the released value than its `Stable.errors`.
    """

    purpose: ClassVar[str] = "the mean of the blocks' answers, and how far from it they are"
    sum: Laplace
    quartile: Exponential | None
    failure: float

    def value_draws(self) -> tuple[Draw, ...]:
        """See `Aggregation.value_draws`."""
        quartile = () if self.quartile is None else (self.quartile,)
        return (self.sum, *quartile)

    def aggregate(self, points: Points, noise: Noise) -> Stable:
        """Release the mean and the radius about it."""
        value, errors = np.zeros(self.grid.dimension, dtype=np.int64), []
        for axis, extent in enumerate(self.grid.extents):
            low, high = 0, extent
            if self.quartile is not None:
                counts = Counts.of(points[:, axis])
                ends = [choose_by_rank(counts, extent, rank, self.quartile, noise) for rank in QUARTILES]
                low, high = min(ends), max(ends)
            clamped = np.clip(points[:, axis], low, high) - low
            total = clamped.sum(keepdims=True)
            if high > low:
                total = self.sum.add(total, noise, unit=high - low)
            value[axis] = min(max(round(int(total[0]) / self.blocks), 0), high - low) + low
            errors.append(self.error(high - low))
        radius = None if self.radius is None else self.radius.release(points, value, noise)
        return Stable(value, radius, tuple(errors))

    def error(self, width: int) -> float:
        """Bound how far a released value is from the mean of the clamped answers, grid steps.

        Args:
            width: of the range that answers are clamped to, grid steps.
        """
        if width == 0:
            return 0.0
        noise = largest_of(1, self.sum.scale * width, self.failure / self.grid.dimension) / self.blocks
        return min(float(width), noise + 0.5)  # the value is rounded, and in the range like the mean


class AverageOfAnswers(Aggregator):
    """The mean of all answers. No agreement is needed, but every answer that is not stable moves the mean."""

    name: ClassVar[str] = "average"
    of_errors: ClassVar[Tightness] = Tightness(
        "The promised errors are nearly reached where the stable answers are at one end of an axis and all "
        "others at its other end. Where answers scatter, errors are several times smaller.",
        reached=True,
    )

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        The stable answers move the mean from their center by at most D, and each of the others by at most the
        width of the axis, divided by the number of blocks. If the others scatter, each moves it by a quarter
        of the width on average, and methods are compared by that.
        """
        grid, params, round_ = self.setting.grid, self.setting.params, self._round(share)
        others = 1 - self.stable / params.blocks
        noise = [round_.error(extent) / extent for extent in grid.extents]
        typical = largest_of(1, round_.sum.scale, self.usual_failure) / params.blocks
        expected = Expected(
            agreeing=typical + _SCATTERED * others, even=typical, divided=typical + _APART * (1 - DIVIDED)
        )
        if params.ranges == "loose":
            return self.promised(share, None, expected=expected)
        parts = [part + others for part in noise]
        means = tuple(part * extent * grid.step for part, extent in zip(noise, grid.extents, strict=True))
        promised = max(parts) < 1
        return self.promised(share, parts if promised else None, 1.0, means, expected)

    def _round(self, share: float) -> ClampedAverage:
        grid, params, changes = self.setting.grid, self.setting.params, self.changes
        axes = grid.dimension
        each = self.value_share * self.per_answer(share).epsilon / axes
        loose = params.ranges == "loose"
        what = "sum of an axis, per width of its range"
        quartile = Exponential.of("quartile of an axis", each / 4, 2, times=2 * axes, changes=changes)
        return ClampedAverage(
            **self.common(share),
            sum=Laplace.of(what, each / (1 + loose), 1, times=axes, changes=changes),
            quartile=quartile if loose else None,
            failure=self.value_failure,
        )
