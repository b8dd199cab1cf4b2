"""Average the blocks' answers (GUPT; Mohan, Thakurta, Shi, Song and Culler 2012)."""

from dataclasses import dataclass

import numpy as np

from core.aggregate import Counts
from core.noise import Noise
from core.smooth.median import choose_by_rank
from core.smooth.order_statistics import Rank
from core.subsample.outputs import Aggregation, Outputs, Stable, StableRadius

QUARTILES = (Rank(1, 4), Rank(3, 4))


@dataclass(frozen=True, kw_only=True)
class Average(Aggregation):
    """Release the mean of the answers, clamped per axis to a range, by discrete Laplace noise on their sum.

    One answer moves the clamped sum of an axis by at most the width of the range: scale = width / epsilon per
    axis. The range is the axis, or with `quartile_scale` the private quartiles of the answers
    (`choose_by_rank`, 2 / quartile_scale each), so that noise follows the answers' spread; then the mean is
    one of answers moved to the quartiles.

    Args:
        sum_scale: noise scale of a sum per step of the range's width.
        quartile_scale: Gumbel scale of each quartile, or None.
        radius: how the radius is released.
    """

    sum_scale: float
    quartile_scale: float | None
    radius: StableRadius

    def release(self, aggregate: Outputs, state: None, noise: Noise) -> Stable:
        """Release the mean and the radius about it."""
        points = self.table(aggregate)
        value = np.zeros(self.grid.dimension, dtype=np.int64)
        for axis, extent in enumerate(self.grid.extents):
            low, high = 0, extent
            if self.quartile_scale is not None:
                counts = Counts.of(points[:, axis])
                ends = [choose_by_rank(counts, extent, r, self.quartile_scale, noise) for r in QUARTILES]
                low, high = min(ends), max(ends)
            clamped = np.clip(points[:, axis], low, high) - low
            total = clamped.sum(keepdims=True)
            if high > low:
                total = noise.laplace(total, self.sum_scale * (high - low))
            value[axis] = min(max(round(int(total[0]) / self.blocks), 0), high - low) + low
        return Stable(value, self.radius.release(points, value, noise))
