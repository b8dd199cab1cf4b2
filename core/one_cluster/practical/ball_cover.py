"""Overlapping balls at many radii, in two to six dimensions: any small ball lies in one of them."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points

Ints = NDArray[np.int64]

DIMENSIONS = range(2, 7)
"""Dimensions in which a run counts balls. Elsewhere it counts boxes."""

_SLACK = {2: 0.5, 3: 0.56, 4: 0.69, 5: 0.73, 6: 0.81}
"""Covering radius of the centers as a part of the balls' radius, by dimension.

A smaller part lowers the promised factor, but a record is then in more balls. It is in about 6, 8, 11, 12
and 15 balls of a level, and in 170 to 290 balls of all levels.
"""

_RATIO = 1.5  # of neighboring radii, at most, but for the smallest
_ROUNDED = 12  # pitch from which on rounding to whole steps hardly changes the ratios of radii
_INDEX_BITS = 51
_BELOW = 1 - 2.0**-49  # floats of squared distances are off by less than this


@dataclass(frozen=True)
class BallCover:
    """All balls of a ladder of radii about the centers of a lattice.

    The lattice of a level consists of the points whose coordinates are all even multiples of its pitch, and
    of those whose coordinates are all odd multiples of it (the dual of the checkerboard lattice). Every point
    of space is within `covering` pitches of a center (Conway and Sloane 1999, Chapter 4). So any ball that is
    smaller by `covering` pitches than the balls of the level lies in one of them. Centers may lie outside of
    the domain.

    A key names one ball. It packs level, half of the lattice and index into 60 bits without collisions.

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
    def covering(self) -> float:
        """Covering radius of the lattice, in pitches."""
        d = self.dimension
        return math.sqrt(2 * d - 1 if d % 2 else 2 * d) / 2

    @cached_property
    def _pitches(self) -> tuple[int, ...]:
        return _ladder(self.grid.extents, self.grid.bounding_radius, self.covering, _SLACK[self.dimension])

    @property
    def levels(self) -> range:
        """Every level, from the finest. One ball of the last level holds everything."""
        return range(len(self._pitches))

    @property
    def bottom(self) -> int:
        """The finest level."""
        return 0

    def radius(self, level: int) -> int:
        """Radius of the balls of a level, grid steps."""
        return _radius(self._pitches[level], self.covering, _SLACK[self.dimension])

    def side(self, level: int) -> int:
        """Side in grid steps of a cube that contains a ball of the level."""
        return 2 * self.radius(level)

    def holds(self, level: int) -> float:
        """Return a radius in grid steps. Any smaller ball lies in some ball of the level."""
        return (self.radius(level) - self.covering * self._pitches[level]) * _BELOW

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

    @property
    def most_keys(self) -> int:
        """Bound on the number of balls of a level that hold one record.

        The Voronoi cells of their centers do not overlap, and a cell has a volume of 2^(d - 1) cubed pitches.
        All lie in the ball about the record whose radius is larger by the covering radius.
        """
        d = self.dimension
        widest = max(self.radius(i) / self._pitches[i] for i in self.levels) + self.covering
        unit_ball = math.pow(math.pi, d / 2) / math.gamma(d / 2 + 1)
        return math.floor(unit_ball * math.pow(widest, d) * math.pow(0.5, d - 1))

    @property
    def all_keys(self) -> float:
        """Logarithm of the number of balls of the finest level. No other level has more."""
        return (1 + self.dimension * _bits(max(self.grid.extents), self._pitches[0])) * math.log(2.0)

    def coordinates(self, points: Points) -> Ints:
        """Return the points themselves, shape (n, d)."""
        return points

    def keys(self, coordinates: Ints, level: int, *, fine: bool) -> list[Ints]:
        """Return the keys of the balls that hold each record, in two parts. Those of the second are larger.

        A record's keys depend on this record alone, and are the same on any worker.

        Args:
            coordinates: shape (n, d).
            level: of the balls.
            fine: ignored, because all rounds see the same balls.
        """
        return [self._half(coordinates, level, half) for half in (0, 1)]

    def _half(self, coordinates: Ints, level: int, half: int) -> Ints:
        """Return the keys of the balls about the even (0) or the odd (1) multiples.

        Axis by axis, each record is paired with the multiples nearby. A pair is dropped as soon as the
        distance in the axes so far exceeds the radius.
        """
        pitch, radius = self._pitches[level], self.radius(level)
        bits, most = _bits(max(self.grid.extents), pitch), float(radius) ** 2 * _BELOW
        around = self._around(level)
        rows = np.arange(len(coordinates))
        keys = np.full(len(rows), ((level << 1) | half) << _INDEX_BITS, dtype=np.int64)
        squares = np.zeros(len(rows))
        for axis in range(self.dimension):
            moved = coordinates[:, axis] - half * pitch
            nearest = (moved + pitch) // (2 * pitch)
            rest = (moved - 2 * pitch * nearest).astype(np.float64)
            parts = []
            for offset in range(-around, around + 1):
                away = squares + ((rest - 2.0 * pitch * offset) ** 2)[rows]
                kept = np.flatnonzero(away <= most)
                index = (nearest + (offset + around)) << (axis * bits)
                parts.append((rows[kept], keys[kept] | index[rows[kept]], away[kept]))
            rows, keys, squares = (np.concatenate(each) for each in zip(*parts, strict=True))
        return keys

    def _around(self, level: int) -> int:
        """Return how many multiples on either side of the nearest one may be in reach."""
        return (self.radius(level) + self._pitches[level]) // (2 * self._pitches[level])

    def of_level(self, keys: Ints, level: int) -> NDArray[np.bool_]:
        """Say which keys are of balls of `level`, shape (m,)."""
        return np.asarray((keys >> (_INDEX_BITS + 1)) == level)

    def corner(self, key: int, level: int) -> Ints:
        """Lowest coordinates (d,) of the cube about the ball that `key` names."""
        pitch, half = self._pitches[level], (key >> _INDEX_BITS) & 1
        bits = _bits(max(self.grid.extents), pitch)
        index = np.array([(key >> (axis * bits)) & ((1 << bits) - 1) for axis in range(self.dimension)])
        return np.asarray((2 * (index - self._around(level)) + half) * pitch - self.radius(level))

    def ball(self, level: int, corner: Ints) -> tuple[Ints, int]:
        """Return center (d,) and radius, in grid steps, of a ball that holds what a ball of the cover holds.

        Args:
            level: of the ball.
            corner: of the cube about it.
        """
        # Moving the center into the domain brings it no farther from any grid point.
        center = np.clip(corner + self.radius(level), 0, np.asarray(self.grid.extents))
        return center, self.radius(level)


def _radius(pitch: int, covering: float, slack: float) -> int:
    return math.ceil(covering * pitch / slack - 1e-9)


def _bits(extent: int, pitch: int) -> int:
    """Return the bits of an index along one axis, which numbers every multiple in reach of the domain."""
    return (extent // (2 * pitch) + 8).bit_length()


@lru_cache(64)
def _ladder(extents: tuple[int, ...], bounding: int, covering: float, slack: float) -> tuple[int, ...]:
    """Return the pitch of every level, from the finest whose indices fit into a key."""
    pitch = 1
    while len(extents) * _bits(max(extents), pitch) > _INDEX_BITS:
        pitch += max(1, pitch // 4)
    found = [pitch]
    while (_radius(pitch, covering, slack) - covering * pitch) * _BELOW <= bounding + 1:
        pitch = max(pitch + 1, math.floor(pitch * _RATIO))
        found.append(pitch)
    return tuple(found)
