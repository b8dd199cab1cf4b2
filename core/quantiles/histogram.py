"""Several quantiles read off noisy counts of every grid point."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.noise import Noise
from core.quantiles.cells import CellCounts, Groups, best_groups, ranks_of
from core.quantiles.found import FoundQuantiles, in_order, promised
from core.quantiles.params import Quantiles
from core.quantiles.recursive import MOST_POINTS
from core.rounds import Block
from core.task import Accuracy, Method


@dataclass(frozen=True)
class CountsOfPoints:
    """All quantiles from noisy counts of every grid point and of groups of neighboring points.

    Sensitivity: a record is at one point and in one group, so both kinds of counts are histograms; see
    `CellCounts`.

    Args:
        probabilities: ascending, in (0, 1).
        size: number of grid points.
        cells: noise of the counts.
        total_is_public: whether the number of records may be used: `replace_one`.
    """

    probabilities: tuple[float, ...]
    size: int
    cells: CellCounts
    total_is_public: bool
    purpose: ClassVar[str] = "where the quantiles lie"
    name: str = "quantiles"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.cells.draws()

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        counts = np.zeros(self.size, dtype=np.int64)
        counts[aggregate.keys] = aggregate.counts
        known = int(counts.sum()) if self.total_is_public else None
        starts, total = ranks_of(self.cells.release(counts, known, noise))
        steps = np.searchsorted(starts[1:-1], np.array(self.probabilities) * total)
        return in_order(self.probabilities, steps.tolist())


class Histogram(Method[Quantiles]):
    """Counts of every grid point, grouped so that ranks are best where quantiles may lie at any point."""

    name: ClassVar[str] = "histogram"

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self._size <= MOST_POINTS:
            return None
        return InvalidValue(
            "method",
            self.name,
            f"the domain has {self._size:,} grid points, and may have at most {MOST_POINTS:,}",
        )

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        public = self.setting.neighbors.name == "replace_one"
        return (CountsOfPoints(self.setting.params.probabilities, self._size, self._counts(share), public),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`; a point is chosen where the noisy centered rank changes its sign."""
        setting, size = self.setting, self._size
        log = math.log(2 * (size + 1) * len(setting.params.probabilities) / setting.params.failure)
        typical = (
            math.sqrt(self._groups.variance) * setting.neighbors.changes / (share * setting.budget.epsilon)
        )
        return promised(self._counts(share).scales.largest_error(size, log), typical)

    @property
    def _size(self) -> int:
        return self.setting.grid.extents[0] + 1

    def _counts(self, share: float) -> CellCounts:
        return self._groups.counts(
            "grid points", share * self.setting.budget.epsilon, self.setting.neighbors.changes
        )

    @cached_property
    def _groups(self) -> Groups:
        # 96 pairs of a quantile and a point, evenly spread: multiples of the golden section come near no
        # period.
        spread, given = np.arange(96), np.array(self.setting.params.probabilities)
        some = given[spread * len(given) // 96]
        return best_groups(some, (spread * 0.6180339887 % 1 * self._size).astype(int), self._size)
