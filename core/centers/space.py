"""Where centers live: the grid in finer units, so that a center may lie between grid points."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.errors import InvalidValue

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_RECORDS = 1 << 40
_REACH_BITS = 22  # a sum over MAX_RECORDS records of length 2^22 stays below 2^62
_MOST_BITS = 10
_CELLS = 1 << 19  # numbers in the working arrays of a chunk of records
_ROWS = 1 << 13  # records that are assigned at once: their distances fit the cache
_PLACE_BITS = 7
_TOGETHER = 1 << _PLACE_BITS  # centers that are compared at once; see `nearest`


@dataclass(frozen=True)
class Space:
    """The universe about its middle, in units of 2^-bits grid steps.

    Sums of 2^40 records stay below 2^62, so they are exact in int64. Inner products of two vectors stay below
    2^45, so they are exact in float64. So the results are the same in any order and on any worker.

    Args:
        grid: the universe.

    Raises:
        InvalidValue: the universe is so wide in steps that a sum of 2^40 records could overflow.
    """

    grid: Grid

    def __post_init__(self) -> None:
        if self.grid.bounding_radius >= 1 << _REACH_BITS:
            raise InvalidValue(
                "step",
                self.grid.step,
                f"a sum of 2^40 records could overflow from 2^{_REACH_BITS} steps on, so use a larger step "
                "or narrower bounds",
                f"is {self.grid.named_step}, which puts records up to {self.grid.bounding_radius:,} steps "
                "from the middle of the domain",
            )

    @cached_property
    def bits(self) -> int:
        """Binary digits of a center below the grid step."""
        return min(_MOST_BITS, _REACH_BITS - self.grid.bounding_radius.bit_length())

    @cached_property
    def reach(self) -> int:
        """Largest distance of a record from the middle, in units."""
        return self.grid.bounding_radius << self.bits

    def length(self, units: float) -> float:
        """Return a length in data units."""
        return units * self.grid.step / (1 << self.bits)

    @cached_property
    def middle(self) -> Ints:
        """Public middle of the universe, shape (d,), grid steps."""
        return np.asarray(self.grid.bounding_center, dtype=np.int64)

    def chunks(self, points: Points, width: int) -> Iterator[Floats]:
        """Yield the records in parts, about the middle, in units.

        Args:
            points: shape (n, d), grid steps.
            width: how many numbers per record the caller's working arrays hold.
        """
        rows = max(1, _CELLS // max(1, width))
        for start in range(0, len(points), rows):
            part = (points[start : start + rows] - self.middle) << self.bits
            yield part.astype(np.float64)

    def inside(self, positions: Floats) -> Ints:
        """Round positions (m, d), in units about the middle, and move them into the universe."""
        norm = np.linalg.norm(positions, axis=1, keepdims=True)
        positions = positions * np.minimum(1.0, self.reach / np.maximum(norm, 1.0))
        lowest, highest = (
            -self.middle << self.bits,
            (np.asarray(self.grid.extents) - self.middle) << self.bits,
        )
        # rounding goes toward the middle, which lies in the ball and in the box: the point stays in both
        return np.asarray(np.trunc(np.clip(positions, lowest, highest)), dtype=np.int64)

    def placed(self, positions: NDArray[Any]) -> Ints:
        """Round positions of centers, (m, d) in units about the middle, to where centers may be.

        The mean of points of a sphere lies inside of it. The best center on the sphere is the point above it,
        so there it is moved; the nearest center by the chord is then also the nearest on the way.
        """
        steps = self.grid.onto(self.middle + positions / (1 << self.bits))
        return self.inside((steps - self.middle) * (1 << self.bits))

    def restore(self, positions: Ints) -> Floats:
        """Return positions (m, d) in data units, shape (m, columns)."""
        return np.asarray(self.grid.restore(self.middle + positions / (1 << self.bits)))


def nearest(records: Floats, centers: Ints) -> Ints:
    """Index of the center nearest to each record. If several are equally near, the first of them.

    Args:
        records: shape (n, d), whole numbers, units about the middle.
        centers: shape (k, d), likewise.
    """
    return assigned(records, centers)[0]


def assigned(records: Floats, centers: Ints) -> tuple[Ints, Floats]:
    """Index of the center nearest to each record, the first if several are, and the squared distance to it.

    The nearest center c of a record x has the smallest |c|^2 - 2 c.x. So 128 (|c|^2 - 2 c.x) + j has its
    minimum there over the first 128 centers, where j is the index of c. Its last 7 bits are that index, and
    the others are |c|^2 - 2 c.x, to which |x|^2 is added.

    All numbers are whole, and exact in float64. Lengths are at most 2^22, so |c|^2 - 2 c.x is at most
    3 * 2^44 in absolute value, and 128 times as much is below 2^53.

    Args:
        records: shape (n, d), whole numbers, units about the middle.
        centers: shape (k, d), likewise.

    Returns:
        The indices and the squared distances, both of shape (n,).
    """
    positions = centers.astype(np.float64)
    slopes = -2 * _TOGETHER * positions
    squares = np.einsum("ij,ij->i", positions, positions)
    offsets = (_TOGETHER * squares + np.arange(len(positions)) % _TOGETHER)[:, None]
    label, distance = np.empty(len(records), dtype=np.int64), np.empty(len(records))
    for start in range(0, len(records), _ROWS):
        rows = slice(start, start + _ROWS)
        across = records[rows].T
        for first in range(0, len(positions), _TOGETHER):
            group = slice(first, first + _TOGETHER)
            distances = slopes[group] @ across
            distances += offsets[group]
            coded = distances.min(axis=0).astype(np.int64)
            found, near = first + (coded & _TOGETHER - 1), coded >> _PLACE_BITS
            if first == 0:
                label[rows], least = found, near
            else:
                label[rows] = np.where(near < least, found, label[rows])
                least = np.minimum(near, least)
        np.add(least, np.einsum("ij,ij->j", across, across), out=distance[rows])
    return label, distance
