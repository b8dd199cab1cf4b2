"""The median of the blocks' answers on each axis, by the exponential mechanism on ranks."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Points
from core.draws import Charged, Draw
from core.mechanisms.exponential import Exponential, missed_scores
from core.noise import Noise
from core.order_statistics import Rank, choose_by_rank
from core.sample_and_aggregate.aggregator import Aggregator, Expected
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.outputs import Aggregation
from core.sample_and_aggregate.stable_radius import StableRadius
from core.task import Accuracy

Ints = NDArray[np.int64]

MEDIAN = Rank(1, 2)

_FEWEST_CELLS = 11
_LARGEST_EXPONENT = 40.0  # e^40 is more cells than any axis has grid points


@dataclass(frozen=True)
class Cells:
    """An axis in cells of equal width, one of which has its middle in the middle of the axis.

    Bounds that are far too wide are often symmetric about a likely value, such as 0.

    Args:
        extent: largest point of the axis, grid steps.
        width: of a cell, grid steps.
    """

    extent: int
    width: int

    @classmethod
    def of(cls, extent: int, most: int) -> "Cells":
        """Return at most `most` cells, but at least 3, and no more than the axis has grid points."""
        if extent < most:
            return cls(extent, 1)
        return cls(extent, -(-(extent + 1) // (max(3, most) - 1)))

    @property
    def last(self) -> int:
        """Index of the last cell."""
        return (self.extent + self._offset) // self.width

    def cells_of(self, points: Ints) -> Ints:
        """Return the indices of the cells of grid points."""
        return (points + self._offset) // self.width

    def middle(self, cell: int) -> int:
        """Return the middle of a cell. It is within `width // 2` of every point of the cell."""
        return min(max(cell * self.width - self._offset + self.width // 2, 0), self.extent)

    @property
    def _offset(self) -> int:
        return (self.width // 2 - self.extent // 2) % self.width


@dataclass(frozen=True, kw_only=True)
class ChosenMedian(Aggregation):
    """Release a cell of each axis, chosen by how far its ranks are from that of the median.

    The cells are public, and the middle of the chosen one is released. Changing one answer moves one value on
    every axis, and each score by at most 1 (`choose_by_rank`). So every axis is charged for a choice of
    spread 2.

    Args:
        choice: of a cell of one axis, drawn for each.
        cells: of each axis.
    """

    purpose: ClassVar[str] = "the median of the blocks' answers on each axis, and how far from it they are"
    choice: Exponential
    cells: tuple[Cells, ...]

    def value_draws(self) -> tuple[Draw, ...]:
        """See `Aggregation.value_draws`."""
        return (self.choice,)

    def aggregate(self, points: Points, noise: Noise) -> Stable:
        """Release the medians and the radius about them."""
        value = np.zeros(self.grid.dimension, dtype=np.int64)
        for axis, cells in enumerate(self.cells):
            counts = Counts.of(cells.cells_of(points[:, axis]))
            value[axis] = cells.middle(choose_by_rank(counts, cells.last, MEDIAN, self.choice, noise))
        return Stable(value, *about_median(self.radius, points, value, noise))


def about_median(
    radius: StableRadius | None, points: Points, value: Ints, noise: Noise
) -> tuple[int | None, tuple[float, ...] | None]:
    """Release the radius about a value, and the interval of the median that follows from it.

    If the ball of this radius holds more than half of the answers, so does its range on each axis. So the
    median of the answers on this axis is within the radius of the value.

    Returns:
        The radius, or None; the error on each axis, or None; grid steps.
    """
    if radius is None:
        return None, None
    steps = radius.release(points, value, noise)
    return steps, (float(steps),) * len(value) if 2 * radius.holds > len(points) else None


class MedianOfAnswers(Aggregator):
    """The median of each axis by rank. It is among the stable answers where these are a clear majority."""

    name: ClassVar[str] = "median"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        Let D be half the width that holds the stable answers. A cell without a point of this interval has
        ranks that are at least `_margin` away from the median's. So with the promised probability the chosen
        cell has a point of the interval, and its middle is within D plus half a cell of the center.
        """
        round_ = self._round(share)
        most = self._promised_cells(round_.choice)
        if any(cells.last >= most for cells in round_.cells):
            return self.promised(share, None)
        parts = [(cells.width // 2) / cells.extent for cells in round_.cells]
        return self.promised(share, parts, 1.0, expected=self._expected(round_, max(parts)))

    def _expected(self, round_: ChosenMedian, part: float) -> Expected:
        """Return the errors by which methods are compared; `part` is half the width of a cell.

        Where the answers are divided, a cell between the two groups may be chosen. Its ranks are at least
        `spare` away from the median's.
        """
        scale, blocks = round_.choice.scale, self.setting.params.blocks
        ranks = scale * -math.log(self.usual_failure)
        spare = self.divided - blocks / 2
        cells = max(cells.last for cells in round_.cells)
        astray = math.exp(min(0.0, math.log(max(1, cells)) - spare / scale))
        return Expected(
            agreeing=part + ranks * self.between(self.stable),
            even=part + ranks / blocks,
            divided=part + ranks * self.between(self.divided) + astray,
        )

    @property
    def _margin(self) -> int:
        return self.stable - self.setting.params.blocks // 2

    def _promised_cells(self, choice: Exponential) -> int:
        """Return the largest number of cells of an axis for which the promise holds.

        It is the largest for which `missed_scores` times the scale is at most the margin.
        """
        failure = self.value_failure / self.setting.grid.dimension
        return 1 + math.floor(
            math.exp(min(self._margin / choice.scale - missed_scores(2, failure), _LARGEST_EXPONENT))
        )

    def _round(self, share: float) -> ChosenMedian:
        axes = self.setting.grid.dimension
        epsilon = self.value_share * self.per_answer(share).epsilon / axes
        choice = Exponential.of("median of an axis", epsilon, 2, times=axes, changes=self.changes)
        most = max(_FEWEST_CELLS, self._promised_cells(choice))
        return ChosenMedian(
            **self.common(share),
            choice=choice,
            cells=tuple(Cells.of(extent, most) for extent in self.setting.grid.extents),
        )
