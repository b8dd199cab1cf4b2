"""Shifted boxes: dyadic boxes at several offsets, on a line or in a projection."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Grid, Points

Ints = NDArray[np.int64]

PROJECTED = 4  # dimensions of the projection that the boxes cover where the grid is no line
_UNIT = 1 << 10  # projected units per grid step
_INDEX_BITS = 51
_OFFSET_BITS = 6
_LINE = (4, 16)  # coarse and fine offsets on a line
_COARSE, _FINE = 16, 64  # and in the projection
_PUBLIC_SEED = 0x5110A1  # projection and offsets are public: privacy does not rest on them


@dataclass(frozen=True)
class Boxes:
    """All boxes of side 2^level at many offsets, over a grid or its projection.

    A key names one box. It packs level, offset and index of the box into 63 bits without collisions. Every
    record is in exactly one box of every (level, offset).

    Args:
        grid: the universe. Boxes cover a line itself, and a random projection of any other grid.
    """

    grid: Grid

    @property
    def dimension(self) -> int:
        """Number of axes k of the boxes' space: the grid or its projection."""
        return PROJECTED if self.projected else 1

    @property
    def projected(self) -> bool:
        """Whether the boxes cover a projection of the grid."""
        return self.grid.dimension > 1

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

        On a line the offsets are even. In a projection they are k + 1 points on the diagonal, and then public
        random points.
        """
        k = self.dimension
        if not self.projected:
            return np.arange(_LINE[fine])[:, None] / _LINE[fine]
        count = _FINE if fine else _COARSE
        diagonal = np.repeat(np.arange(k + 1)[:, None] / (k + 1), k, axis=1)
        random = np.random.default_rng(_PUBLIC_SEED).uniform(size=(count - k - 1, k))
        return np.concatenate([diagonal, random])

    def radius(self, level: int) -> int:
        """Radius in grid steps of the ball that contains a box; see `ball`."""
        return self.grid.bounding_radius if self.projected else max(1, (1 << level) // 2)

    def side(self, level: int) -> int:
        """Side of the boxes of a level."""
        return 1 << level

    def holds(self, level: int) -> float:
        """Return a radius in grid steps. Any smaller ball lies in some box of the level's coarse offsets.

        On a line with m offsets, a set of diameter 1 - 1 / m sides fits into some box. In a projection the
        radius is 0.
        """
        return 0.0 if self.projected else (1 - 1 / _LINE[False]) * (1 << level) / 2

    @property
    def resolution(self) -> int:
        """Radius in grid steps from which on `factor` bounds the ratio of radii."""
        return 1 << self.bottom

    @property
    def factor(self) -> float:
        """Largest radius of a level divided by what the next finer level holds, above `resolution`."""
        return 2 / (1 - 1 / _LINE[False])

    @cached_property
    def most_keys(self) -> int:
        """Number of boxes of a level that hold one record."""
        return len(self.offsets(fine=True))

    @cached_property
    def all_keys(self) -> float:
        """Logarithm of the number of boxes of all levels."""
        return (self.index_bits + 1) * math.log(2.0) + math.log(self.most_keys)

    def tally(self, points: Points) -> Counts:
        """Count the records of every box of every level, at the coarse offsets."""
        coordinates = self.coordinates(points)
        return Counts.joined(
            [Counts.of(keys) for level in self.levels for keys in self.keys(coordinates, level, fine=False)]
        )

    def fullest(self, aggregate: Counts, low: int, high: int) -> Ints:
        """Return the largest count of a box of each level, moved between `low` and `high`."""
        counts, keys = aggregate.counts, aggregate.keys
        largest = [int(counts[self.of_level(keys, level)].max(initial=0)) for level in self.levels]
        return np.clip(np.array(largest, dtype=np.int64), low, high)

    def keys(self, coordinates: Ints, level: int, *, fine: bool) -> Ints:
        """Keys of the boxes that hold each record.

        Args:
            coordinates: shape (n, k), from `coordinates`.
            level: side of the boxes is 2^level.
            fine: whether at all offsets, or at the coarse ones only.

        Returns:
            Shape (s, n), int64, distinct between different offsets.
        """
        bits, offsets = self._bits(level), self.offsets(fine=fine)
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

    def corner(self, key: int, level: int) -> Ints:
        """Lowest coordinates (k,) of the box of the fine offsets that `key` names."""
        bits = self._bits(level)
        index = np.array([(key >> (axis * bits)) & ((1 << bits) - 1) for axis in range(self.dimension)])
        number = (key >> _INDEX_BITS) & ((1 << _OFFSET_BITS) - 1)
        return np.asarray((index << level) - self._moved(level, self.offsets(fine=True))[number])

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
        # Moving the center into the domain brings it no farther from any grid point.
        center = np.clip(corner + (1 << level) // 2, 0, np.asarray(self.grid.extents))
        return center, self.radius(level)
