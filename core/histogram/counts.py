"""Count the records in every cell of a grid: dense, or sparse over billions of cells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Grid, Points
from core.draws import Draw, Laplace
from core.histogram.constraints import Consistency
from core.mechanisms.stability import StabilityHistogram
from core.noise import Noise
from core.rounds import Block

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Equal cells over a grid: cell i of an axis reaches from i to i + 1 (excluded) cells-ths of its range.

    The last cell of an axis holds the upper end too; as many cells as grid points are one point each.
    A key is the cell's number in row-major order.

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

        Of a wide grid the bounds are grid points: a cell's first, and the next one's first.
        """
        columns: dict[str, NDArray[Any]] = {}
        places = np.unravel_index(keys, self.shape)
        for axis, (place, extent, cells) in enumerate(
            zip(places, self.grid.extents, self.shape, strict=True)
        ):
            single = cells == extent + 1
            if self.grid.wide:
                ends = (place, place) if single else (self._first(place + i, axis) for i in (0, 1))
                lower, upper = (self.grid.restore_axis(end, axis) for end in ends)
                columns |= {f"cell_{axis}": place, f"lower_{axis}": lower, f"upper_{axis}": upper}
                continue
            width = self.grid.step if single else extent * self.grid.step / cells
            columns[f"cell_{axis}"] = place
            columns[f"lower_{axis}"] = self.grid.lower[axis] + place * width
            columns[f"upper_{axis}"] = columns[f"lower_{axis}"] + (0 if single else width)
        return columns | {"count": counts}


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

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return how many cells were released, of which, and their sum; None where there are none."""
        if not len(self.keys):
            return None
        return {
            "cells": list(self.cells.shape),
            "released": len(self.keys),
            "total": int(self.counts.sum()),
        }

    def table(self, grid: Grid) -> dict[str, NDArray[Any]] | None:
        """Return one row per released cell: `cell_i`, `lower_i`, `upper_i` for each axis i, and `count`."""
        return self.cells.table(self.keys, self.counts) if len(self.keys) else None


@dataclass(frozen=True)
class DenseHistogram:
    """Release the count of every cell.

    One record is in one cell. The counts have L1 sensitivity 1 where a record is added or removed, and
    2 where it is replaced, or 0 under a policy whose secret pairs never lie in two cells; then the
    counts are released as they are. Under constraints see `core.histogram.constraints`.

    Args:
        cells: the cells.
        count: noise of every count.
        consistency: known counts that the table shall keep, or None; only where the number of records
            is public.
    """

    cells: Cells
    count: Laplace
    consistency: Consistency | None = None
    floor: int = 0
    name: str = "histogram"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.count,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the block's records by cell."""
        return Counts.of(self.cells.keys(block.points))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Table:
        """Release every cell's noisy count, as it is or made consistent."""
        exact = np.zeros(self.cells.number, dtype=np.int64)
        exact[aggregate.keys] = aggregate.counts
        counts = self.count.add(exact, noise)
        if self.consistency is not None:
            table = self.consistency.keep(counts.reshape(self.cells.shape), total=int(exact.sum()))
            counts = table.ravel()
        return Table(self.cells, np.arange(self.cells.number), counts)


@dataclass(frozen=True)
class SparseHistogram:
    """Release the cells whose noisy count reaches a threshold: empty cells are never looked at.

    One record is in one cell: see `StabilityHistogram`. Clipping at the floor is 1-Lipschitz in every count,
    so it changes nothing of that.

    Args:
        cells: the cells.
        count: noise of every count above the floor, and the threshold for it.
        floor: counts at or below it never appear.
    """

    cells: Cells
    count: StabilityHistogram
    floor: int = 0
    name: str = "histogram"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.count,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the block's records by cell."""
        return Counts.of(self.cells.keys(block.points))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Table:
        """Release the cells that reach the threshold with their noisy counts."""
        keys, counts = self.count.released(aggregate.keys, aggregate.counts, noise)
        return Table(self.cells, keys, counts + self.floor)


def shape_of(cells: int | Sequence[int], grid: Grid) -> tuple[int, ...]:
    """Return the cells of every axis.

    Raises:
        ValueError: not one number per axis, or more cells than an axis has grid points.
    """
    shape = (cells,) * grid.dimension if isinstance(cells, int) else tuple(cells)
    if len(shape) != grid.dimension:
        raise ValueError(
            f"params.cells has {len(shape)} values for {grid.dimension} columns: give one number, or one per "
            "column."
        )
    for number, extent in zip(shape, grid.extents, strict=True):
        if number > extent + 1:
            raise ValueError(
                f"params.cells is {number} on an axis of {extent + 1} grid points: it must be at most that; "
                "use fewer cells or a smaller domain.step."
            )
    if math.prod(shape) >= 2**62:
        raise ValueError(f"params.cells makes {math.prod(shape):.2g} cells: it must be below 2^62.")
    return shape
