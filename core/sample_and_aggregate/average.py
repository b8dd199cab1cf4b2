"""Average the blocks' answers (GUPT; Mohan, Thakurta, Shi, Song and Culler 2012)."""

from dataclasses import dataclass

import numpy as np

from core.aggregate import Counts
from core.draws import Draw, Laplace
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.order_statistics import Rank, choose_by_rank
from core.sample_and_aggregate.outputs import Aggregation, Outputs, Stable, StableRadius

QUARTILES = (Rank(1, 4), Rank(3, 4))


@dataclass(frozen=True, kw_only=True)
class Average(Aggregation):
    """Release the mean of the answers, clamped per axis to a range, by discrete Laplace noise on their sum.

    One answer moves the clamped sum of an axis by at most the width of the range. The range is the axis, or
    with `quartile` the private quartiles of the answers (`choose_by_rank`), so that noise follows the
    answers' spread; then the mean is one of answers moved to the quartiles.

    Args:
        sum: noise of a sum, per step of the range's width.
        quartile: chooses each quartile, or None.
        radius: how the radius is released.
    """

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
