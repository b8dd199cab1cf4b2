"""The median of the blocks' answers on each axis, by the exponential mechanism on ranks."""

import math
from collections.abc import Sequence
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
from core.tightness import Tightness

Ints = NDArray[np.int64]

MEDIAN = Rank(1, 2)

_FEWEST_CELLS = 11  # with fewer, their number is that of the least expected error
_TRIED = range(4, 50)  # numbers of cells among which it is sought
_ASTRAY = 0.5  # of the width of an axis: error where a cell without stable answers is chosen
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
    of_errors: ClassVar[Tightness] = Tightness(
        "The promised errors are half of a cell, or one step of the grid if that is more. They are reached "
        "where the stable answers lie at the edge of a cell. Where they lie in its middle, the error is 0.",
        reached=True,
    )

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
        expected = self._expected(round_.choice, round_.cells) if self._margin > 0 else None
        if any(cells.last >= most for cells in round_.cells):
            return self.promised(share, None, expected=expected)
        parts = [(cells.width // 2) / cells.extent for cells in round_.cells]
        return self.promised(share, parts, 1.0, expected=expected)

    def _expected(self, choice: Exponential, axes: Sequence[Cells]) -> Expected:
        """Return the errors by which methods are compared.

        A cell without stable answers has a rank that is between a half of the blocks and `agreeing` minus
        this half away from the median's. These ranks are taken as evenly spread over the cells where the
        others scatter, and as the nearest of them where the others agree.
        """
        scale, blocks = choice.scale, self.setting.params.blocks
        part = max((cells.width // 2) / cells.extent for cells in axes)
        ranks = scale * -math.log(self.usual_failure)
        last = max(cells.last for cells in axes)

        def astray(agreeing: int, scatter: bool) -> float:
            nearest, farthest = max(0.0, agreeing - blocks / 2) / scale, blocks / 2 / scale
            if scatter and farthest > nearest:
                weight = last * (math.exp(-nearest) - math.exp(-farthest)) / (farthest - nearest)
            else:
                weight = last * math.exp(-nearest)
            return _ASTRAY * weight / (1 + weight)

        return Expected(
            agreeing=part + ranks * self.between(self.stable) + astray(self.stable, scatter=True),
            even=part + ranks / blocks,
            divided=part + ranks * self.between(self.divided) + astray(self.divided, scatter=False),
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

    def _cells(self, choice: Exponential) -> tuple[Cells, ...]:
        """Return the cells of each axis: as many as keep the promise, or if few do, those to err least."""
        most, extents = self._promised_cells(choice), self.setting.grid.extents
        if most >= _FEWEST_CELLS:
            return tuple(Cells.of(extent, most) for extent in extents)
        tried = [tuple(Cells.of(extent, number) for extent in extents) for number in _TRIED]
        return min(tried, key=lambda cells: self._expected(choice, cells).mean)

    def _round(self, share: float) -> ChosenMedian:
        axes = self.setting.grid.dimension
        epsilon = self.value_share * self.per_answer(share).epsilon / axes
        choice = Exponential.of("median of an axis", epsilon, 2, times=axes, changes=self.changes)
        return ChosenMedian(**self.common(share), choice=choice, cells=self._cells(choice))
