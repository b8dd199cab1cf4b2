"""Equal cells over a grid, and the keys that number them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.errors import InvalidValue

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Equal cells over a grid, numbered in row-major order; a cell's number is its key.

    Let an axis have c cells. Cell i reaches from i / c of the axis' range, included, to (i + 1) / c,
    excluded. The last cell includes the upper end. If an axis has as many cells as grid points, each cell is
    one grid point.

    Args:
        grid: the universe.
        shape: cells per axis, each at most the axis' number of grid points.
    """

    grid: Grid
    shape: tuple[int, ...]

    @property
    def number(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def cuts(self) -> list[Ints]:
        """First grid coordinate of every cell but the first, per axis."""
        return [self._first(np.arange(1, cells), axis) for axis, cells in enumerate(self.shape)]

    def _first(self, cell: Ints, axis: int) -> Ints:
        """First grid coordinate of a cell; Python integers where products would wrap."""
        extent, cells = self.grid.extents[axis], self.shape[axis]
        numbers: Any = cell if extent * cells < 1 << 63 else cell.astype(object)
        return np.asarray(-(-numbers * extent // cells), dtype=np.int64)

    def keys(self, points: Points) -> Ints:
        """Return the key of the cell of every point (n, d), shape (n,)."""
        keys = np.zeros(len(points), dtype=np.int64)
        for axis, (extent, cells) in enumerate(zip(self.grid.extents, self.shape, strict=True)):
            keys *= cells
            if cells == extent + 1:
                keys += points[:, axis]
                continue
            steps: Any = points[:, axis] if extent * cells < 1 << 63 else points[:, axis].astype(object)
            keys += np.minimum(steps * cells // extent, cells - 1).astype(np.int64)
        return keys

    def table(self, keys: Ints, counts: Ints) -> dict[str, NDArray[Any]]:
        """Return columns: number and bounds of each cell per axis, in data units, and its count.

        On a wide grid, and on one of times, the bounds are grid points: the first of the cell, and the first
        of the next cell. So cells of seven days begin at dates, and not at some second of a day.
        """
        columns: dict[str, NDArray[Any]] = {}
        places = np.unravel_index(keys, self.shape) if len(self.shape) > 1 else (keys,)
        for axis, (place, extent, cells) in enumerate(
            zip(places, self.grid.extents, self.shape, strict=True)
        ):
            single = cells == extent + 1
            if self.grid.wide or self.grid.times is not None:
                lower = self.grid.restore_axis(place if single else self._first(place, axis), axis)
                upper = lower if single else self.grid.restore_axis(self._first(place + 1, axis), axis)
                columns |= {f"cell_{axis}": place, f"lower_{axis}": lower, f"upper_{axis}": upper}
                continue
            columns[f"cell_{axis}"] = place
            for end, cell in (("lower", place), ("upper", place if single else place + 1)):
                steps = cell if single else cell * extent / cells
                ends = self.grid.lower[axis] + steps * self.grid.step
                columns[f"{end}_{axis}"] = self.grid.with_decimals(ends, steps)
        return columns | {"count": counts}


def shape_of(cells: int | Sequence[int], grid: Grid) -> tuple[int, ...]:
    """Return the cells of every axis.

    Raises:
        InvalidValue: there is not one number per axis, or an axis has fewer grid points than cells.
    """
    shape = (cells,) * grid.dimension if isinstance(cells, int) else tuple(cells)
    if len(shape) != grid.dimension:
        raise InvalidValue(
            "cells",
            cells,
            "give one number, or one per column",
            f"has {len(shape)} values for {grid.dimension} columns",
        )
    for number, extent in zip(shape, grid.extents, strict=True):
        if number > extent + 1:
            raise InvalidValue(
                "cells",
                number,
                "it must be at most that; use fewer cells or a smaller step of the domain",
                f"is {number} on an axis of {extent + 1} grid points",
            )
    if math.prod(shape) >= 2**62:
        raise InvalidValue("cells", cells, "it must be below 2^62", f"makes {math.prod(shape):.2g} cells")
    return shape
