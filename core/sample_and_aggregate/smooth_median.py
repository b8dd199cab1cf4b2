"""The median of the blocks' answers on each axis, with noise by its smooth sensitivity."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.draws import Charged, Draw
from core.mechanisms.admissible import Admissible
from core.mechanisms.calibrate_noise import calibrate_noise
from core.neighbors import Neighbors
from core.noise import Noise
from core.order_statistics import Rank, order_statistic, smooth_sensitivity
from core.sample_and_aggregate.aggregator import RADIUS_SHARE, Aggregator, vanishing
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.outputs import Aggregation, Outputs
from core.sample_and_aggregate.stable_radius import StableRadius
from core.task import Accuracy

MEDIAN = Rank(1, 2)


@dataclass(frozen=True, kw_only=True)
class SmoothMedian(Aggregation):
    """Release the median of each axis, with noise by its smooth sensitivity.

    Changing one answer replaces one value on every axis. So every axis is charged.

    Args:
        noise: of one axis, drawn for each.
        radius: how the radius is released.
    """

    purpose: ClassVar[str] = "the median of the blocks' answers on each axis, and how far from it they are"
    noise: Admissible
    radius: StableRadius

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.noise, self.radius.choice

    def release(self, aggregate: Outputs, state: None, noise: Noise) -> Stable:
        """Release the medians and the radius about them."""
        points = self.table(aggregate)
        value = np.zeros(self.grid.dimension, dtype=np.int64)
        one_replaced = Neighbors("replace_one")
        for axis, extent in enumerate(self.grid.extents):
            counts = Counts.of(points[:, axis])
            smooth = smooth_sensitivity(counts, extent, MEDIAN, self.noise.beta, one_replaced)
            (median,) = self.noise.add([order_statistic(counts, extent, MEDIAN)], smooth, noise)
            value[axis] = min(max(median, 0), extent)
        return Stable(value, self.radius.release(points, value, noise))


class MedianOfAnswers(Aggregator):
    """The median of each axis. It stays within the stable answers where these are a clear majority."""

    name: ClassVar[str] = "smooth_median"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        round_ = self._round(share)
        spare = self.stable - (self.setting.params.blocks + 1) // 2 - 1
        return self.promised(vanishing(round_.noise, spare, self._failure, 1.0), round_.radius)

    @property
    def _failure(self) -> float:
        return self.setting.params.failure / (2 * self.setting.grid.dimension)

    def _round(self, share: float) -> SmoothMedian:
        grid, one = self.setting.grid, self.per_answer(share)
        axes = grid.dimension
        each = (1 - RADIUS_SHARE) * one.epsilon / axes
        noise = calibrate_noise(
            "median of an axis",
            "auto",
            each,
            one.delta / axes,
            self._failure,
            1.0,
            changes=self.changes,
            times=axes,
        )
        radius = self.radius(share)
        return SmoothMedian(grid=grid, blocks=self.setting.params.blocks, noise=noise, radius=radius)
