"""What counts of rectangles release and promise: noisy cells, from which any rectangle is answered."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.decimals import first_from, last_up_to
from core.domain import Grid
from core.marks import Mark, Point
from core.mechanisms.tails import largest_one, variance
from core.ranges.boxes import Cells

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Promises:
    """What every method promises, in records.

    Args:
        cell_error: the count of every cell is off by at most this.
        standard_error: standard error of the count of a cell, before inference, which lowers it.
    """

    cell_error: int
    standard_error: float


@dataclass(frozen=True)
class Rectangle:
    """The count of a rectangle, its sides included.

    Args:
        lower: lowest value on each axis as asked for, data units.
        upper: highest value on each axis, data units.
        count: estimated number of records in it. A cell that is partly in it counts by the part of its grid
            points that are.
        standard_error: of the noise in `count`. It does not say how evenly records lie in cells.
        low: at least so many records are in the rectangle,
        high: and at most so many. All these bounds hold at once with probability 1 - failure, however
            the records lie in cells.
    """

    lower: Point
    upper: Point
    count: float
    standard_error: float
    low: int
    high: int


@dataclass(frozen=True)
class Result:
    """The answer: the estimated number of records, how many boxes and cells there are, and the rectangles."""

    total: int
    boxes: int
    cells: int
    ranges: tuple[Rectangle, ...]


@dataclass(frozen=True)
class Asked:
    """The rectangles of a job, and with which probability their bounds may fail. All of it is public.

    Args:
        ranges: see `core.ranges.params.Ranges`.
        failure: of all bounds together.
    """

    ranges: tuple[tuple[tuple[float, float], ...], ...]
    failure: float


@dataclass(frozen=True, eq=False)
class CountedCells:
    """The released counts of cells, and of the boxes that they are in.

    Both have independent noise, drawn after boxes and cells were fixed. Let a box have K cells of noise
    variance v. Least squares adjusts each cell by (u - sum) / K, where `sum` is that of the cells, and u is
    its average with the box's own count, weighted by their variances. So a sum of s of these cells has the
    variance v s (1 - s / K) + (s / K)^2 var(u).

    Args:
        cells: the cells.
        boxes: noisy count of each box, shape (m,).
        counts: noisy count of each cell, shape (c,).
        box_scale: of the Laplace noise of a box.
        cell_scale: of the Laplace noise of a cell.
        asked: which rectangles are answered.
    """

    cells: Cells
    boxes: Ints
    counts: Ints
    box_scale: float
    cell_scale: float
    asked: Asked

    @cached_property
    def _weights(self) -> Floats:
        """Weight of each box's own count in its average, by the variances of both; shape (m,)."""
        of_sum = self.cells.numbers * variance(self.cell_scale)
        return np.asarray(of_sum / (of_sum + variance(self.box_scale)))

    @cached_property
    def _box_variances(self) -> Floats:
        return self._weights * variance(self.box_scale)

    @cached_property
    def estimates(self) -> Floats:
        """Estimated number of records of each cell, shape (c,)."""
        numbers, starts = self.cells.numbers, self.cells.starts
        sums = np.add.reduceat(self.counts, starts[:-1])
        moved = self._weights * (self.boxes - sums) / numbers
        return np.asarray(self.counts + np.repeat(moved, numbers))

    @cached_property
    def _corners(self) -> tuple[Ints, Ints, Ints]:
        return self.cells.corners()

    def shares(self, first: Ints, last: Ints) -> Floats:
        """Return which part of each cell's points lies from `first` to `last`, points (d,); shape (c,)."""
        _, lows, highs = self._corners
        inside = np.minimum(highs, last + 1) - np.maximum(lows, first)
        return np.asarray((np.maximum(inside, 0) / (highs - lows)).prod(axis=1))

    def noise_variance(self, shares: Floats) -> float:
        """Return the variance of the sum of so large a part of each cell's estimate, shape (c,)."""
        starts, numbers = self.cells.starts[:-1], self.cells.numbers
        squares, mean = np.add.reduceat(shares**2, starts), np.add.reduceat(shares, starts) / numbers
        inside = np.maximum(squares - mean**2 * numbers, 0)
        return float((variance(self.cell_scale) * inside + mean**2 * self._box_variances).sum())

    def result(self, grid: Grid) -> Result:
        """Return the rectangles that were asked for, and what there is."""
        ranges = tuple(self._answer(grid, sides) for sides in self.asked.ranges)
        return Result(round(float(self.estimates.sum())), len(self.boxes), len(self.counts), ranges)

    def _answer(self, grid: Grid, sides: tuple[tuple[float, float], ...]) -> Rectangle:
        """Answer a rectangle; see `Rectangle`.

        The cells that lie in it whole hold no more records than it, and those that it touches no fewer. Each
        of the two sums is off by more than a bound of `largest_one` with a part of the failure probability.
        """
        lower, upper = zip(*sides, strict=True)
        axes = list(zip(grid.lower, repeat(grid.step), grid.extents, strict=False))
        first = np.array([first_from(end, *axis) for end, axis in zip(lower, axes, strict=True)])
        last = np.array([last_up_to(end, *axis) for end, axis in zip(upper, axes, strict=True)])
        shares = self.shares(first, last)
        least, least_error = self._sum(shares == 1)
        most, most_error = self._sum(shares > 0)
        return Rectangle(
            lower=tuple(map(float, lower)),
            upper=tuple(map(float, upper)),
            count=float(shares @ self.estimates),
            standard_error=math.sqrt(self.noise_variance(shares)),
            low=max(0, math.ceil(least - least_error)),
            high=max(0, math.floor(most + most_error)),
        )

    def _sum(self, chosen: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the estimate of some cells together, and a bound of its error."""
        failure = self.asked.failure / (2 * len(self.asked.ranges))
        noise = self.noise_variance(chosen.astype(np.float64))
        bound = largest_one(noise, max(self.box_scale, self.cell_scale), failure)
        return float(self.estimates[chosen].sum()), bound

    def table(self, grid: Grid) -> dict[str, NDArray[Any]]:
        """Return one row for each cell, those of a box one after the other.

        `first_i` and `last_i` are the cell's lowest and highest grid point on axis i, data units. `count` is
        the estimate, `standard_error` its noise, `box` the number of the box, and `box_standard_error` that
        of the sum of the box's cells. Noise is independent between boxes.
        """
        box, lows, highs = self._corners
        whole, numbers = self._box_variances, self.cells.numbers
        alone = variance(self.cell_scale) * (1 - 1 / numbers) + whole / numbers**2
        first, last = grid.restore(lows), grid.restore(highs - 1)
        columns: dict[str, NDArray[Any]] = {"box": box}
        for axis in range(grid.dimension):
            columns |= {f"first_{axis}": first[:, axis], f"last_{axis}": last[:, axis]}
        return columns | {
            "count": self.estimates,
            "standard_error": np.sqrt(alone)[box],
            "box_standard_error": np.sqrt(whole)[box],
        }

    def column_marks(self, grid: Grid) -> Mapping[str, tuple[Mark, int]]:
        """See `core.plan.Tabular.column_marks`."""
        return {
            f"{end}_{axis}": (Mark.POSITION, axis)
            for axis in range(grid.dimension)
            for end in ("first", "last")
        }
