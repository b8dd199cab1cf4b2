"""Shifted boxes: dyadic boxes at several offsets, in a space of at most six dimensions."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points

Ints = NDArray[np.int64]

MAX_DIMENSION = 6  # with more dimensions, the boxes cover a random projection of the grid
PROJECTED = 4  # dimensions of that projection
_UNIT = 1 << 10  # projected units per grid step
_INDEX_BITS = 51
_OFFSET_BITS = 6
_LATTICE = {1: (4, 16), 2: (2, 6), 3: (2, 4)}  # coarse and fine offsets per axis, by dimension
_COARSE, _FINE = 16, 64  # offsets in more dimensions
_PUBLIC_SEED = 0x5110A1  # projection and offsets are public: privacy does not rest on them


@dataclass(frozen=True)
class Boxes:
    """All boxes of side 2^level at many offsets, over a grid or its projection.

    A key names one box. It packs level, offset and index of the box into 63 bits without collisions. Every
    record is in exactly one box of every (level, offset).

    Args:
        grid: the universe.
    """

    grid: Grid

    @property
    def dimension(self) -> int:
        """Number of axes k of the boxes' space: the grid or its projection."""
        return PROJECTED if self.projected else self.grid.dimension

    @property
    def projected(self) -> bool:
        """Whether the boxes cover a projection of the grid."""
        return self.grid.dimension > MAX_DIMENSION

    @property
    def unit(self) -> int:
        """Units of the boxes' space per grid step."""
        return _UNIT if self.projected else 1

    @cached_property
    def _matrix(self) -> NDArray[np.float64]:
        """Public random projection, shape (d, k): nearly orthonormal columns times the unit, integers."""
        gauss = np.random.default_rng(_PUBLIC_SEED).normal(size=(self.grid.dimension, self.dimension))
        return np.asarray(np.rint(np.linalg.qr(gauss)[0] * _UNIT))

    @cached_property
    def _reach(self) -> int:
        """Bound on the absolute value of a projected coordinate."""
        longest = float(np.sqrt((self._matrix**2).sum(axis=0)).max())
        return math.ceil(self.grid.bounding_radius * longest) + 1

    @cached_property
    def extent(self) -> int:
        """Largest coordinate in the boxes' space; the smallest is 0."""
        return 2 * self._reach if self.projected else max(self.grid.extents)

    @property
    def top(self) -> int:
        """Level at which one box holds everything."""
        return self.extent.bit_length()

    @property
    def bottom(self) -> int:
        """Finest level whose box indices fit into a key."""
        level = self.top
        while level > 0 and self.dimension * self._bits(level - 1) <= _INDEX_BITS:
            level -= 1
        return level

    @property
    def index_bits(self) -> int:
        """Bits that number the boxes of one offset of the finest level."""
        return self.dimension * self._bits(self.bottom)

    @property
    def levels(self) -> range:
        """Every level, from the finest."""
        return range(self.bottom, self.top + 1)

    def _bits(self, level: int) -> int:
        return ((self.extent + (1 << level)) >> level).bit_length()

    def coordinates(self, points: Points) -> Ints:
        """Map grid points (n, d) to the boxes' space (n, k), exactly."""
        if not self.projected:
            return points
        centered = (points - np.asarray(self.grid.bounding_center)).astype(np.float64)
        # Integers below 2^53: the sums are exact in any order, so the result is the same on any worker.
        return np.asarray((centered @ self._matrix).astype(np.int64) + self._reach)

    def offsets(self, *, fine: bool) -> NDArray[np.float64]:
        """Offsets of the boxes as fractions of their side, shape (s, k); the fine ones include the coarse.

        In up to three dimensions the offsets are a lattice of m^k points. In more dimensions they are k + 1
        points on the diagonal, and then public random points.
        """
        k = self.dimension
        if k in _LATTICE:
            per_axis = _LATTICE[k][fine]
            axes = np.meshgrid(*[np.arange(per_axis) / per_axis] * k, indexing="ij")
            return np.stack([axis.ravel() for axis in axes], axis=1)
        count = _FINE if fine else _COARSE
        diagonal = np.repeat(np.arange(k + 1)[:, None] / (k + 1), k, axis=1)
        random = np.random.default_rng(_PUBLIC_SEED).uniform(size=(count - k - 1, k))
        return np.concatenate([diagonal, random])

    @property
    def fits(self) -> float:
        """Largest f such that any set of diameter f * side fits into some box of the coarse offsets.

        With a lattice f = 1 - 1/m. With the diagonal f = 1 / (k + 1): on each of the k axes, at most one of
        the k + 1 offsets has a box face that cuts the set, so one offset is left that cuts it on no axis
        (Chan 1998).
        """
        k = self.dimension
        return 1 - 1 / _LATTICE[k][0] if k in _LATTICE else 1 / (k + 1)

    def keys(self, coordinates: Ints, level: int, offsets: NDArray[np.float64]) -> Ints:
        """Keys of the boxes that hold each record.

        Args:
            coordinates: shape (n, k), from `coordinates`.
            level: side of the boxes is 2^level.
            offsets: shape (s, k), from `offsets`.

        Returns:
            Shape (s, n), int64, distinct between different offsets.
        """
        bits = self._bits(level)
        keys = np.empty((len(offsets), len(coordinates)), dtype=np.int64)
        for number, moved in enumerate(self._moved(level, offsets)):
            keys[number] = ((level << _OFFSET_BITS) | number) << _INDEX_BITS
            for axis in range(self.dimension):
                keys[number] |= ((coordinates[:, axis] + moved[axis]) >> level) << (axis * bits)
        return keys

    @staticmethod
    def _moved(level: int, offsets: NDArray[np.float64]) -> Ints:
        return np.floor(offsets * (1 << level)).astype(np.int64)

    def of_level(self, keys: Ints, level: int) -> NDArray[np.bool_]:
        """Say which keys are of boxes of `level`, shape (m,)."""
        return np.asarray((keys >> (_OFFSET_BITS + _INDEX_BITS)) == level)

    def corner(self, key: int, level: int, offsets: NDArray[np.float64]) -> Ints:
        """Lowest coordinates (k,) of the box that `key` names."""
        bits = self._bits(level)
        index = np.array([(key >> (axis * bits)) & ((1 << bits) - 1) for axis in range(self.dimension)])
        number = (key >> _INDEX_BITS) & ((1 << _OFFSET_BITS) - 1)
        return np.asarray((index << level) - self._moved(level, offsets)[number])

    def ball(self, level: int, corner: Ints) -> tuple[Ints, int]:
        """Return center (d,) and radius, in grid steps, of a ball that contains every grid point of a box.

        The radius is at least 1, because it is the unit of an average's noise. In a projection, the ball is
        the one that bounds the universe.

        Args:
            level: of the box.
            corner: its lowest coordinates (k,).
        """
        if self.projected:
            return np.asarray(self.grid.bounding_center), self.grid.bounding_radius
        half = (1 << level) // 2
        # Moving the center into the domain brings it no farther from any grid point.
        center = np.clip(corner + half, 0, np.asarray(self.grid.extents))
        return center, max(1, math.ceil(half * math.sqrt(self.grid.dimension)))
