"""Boxes that cut a plane or a space, and the cells that cut the boxes: public, and made of whole points."""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from core.domain import Points

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CELLS = 1 << 20
"""Most codes of a layout, and most cells."""


def part_of(points: Ints, sizes: Any, parts: Any) -> Ints:
    """Return in which of `parts` parts of 0, ..., size - 1 points lie.

    Part i begins at floor(i size / parts). There are at most 2^31 points and 2^20 parts.
    """
    return np.asarray(((points + 1) * parts - 1) // sizes)


class Layout(Protocol):
    """Numbers for the finest boxes, such that a box that is used is a range of numbers."""

    @property
    def number(self) -> int:
        """How many numbers there are."""

    def codes(self, points: Points) -> Ints:
        """Return the number of the finest box of each point (n, d), shape (n,)."""

    def corners(self, edges: Ints) -> tuple[Ints, Ints]:
        """Return the lowest point of each box and the one beyond its highest, each (m, d).

        Args:
            edges: first number of each box, ascending, and `number`, shape (m + 1,).
        """


@dataclass(frozen=True)
class Equal:
    """Equal boxes, numbered in row-major order.

    Args:
        sizes: points of each axis.
        shape: boxes of each axis.
    """

    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...], most: int) -> Self:
        """Return `most` boxes on each axis, or as many as an axis has points."""
        return cls(sizes, tuple(min(most, size) for size in sizes))

    @property
    def number(self) -> int:
        """See `Layout.number`."""
        return int(np.prod(self.shape))

    def codes(self, points: Points) -> Ints:
        """See `Layout.codes`."""
        parts = part_of(points, np.array(self.sizes), np.array(self.shape))
        return np.asarray(np.ravel_multi_index(tuple(parts.T), self.shape), dtype=np.int64)

    def corners(self, edges: Ints) -> tuple[Ints, Ints]:
        """See `Layout.corners`; every box is a finest one."""
        place = np.stack(np.unravel_index(edges[:-1], self.shape), axis=1)
        sizes, shape = np.array(self.sizes), np.array(self.shape)
        return place * sizes // shape, (place + 1) * sizes // shape


@dataclass(frozen=True)
class Halved:
    """Boxes made by halving one axis after the other, as a k-d tree does whose splits are public.

    The first bit of a number says in which half of the first halved axis a point lies, and so on. So each
    node of the tree is a range of numbers, and the halves of this range are its children.

    Args:
        sizes: points of each axis.
        axes: which axis is halved, from the root on.
    """

    sizes: tuple[int, ...]
    axes: tuple[int, ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...]) -> Self:
        """Halve the axes in turn, while each half has a point and there are not too many boxes."""
        axes: list[int] = []
        while 1 << len(axes) < MOST_CELLS:
            open_ = [axis for axis, size in enumerate(sizes) if 2 << axes.count(axis) <= size]
            if not open_:
                break
            axes.append(min(open_, key=axes.count))
        return cls(sizes, tuple(axes))

    @property
    def number(self) -> int:
        """See `Layout.number`."""
        return 1 << len(self.axes)

    @property
    def _bits(self) -> list[tuple[int, int, int]]:
        """For each bit of a number, from the last one on: its place, its axis, and its place there."""
        last, seen = len(self.axes) - 1, [0] * len(self.sizes)
        found = []
        for place in range(len(self.axes)):
            axis = self.axes[last - place]
            found.append((place, axis, seen[axis]))
            seen[axis] += 1
        return found

    @property
    def _parts(self) -> Ints:
        return np.array([1 << self.axes.count(axis) for axis in range(len(self.sizes))])

    def codes(self, points: Points) -> Ints:
        """See `Layout.codes`."""
        parts = part_of(points, np.array(self.sizes), self._parts)
        codes = np.zeros(len(points), dtype=np.int64)
        for axis, number in enumerate(self._parts):  # by a table: an axis has few parts, and many points
            codes |= self._spread(np.arange(number, dtype=np.int64), axis)[parts[:, axis]]
        return codes

    def _spread(self, parts: Ints, halved: int) -> Ints:
        """Return the bits that parts of an axis have in a number, shape (k,)."""
        codes = np.zeros(len(parts), dtype=np.int64)
        for place, axis, bit in self._bits:
            if axis == halved:
                codes |= (parts >> bit & 1) << place
        return codes

    def corners(self, edges: Ints) -> tuple[Ints, Ints]:
        """See `Layout.corners`."""
        lows, highs = self._place(edges[:-1]), self._place(edges[1:] - 1) + 1
        return lows * np.array(self.sizes) // self._parts, highs * np.array(self.sizes) // self._parts

    def _place(self, codes: Ints) -> Ints:
        place = np.zeros((len(codes), len(self.sizes)), dtype=np.int64)
        for bit, axis, there in self._bits:
            place[:, axis] |= (codes >> bit & 1) << there
        return place


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes that cover every point once.

    Args:
        layout: numbers of the finest boxes.
        edges: first number of each box, and the number after the last, shape (m + 1,).
        lows: lowest point of each, shape (m, d).
        highs: the point beyond the highest, shape (m, d).
    """

    layout: Layout
    edges: Ints
    lows: Ints
    highs: Ints

    @classmethod
    def of(cls, layout: Layout, edges: Ints) -> Self:
        """Return the boxes between the edges."""
        return cls(layout, edges, *layout.corners(edges))

    def __len__(self) -> int:
        return len(self.lows)

    def find(self, points: Points) -> Ints:
        """Return the box of each point (n, d), shape (n,)."""
        return np.searchsorted(self.edges, self.layout.codes(points), side="right") - 1


@dataclass(frozen=True, eq=False)
class Cells:
    """Boxes, each cut into equal cells of its own number.

    Args:
        boxes: the boxes.
        parts: in how many parts each box is cut on each axis, shape (m, d).
    """

    boxes: Boxes
    parts: Ints

    @property
    def numbers(self) -> Ints:
        """Number of cells of each box, shape (m,)."""
        return np.asarray(self.parts.prod(axis=1))

    @property
    def starts(self) -> Ints:
        """Number of the first cell of each box, and that of all cells, shape (m + 1,)."""
        return np.append(0, np.cumsum(self.numbers))

    def find(self, points: Points) -> Ints:
        """Return the cell of each point (n, d), shape (n,)."""
        box = self.boxes.find(points)
        low, parts = self.boxes.lows[box], self.parts[box]
        place = part_of(points - low, self.boxes.highs[box] - low, parts)
        cell = np.zeros(len(points), dtype=np.int64)
        for axis in range(points.shape[1]):
            cell = cell * parts[:, axis] + place[:, axis]
        return np.asarray(self.starts[box] + cell)

    def corners(self) -> tuple[Ints, Ints, Ints]:
        """Return each cell's box (c,), lowest point (c, d), and the point beyond its highest (c, d)."""
        box = np.repeat(np.arange(len(self.boxes), dtype=np.int64), self.numbers)
        left, parts = np.arange(len(box), dtype=np.int64) - self.starts[box], self.parts[box]
        place = np.zeros(parts.shape, dtype=np.int64)
        for axis in reversed(range(parts.shape[1])):
            place[:, axis] = left % parts[:, axis]
            left = left // parts[:, axis]
        low, width = self.boxes.lows[box], (self.boxes.highs - self.boxes.lows)[box]
        lows, highs = (low + (place + i) * width // parts for i in (0, 1))
        return box, np.asarray(lows), np.asarray(highs)
