"""Average the blocks' answers (GUPT; Mohan, Thakurta, Shi, Song and Culler 2012)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.draws import Charged, Draw, Laplace
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.order_statistics import Rank, choose_by_rank
from core.sample_and_aggregate.aggregator import RADIUS_SHARE, Aggregator
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.outputs import Aggregation, Outputs
from core.sample_and_aggregate.stable_radius import StableRadius
from core.task import Accuracy

QUARTILES = (Rank(1, 4), Rank(3, 4))


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
        radius: how the radius is released.
    """

    purpose: ClassVar[str] = "the mean of the blocks' answers, and how far from it they are"
    sum: Laplace
    quartile: Exponential | None
    radius: StableRadius

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.sum, *([] if self.quartile is None else [self.quartile]), self.radius.choice)

    def release(self, aggregate: Outputs, state: None, noise: Noise) -> Stable:
        """Release the mean and the radius about it."""
        points = self.table(aggregate)
        value = np.zeros(self.grid.dimension, dtype=np.int64)
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
        return Stable(value, self.radius.release(points, value, noise))


class AverageOfAnswers(Aggregator):
    """The mean of all answers. No agreement is needed, but every answer that is not stable moves the mean."""

    name: ClassVar[str] = "average"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        params, axes, round_ = self.setting.params, self.setting.grid.dimension, self._round(share)
        noise = round_.sum.scale * math.log(2 * axes / params.failure) / params.blocks
        loose = params.ranges == "loose"
        part = 1.0 if loose else min(1.0, 1 - self.stable / params.blocks + noise)
        return self.promised(part, round_.radius)

    def _round(self, share: float) -> ClampedAverage:
        grid, params, changes = self.setting.grid, self.setting.params, self.changes
        axes = grid.dimension
        each = (1 - RADIUS_SHARE) * self.per_answer(share).epsilon / axes
        loose = params.ranges == "loose"
        what = "sum of an axis, per width of its range"
        sum_ = Laplace.of(what, each / (1 + loose), 1, times=axes, changes=changes)
        quartile = Exponential.of("quartile of an axis", each / 4, 2, times=2 * axes, changes=changes)
        return ClampedAverage(
            grid=grid,
            blocks=params.blocks,
            sum=sum_,
            quartile=quartile if loose else None,
            radius=self.radius(share),
        )
