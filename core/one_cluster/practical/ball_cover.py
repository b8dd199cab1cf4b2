"""Overlapping balls at many radii, in two to six dimensions: any small ball lies in one of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Grid, Points, distances_squared
from core.one_cluster.practical.exceeding import exceeding
from core.one_cluster.practical.packed import pack, unpack
from core.one_cluster.practical.tiles import fullest_of_all
from core.stored import Stored

Ints = NDArray[np.int64]

DIMENSIONS = range(2, 7)
"""Dimensions in which a run counts balls. Elsewhere it counts boxes."""

_SLACK = {2: 0.5, 3: 0.54, 4: 0.56, 5: 0.57, 6: 0.75}
"""Covering radius of the centers as a part of the balls' radius, by dimension.

A smaller part lowers the promised factor, but a record is then in more balls of a level: in about 6, 9, 25,
42 and 24 in the mean where the pitch is large, and in at most 7, 27, 53, 93 and 137 of those seen.
"""

_RATIO = {2: 1.5, 3: 1.35, 4: 1.25, 5: 1.22, 6: 1.5}  # of neighboring radii, at most, but for the smallest
_ROUNDED = 16  # pitch from which on rounding to whole cells hardly changes the ratios of radii
_BITS = 63  # of a key
_PAST = 8  # indices past the domain that keys have room for
_WIDEST = 1 << 28  # cells along an axis, so that squared distances fit into int64; see `_pitches`
_AT_ONCE = 1 << 14  # cells whose balls are numbered at once
_EXACT = 1 << 50  # below this, floats of five times the squared radius are exact
_BELOW = 1 - 2.0**-47  # floats of radii are off by less than this


@dataclass(frozen=True)
class BallCover:
    """All balls of a ladder of radii about the centers of a lattice.

    The lattice of a level consists of the points whose coordinates are all even multiples of its pitch, and
    of those whose coordinates are all odd multiples of it (the dual of the checkerboard lattice). Every point
    of space is within `covering` pitches of a center (Conway and Sloane 1999, Chapter 4). So any ball that is
    smaller by `covering` pitches than the balls of the level lies in one of them. Centers may lie outside of
    the domain.

    Coordinates are in cells: grid steps, or blocks of steps where the domain is too wide. A ball holds a
    record if the middle of the record's cell is nearer to its center than its radius. All ways of counting
    decide this exactly: a record that only one of them finds in a ball would break the sensitivity of counts.
    A key names one ball of a level, or one cell. It packs indices into 63 bits without collisions.

    Args:
        grid: the universe.
    """

    grid: Grid

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return self.grid.dimension

    @property
    def projected(self) -> bool:
        """Whether the balls cover a projection of the grid: never."""
        return False

    @property
    def unit(self) -> int:
        """Units per grid step."""
        return 1

    @property
    def parts(self) -> int:
        """Parts of the balls of a level: those about the even multiples, and those about the odd ones."""
        return 2

    @property
    def covering(self) -> float:
        """Covering radius of the lattice, in pitches."""
        return _covering(self.dimension)

    @cached_property
    def cell(self) -> int:
        """Side of a cell in grid steps: the smallest whose keys and squared distances fit."""
        d = self.dimension
        widest = min((1 << _BITS // d) - 1, 2 * ((1 << (_BITS - 1) // d) - _PAST), _WIDEST)
        return max(self.grid.extents) // (widest + 1) + 1

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        """Largest cell of each axis."""
        return tuple(extent // self.cell for extent in self.grid.extents)

    @cached_property
    def _pitches(self) -> tuple[int, ...]:
        ladder = _ladder(self.dimension, math.ceil(self.grid.bounding_radius / self.cell) + self.dimension)
        # No sum of squares in `members` exceeds five times the squared radius.
        if 5 * _radius(ladder[-1], self.dimension) ** 2 >= 1 << 63:
            raise OverflowError(f"squared distances of {self.grid} exceed int64")
        return ladder

    @property
    def levels(self) -> range:
        """Every level, from the finest. One ball of the last level holds everything."""
        return range(len(self._pitches))

    @property
    def bottom(self) -> int:
        """The finest level."""
        return 0

    def reach(self, level: int) -> int:
        """Return the radius of the balls of a level, in cells."""
        return _radius(self._pitches[level], self.dimension)

    def radius(self, level: int) -> int:
        """Radius in grid steps of a ball that holds all records of a ball of the level."""
        return math.ceil(self.cell * self.reach(level) + self.cell // 2 * math.sqrt(self.dimension) - 1e-9)

    def side(self, level: int) -> int:
        """Side in grid steps of a cube that contains a ball of the level."""
        return 2 * self.radius(level)

    def holds_cells(self, level: int) -> float:
        """Return a radius in cells. The cells whose middles are in any smaller ball are in some ball."""
        return (self.reach(level) - self.covering * self._pitches[level]) * _BELOW

    def holds(self, level: int) -> float:
        """Return a radius in grid steps. Any smaller ball lies in some ball of the level."""
        rounding = (self.cell - 1) / 2 * math.sqrt(self.dimension)
        return max(0.0, self.cell * self.holds_cells(level) - rounding)

    @property
    def _rounded(self) -> int:
        """The first level whose pitch is not small, or the last level."""
        return next((i for i in self.levels if self._pitches[i] >= _ROUNDED), self.levels[-1])

    @property
    def resolution(self) -> int:
        """Radius in grid steps from which on `factor` bounds the ratio of radii."""
        return self.radius(self._rounded)

    @property
    def factor(self) -> float:
        """Largest radius of a level divided by what the next finer level holds, above `resolution`."""
        return max(
            (self.radius(i) / self.holds(i - 1) for i in self.levels[self._rounded + 1 :]), default=1.0
        )

    @cached_property
    def pairs(self) -> float:
        """See `RegionsOfCells`: the mean number of balls of a level that hold a cell."""
        d, pitch = self.dimension, self._pitches[-1]
        unit_ball = math.pow(math.pi, d / 2) / math.gamma(d / 2 + 1)
        return unit_ball * math.pow(self.reach(self.levels[-1]) / pitch, d) * math.pow(0.5, d - 1)

    @cached_property
    def most_keys(self) -> int:
        """Bound on the number of balls of a level that hold one record, the smaller one of two.

        Let N centers be within R of a point. Their Voronoi cells do not overlap, and a cell has a volume of
        2^(d - 1) cubed pitches. Let r be the radius of a ball of the volume of all N cells.

        - All cells lie within R plus the covering radius of the point, so r is at most that.
        - No set of that volume has a smaller mean squared distance from the point than the ball about it,
          which has d r^2 / (d + 2). Cells are symmetric, so that of the N cells is at most R^2 + G, where G
          is the mean squared distance of a place from the nearest center. The even multiples alone make G
          at most d / 3 squared pitches. So r^2 is at most (d + 2) (R^2 / d + 1 / 3).
        """
        d = self.dimension
        reach = max(self.reach(i) / self._pitches[i] for i in self.levels)
        widest = min(reach + self.covering, math.sqrt((d + 2) * (reach**2 / d + 1 / 3)))
        unit_ball = math.pow(math.pi, d / 2) / math.gamma(d / 2 + 1)
        return math.floor(unit_ball * math.pow(widest, d) * math.pow(0.5, d - 1) * (1 + 1e-9))

    @cached_property
    def all_keys(self) -> float:
        """Logarithm of the number of balls of all levels that may hold a record."""
        balls = 0
        for level in self.levels:
            pitch = self._pitches[level]
            balls += 2 * math.prod((e + 2 * self.reach(level)) // (2 * pitch) + 1 for e in self._extents)
        return math.log(balls)

    def coordinates(self, points: Points) -> Ints:
        """Return the cells of the points, shape (n, d)."""
        return points // self.cell if self.cell > 1 else points

    def tally(self, points: Points) -> Counts:
        """Count the records of every cell."""
        return Counts.of(pack(self.coordinates(points), _BITS // self.dimension))

    def cells(self, keys: Ints) -> Ints:
        """Return the cells that keys of `tally` name, shape (n, d)."""
        return unpack(keys, _BITS // self.dimension, self.dimension)

    def fullest(self, aggregate: Counts | Stored, low: int, high: int) -> Ints:
        """Return the largest count of a ball of each level, moved between `low` and `high`."""
        return fullest_of_all(self, Stored.of(aggregate), low, high)

    def keys(self, coordinates: Ints, level: int, *, fine: bool) -> list[Ints]:
        """Return the keys of the balls that hold each record, in two parts. Those of the second are larger.

        A record's keys depend on this record alone, and are the same on any worker.

        Args:
            coordinates: shape (n, d).
            level: of the balls.
            fine: ignored, because all rounds see the same balls.
        """
        return [keys for _, keys in self._keyed(coordinates, level)]

    def _keyed(self, coordinates: Ints, level: int) -> Iterator[tuple[NDArray[np.int32], Ints]]:
        """Yield the balls that hold each record, in two parts, as pairs: numbers of records, and keys."""
        bits = self._index_bits(level)
        for half in (0, 1):
            steps = [1 << (axis * bits) for axis in range(self.dimension)]
            first = [-self.around(level)] * self.dimension
            rows, keys = self.members(coordinates, level, half, first, steps)
            yield rows, keys | (half << (self.dimension * bits))

    def crowded(self, aggregate: Counts, level: int, floor: int) -> Iterator[Counts]:
        """Yield by how much the count of each ball of a level exceeds a floor, for those that exceed it.

        Together it is exactly what `keys` of the records, counted and clipped at the floor, would give.

        Args:
            aggregate: what `tally` counted.
            level: of the balls.
            floor: clipping floor, at least 0.
        """
        return exceeding(partial(self._counted, aggregate, level), floor, len(aggregate) * self.pairs)

    def _counted(self, aggregate: Counts, level: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield the keys of the balls that hold a cell, in parts, and the counts of their cells."""
        for start in range(0, max(1, len(aggregate)), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            for rows, keys in self._keyed(self.cells(aggregate.keys[part]), level):
                yield keys, aggregate.counts[part][rows]

    def members(
        self, cells: Ints, level: int, part: int, first: Sequence[int], steps: Sequence[int]
    ) -> tuple[NDArray[np.int32], Ints]:
        """Return pairs of a record and a ball that holds it: numbers of records, and numbers of balls.

        Axis by axis, each record is paired with the multiples nearby. A pair is dropped as soon as no center
        is in reach, whatever the multiples of the other axes.

        Args:
            cells: shape (n, d).
            level: of the balls.
            part: 0 for the balls about the even multiples, 1 for those about the odd ones.
            first: shape (d,), the index that is counted as 0.
            steps: shape (d,), by how much the number of a ball grows with its index.
        """
        pitch, most = self._pitches[level], self.reach(level) ** 2 - 1
        around = self.around(level)
        moved = cells - part * pitch
        nearest = (moved + pitch) // (2 * pitch)
        # Floats are faster. Integers are exact where floats of squares are not.
        rest: NDArray[Any] = (moved - 2 * pitch * nearest).astype(np.float64 if most < _EXACT else np.int64)
        squares = (rest * rest).sum(axis=1)
        rows = np.flatnonzero(squares <= most).astype(np.int32)
        squares = squares.take(rows)
        numbers = ((nearest - np.array(first)) @ np.array(steps)).take(rows)
        for axis in range(self.dimension):
            along = rest[:, axis].take(rows)
            squares -= along * along
            parts = []
            for offset in range(-around, around + 1):
                away = along - 2 * pitch * offset
                np.multiply(away, away, out=away)
                away += squares
                kept = np.flatnonzero(away <= most)
                parts.append((rows.take(kept), numbers.take(kept) + offset * steps[axis], away.take(kept)))
            rows, numbers, squares = (np.concatenate(each) for each in zip(*parts, strict=True))
        return rows, numbers

    def around(self, level: int) -> int:
        """Return how many multiples on either side of the nearest one may be in reach."""
        return (self.reach(level) + self._pitches[level]) // (2 * self._pitches[level])

    def nearest(self, cell: Ints, level: int) -> Ints:
        """Return a center (d,), in cells, of a ball of the level that is near a cell (d,)."""
        pitch = self._pitches[level]
        return np.asarray((cell + pitch) // (2 * pitch) * (2 * pitch))

    def in_one(self, cells: Ints, near: Ints, level: int) -> NDArray[np.bool_]:
        """Say which cells (n, d) are in a certain ball of the level, which is near a cell (d,)."""
        return np.asarray(distances_squared(cells, self.nearest(near, level)) < self.reach(level) ** 2)

    def nests(self, level: int, wider: int) -> bool:
        """Say whether some ball of a wider level holds all that a ball of the level holds."""
        return self.holds_cells(wider) > self.reach(level)

    def indices(self, cells: Ints, level: int) -> tuple[list[int], list[int]]:
        """Return by axis the lowest index of a ball that may hold one of the cells, and their number."""
        pitch, around = self._pitches[level], self.around(level)
        lowest = cells.min(axis=0) // (2 * pitch) - around
        highest = (cells.max(axis=0) + pitch) // (2 * pitch) + around
        return lowest.tolist(), (highest - lowest + 1).tolist()

    def _index_bits(self, level: int) -> int:
        """Return the bits of an index along one axis, which numbers every multiple in reach of the domain."""
        return (max(self._extents) // (2 * self._pitches[level]) + _PAST - 1).bit_length()

    def corner(self, key: int, level: int) -> Ints:
        """Lowest coordinates (d,), in grid steps, of the cube about the ball that `key` names."""
        center = self.centers(np.array([key]), level)[0]
        return np.asarray(center * self.cell + (self.cell - 1) // 2 - self.radius(level))

    def centers(self, keys: Ints, level: int) -> Ints:
        """Return the centers (n, d), in cells, of the balls that `keys` (n,) name."""
        bits, d = self._index_bits(level), self.dimension
        half = keys >> (d * bits)
        index = unpack(keys, bits, d)
        return np.asarray((2 * (index - self.around(level)) + half[:, None]) * self._pitches[level])

    def ball(self, level: int, corner: Ints) -> tuple[Ints, int]:
        """Return center (d,) and radius, in grid steps, of a ball that holds what a ball of the cover holds.

        Args:
            level: of the ball.
            corner: of the cube about it.
        """
        # Moving the center into the domain brings it no farther from any grid point.
        center = np.clip(corner + self.radius(level), 0, np.asarray(self.grid.extents))
        return center, self.radius(level)


def _covering(d: int) -> float:
    return math.sqrt(2 * d - 1 if d % 2 else 2 * d) / 2


def _radius(pitch: int, d: int) -> int:
    return math.ceil(_covering(d) * pitch / _SLACK[d] - 1e-9)


@lru_cache(64)
def _ladder(d: int, bounding: int) -> tuple[int, ...]:
    """Return the pitch of every level. The balls of the last one hold everything within `bounding` cells."""
    found = [1]
    while (_radius(found[-1], d) - _covering(d) * found[-1]) * _BELOW <= bounding + 1:
        found.append(max(found[-1] + 1, math.floor(found[-1] * _RATIO[d])))
    return tuple(found)
