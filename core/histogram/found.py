"""What a histogram answers and promises: the released counts of cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid
from core.histogram.cells import Cells

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Promises:
    """What every method of the histogram promises, in records.

    Args:
        cell_error: every released count is off by at most that; None where overlapping known counts are kept.
        released_from: every cell with at least so many records is released; None where all cells are.
        standard_error: of a released count, before known counts are kept.
    """

    cell_error: int | None
    released_from: int | None
    standard_error: float


@dataclass(frozen=True)
class Result:
    """The answer: cells of every axis, how many of all cells were released, and the sum of their counts."""

    cells: tuple[int, ...]
    released: int
    total: int


@dataclass(frozen=True, eq=False)
class Table:
    """The released counts.

    Args:
        cells: the cells.
        keys: which were released, ascending, shape (m,).
        counts: shape (m,).
    """

    cells: Cells
    keys: Ints
    counts: Ints

    def result(self, grid: Grid) -> Result | None:
        """Return how many cells were released, of which, and their sum; None where there are none."""
        if not len(self.keys):
            return None
        return Result(self.cells.shape, len(self.keys), int(self.counts.sum()))

    def table(self, grid: Grid) -> dict[str, NDArray[Any]] | None:
        """Return one row per released cell: `cell_i`, `lower_i`, `upper_i` for each axis i, and `count`."""
        return self.cells.table(self.keys, self.counts) if len(self.keys) else None
