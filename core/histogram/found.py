"""What a histogram releases, the counts of cells, and what it promises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid
from core.histogram.cells import Cells
from core.marks import Mark

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Promises:
    """What every method of the histogram promises, in records.

    Args:
        cell_error: every released count is off by at most this; None where overlapping known counts are kept.
        released_from: every cell with at least this many records is released; None if all cells are released.
        standard_error: standard error of a count before the table is adjusted to the known counts.
    """

    cell_error: int | None
    released_from: int | None
    standard_error: float


@dataclass(frozen=True)
class Result:
    """The answer: cells per axis, how many cells were released, and the sum of the released counts."""

    cells: tuple[int, ...]
    released: int
    total: int


@dataclass(frozen=True, eq=False)
class Table:
    """The released counts.

    Args:
        cells: the cells.
        keys: keys of the released cells, ascending, shape (m,).
        counts: shape (m,).
    """

    cells: Cells
    keys: Ints
    counts: Ints

    @classmethod
    def joined(cls, parts: Sequence["Table"]) -> "Table":
        """Join tables that have no cell in common, at least one."""
        if len(parts) == 1:
            return parts[0]
        keys = np.concatenate([part.keys for part in parts])
        order = np.argsort(keys, kind="stable")
        counts = np.concatenate([part.counts for part in parts])
        return cls(parts[0].cells, keys[order], counts[order])

    def result(self, grid: Grid) -> Result | None:
        """Return the summary of the released cells; None where no cell was released."""
        if not len(self.keys):
            return None
        return Result(self.cells.shape, len(self.keys), int(self.counts.sum()))

    def table(self, grid: Grid) -> dict[str, NDArray[Any]] | None:
        """Return one row per released cell; see `columns`."""
        return self.columns(grid) if len(self.keys) else None

    def columns(self, grid: Grid) -> dict[str, NDArray[Any]]:
        """Return the columns `cell_i`, `lower_i`, `upper_i` for each axis i, and `count`."""
        return self.cells.table(self.keys, self.counts)

    def column_marks(self, grid: Grid) -> Mapping[str, tuple[Mark, int]]:
        """See `core.plan.Tabular.column_marks`. Ends of cells of numbers may lie between points."""
        points = grid.wide or grid.times is not None
        axes = enumerate(zip(grid.extents, self.cells.shape, strict=True))
        of = [(axis, points or cells == extent + 1 or extent % cells == 0) for axis, (extent, cells) in axes]
        return {
            f"{end}_{axis}": (Mark.POSITION if whole else Mark.BETWEEN, axis)
            for axis, whole in of
            for end in ("lower", "upper")
        }
