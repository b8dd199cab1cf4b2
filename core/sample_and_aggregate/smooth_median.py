"""The median of the blocks' answers on each axis, with noise by its smooth sensitivity."""

from dataclasses import dataclass

import numpy as np

from core.aggregate import Counts
from core.draws import Draw
from core.mechanisms.admissible import Admissible
from core.neighbors import Neighbors
from core.noise import Noise
from core.order_statistics import Rank, order_statistic, smooth_sensitivity
from core.sample_and_aggregate.outputs import Aggregation, Outputs, Stable, StableRadius

MEDIAN = Rank(1, 2)


@dataclass(frozen=True, kw_only=True)
class SmoothMedian(Aggregation):
    """Release the median of each axis; another answer is one replaced value per axis, each axis is charged.

    Args:
        noise: of one axis, drawn for each.
        radius: how the radius is released.
    """

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
