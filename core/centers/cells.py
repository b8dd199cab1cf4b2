"""Nested cells in a space of few axes: every cell is halved along its longest side, again and again."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.centers.space import Space
from core.domain import Points

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AXIS_UNIT = 1 << 16  # an axis is a vector of about this length, in whole numbers
HALVINGS = 20  # so the finest cells number at most 2^20, and so do their counts
_STRIDE = 3  # halvings between the levels that are counted
MOST_LEVELS = -(-HALVINGS // _STRIDE)


@dataclass(frozen=True, eq=False)
class Frame:
    """A few axes through a center, and the box around the center that is cut into cells.

    Args:
        space: the universe.
        center: shape (d,), units about the middle.
        axes: shape (d, q), whole numbers: nearly orthogonal vectors of length AXIS_UNIT; or None for the
            grid's own axes in units (q = d).
        half: shape (q,), half the box's sides along the axes, in units. A record outside of the box counts in
            the nearest cell at the box's border.
        rest: estimate of the mean squared distance of the records from the span of the axes, squared units.
    """

    space: Space
    center: Ints
    axes: Ints | None
    half: Ints
    rest: float = 0.0

    @classmethod
    def of_grid(cls, space: Space) -> "Frame":
        """Take the grid's own axes and bounds."""
        extents = np.asarray(space.grid.extents, dtype=np.int64)
        low = np.maximum(-space.middle << space.bits, -space.reach)
        high = np.minimum((extents - space.middle) << space.bits, space.reach)
        return cls(space, (low + high) // 2, None, (high - low) // 2 + 1)

    @property
    def dimension(self) -> int:
        """Number of axes q."""
        return len(self.half)

    @property
    def _unit(self) -> int:
        return 1 if self.axes is None else AXIS_UNIT

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Axis that each halving cuts, from the coarsest. Sides of one grid step are not cut further."""
        side = 2.0 * self.half
        order: list[int] = []
        while len(order) < HALVINGS and side.max() > 1 << self.space.bits:
            axis = int(np.argmax(side))
            order.append(axis)
            side[axis] /= 2
        return tuple(order)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Levels whose cells are counted, as numbers of halvings, ascending; there is at least one."""
        last = len(self.order)
        return (*range(_STRIDE, last, _STRIDE), last)

    @cached_property
    def _halvings(self) -> Ints:
        """How often each axis is halved, shape (q,)."""
        return np.bincount(np.array(self.order, dtype=np.int64), minlength=self.dimension)

    @cached_property
    def _widths(self) -> Ints:
        """Sides of the finest cells in coordinates, shape (q,): rounded up, so the box is covered."""
        return np.asarray(-((-2 * self.half * self._unit) // (1 << self._halvings)), dtype=np.int64)

    @cached_property
    def _spread(self) -> list[Ints]:
        """For every axis, a table from a cell's index on the axis to the bits of the key that it sets."""
        tables = []
        for axis in range(self.dimension):
            places = [len(self.order) - 1 - i for i, a in enumerate(self.order) if a == axis][::-1]
            index = np.arange(1 << len(places), dtype=np.int64)
            table = np.zeros_like(index)
            for bit, place in enumerate(places):
                table |= ((index >> bit) & 1) << place
            tables.append(table)
        return tables

    def keys(self, points: Points) -> Ints:
        """Key of the finest cell that holds each record, shape (n,).

        The key of a cell, shifted right by one bit, is the key of its parent. All numbers are whole and below
        2^53, so the keys are the same on any worker.
        """
        parts = [np.zeros(0, dtype=np.int64)]
        for records in self.space.chunks(points, 2 * points.shape[1]):
            moved = records - self.center
            coordinates = moved if self.axes is None else moved @ self.axes
            key = np.zeros(len(records), dtype=np.int64)
            for axis, table in enumerate(self._spread):
                along = coordinates[:, axis].astype(np.int64) + self.half[axis] * self._unit
                key |= table[np.clip(along // self._widths[axis], 0, len(table) - 1)]
            parts.append(key)
        return np.concatenate(parts)

    def centers(self, keys: Ints, level: int) -> Floats:
        """Middles of the cells of `level` halvings, along the axes, in units from the center: (m, q)."""
        low = np.tile(-self.half.astype(np.float64), (len(keys), 1))
        side = self._widths / self._unit * (1 << self._halvings)
        for i, axis in enumerate(self.order[:level]):
            side[axis] /= 2
            low[:, axis] += ((keys >> (level - 1 - i)) & 1) * side[axis]
        return np.asarray(low + side / 2)

    def lifted(self, positions: Floats) -> Ints:
        """Turn positions along the axes (m, q) into points of the universe, shape (m, d), units."""
        moved = positions if self.axes is None else positions @ (self.axes.T / AXIS_UNIT)
        return self.space.inside(self.center + moved)
