"""Shifted boxes: dyadic boxes at several offsets, on a line or in a projection."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Grid, Points
from core.one_cluster.practical.packed import pack, unpack
from core.one_cluster.practical.tiles import fullest_of_all
from core.stored import Stored

Ints = NDArray[np.int64]

PROJECTED = 4  # dimensions of the projection that the boxes cover where the grid is no line
_UNIT = 1 << 10  # projected units per grid step
_INDEX_BITS = 51
_OFFSET_BITS = 6
_CELL_BITS = 60  # of a cell's key
_LINE = (4, 16)  # coarse and fine offsets on a line
_COARSE, _FINE = 16, 64  # and in the projection
_PUBLIC_SEED = 0x5110A1  # projection and offsets are public: privacy does not rest on them


@dataclass(frozen=True)
class Boxes:
    """All boxes of side 2^level at many offsets, over a grid or its projection.

    A key names one box. It packs level, offset and index of the box into 63 bits without collisions. Every
    record is in exactly one box of every (level, offset).

    Coordinates and sides are in cells: grid steps on a line. In a projection, cells are so wide that a key
    can name one, which is an eighth of the side of the finest boxes at most.

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
    def unit(self) -> float:
        """Cells per grid step."""
        return _UNIT / (1 << self._shift) if self.projected else 1

    @property
    def parts(self) -> int:
        """Parts of the boxes of a level: those of each coarse offset."""
        return len(self.offsets(fine=False))

    @property
    def pairs(self) -> float:
        """See `RegionsOfCells`: one box of an offset, beside coordinates that take as much as three."""
        return 4.0

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
    def _shift(self) -> int:
        """Bits of a projected coordinate that tell places within a cell apart."""
        return max(0, (2 * self._reach).bit_length() - _CELL_BITS // self.dimension)

    @cached_property
    def extent(self) -> int:
        """Largest coordinate in the boxes' space; the smallest is 0."""
        return 2 * self._reach >> self._shift if self.projected else max(self.grid.extents)

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
        return np.asarray((centered @ self._matrix).astype(np.int64) + self._reach >> self._shift)

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

    def reach(self, level: int) -> int:
        """Return the most cells from the center of a box to one of its cells, along any axis."""
        return (1 << level) // 2

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
        """Count the records of every cell."""
        return Counts.of(pack(self.coordinates(points), _CELL_BITS // self.dimension))

    def cells(self, keys: Ints) -> Ints:
        """Return the cells that keys of `tally` name, shape (n, k)."""
        return unpack(keys, _CELL_BITS // self.dimension, self.dimension)

    def fullest(self, aggregate: Counts | Stored, low: int, high: int) -> Ints:
        """Return the largest count of a box of the coarse offsets of each level, between `low` and `high`."""
        return fullest_of_all(self, Stored.of(aggregate), low, high)

    def crowded(self, aggregate: Counts, level: int, floor: int) -> Iterator[Counts]:
        """Yield by how much the count of each box of a level exceeds a floor, for those that exceed it.

        Together it is exactly what `keys` of the records, counted and clipped at the floor, would give. The
        boxes of each offset are a part.

        Args:
            aggregate: what `tally` counted.
            level: of the boxes.
            floor: clipping floor, at least 0.
        """
        cells = self.cells(aggregate.keys)
        for each in enumerate(self._moved(level, self.offsets(fine=True))):
            yield Counts.weighted(self._numbered(cells, level, *each), aggregate.counts).above(floor)

    def in_one(self, cells: Ints, near: Ints, level: int) -> NDArray[np.bool_]:
        """Say which cells (n, k) are in a certain box of the level, which holds a cell (k,)."""
        return np.asarray((cells >> level == near >> level).all(axis=1))

    def nests(self, level: int, wider: int) -> bool:
        """Say whether some coarse box of a wider level holds all that a box of the level holds.

        - On a line, coarse boxes of side S begin every S / 4 cells, or at every cell. So one of them holds
          any S / 2 cells in a row.
        - In a projection, a box of side s is cut along an axis where a border is at one of the s - 1 places
          between its cells. Let S = 8 s. The borders of the k + 1 diagonal offsets are at least floor(S / 5)
          apart, so one of these offsets at most cuts the box along an axis. There are k axes, so some offset
          cuts it along none.
        """
        return wider - level >= (3 if self.projected else 1)

    def indices(self, cells: Ints, level: int) -> tuple[list[int], list[int]]:
        """Return by axis the lowest index of a box that may hold one of the cells, and their number."""
        lowest, highest = cells.min(axis=0) >> level, (cells.max(axis=0) >> level) + 1
        return lowest.tolist(), (highest - lowest + 1).tolist()

    def members(
        self, cells: Ints, level: int, part: int, first: Sequence[int], steps: Sequence[int]
    ) -> tuple[NDArray[np.int32], Ints]:
        """Return pairs of a record and the box of a coarse offset that holds it; see `BallCover.members`."""
        moved = self._moved(level, self.offsets(fine=False))[part]
        numbers = (((cells + moved) >> level) - np.array(first)) @ np.array(steps)
        return np.arange(len(cells), dtype=np.int32), numbers

    def keys(self, coordinates: Ints, level: int, *, fine: bool) -> Ints:
        """Keys of the boxes that hold each record.

        Args:
            coordinates: shape (n, k), from `coordinates`.
            level: side of the boxes is 2^level.
            fine: whether at all offsets, or at the coarse ones only.

        Returns:
            Shape (s, n), int64, distinct between different offsets.
        """
        moved = self._moved(level, self.offsets(fine=fine))
        return np.stack([self._numbered(coordinates, level, *each) for each in enumerate(moved)])

    def _numbered(self, coordinates: Ints, level: int, number: int, moved: Ints) -> Ints:
        """Return the keys (n,) of the boxes of one offset that hold each record."""
        index = pack((coordinates + moved) >> level, self._bits(level))
        return index | ((level << _OFFSET_BITS) | number) << _INDEX_BITS

    @staticmethod
    def _moved(level: int, offsets: NDArray[np.float64]) -> Ints:
        return np.floor(offsets * (1 << level)).astype(np.int64)

    def of_level(self, keys: Ints, level: int) -> NDArray[np.bool_]:
        """Say which keys are of boxes of `level`, shape (m,)."""
        return np.asarray((keys >> (_OFFSET_BITS + _INDEX_BITS)) == level)

    def corner(self, key: int, level: int) -> Ints:
        """Lowest coordinates (k,) of the box of the fine offsets that `key` names."""
        return np.asarray(self._corners(np.array([key]), level)[0])

    def centers(self, keys: Ints, level: int) -> Ints:
        """Return the centers (n, k), in cells, of the boxes of the fine offsets that `keys` (n,) name."""
        return self._corners(keys, level) + self.reach(level)

    def _corners(self, keys: Ints, level: int) -> Ints:
        index = unpack(keys & ((1 << _INDEX_BITS) - 1), self._bits(level), self.dimension)
        number = (keys >> _INDEX_BITS) & ((1 << _OFFSET_BITS) - 1)
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
