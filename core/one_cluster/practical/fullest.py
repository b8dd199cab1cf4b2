"""The largest count of a ball at every level, without looking at all balls."""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.domain import distances_squared

Ints = NDArray[np.int64]

_PROBES = (
    4  # balls of a level that are tried to see whether one has so many records that the others do not matter
)
_DENSE = 8  # numbers of balls per pair of a record and a ball, up to which every ball has a total of its own
_AT_ONCE = 1 << 12  # records whose pairs are made at once


class Balls(Protocol):
    """Balls at levels, as `BallCover` has them."""

    @property
    def levels(self) -> range:
        """Every level, from the finest."""

    @property
    def dimension(self) -> int:
        """Number of axes."""

    def reach(self, level: int) -> int:
        """Radius of the balls of a level, in cells."""

    def holds_cells(self, level: int) -> float:
        """Any ball of a smaller radius lies in some ball of the level."""

    def nearest(self, cell: Ints, level: int) -> Ints:
        """Center of a ball of a level near a cell."""

    def indices(self, cells: Ints, level: int) -> tuple[list[int], list[int]]:
        """Lowest index of a ball that may hold one of the cells, and how many there are, by axis."""

    def members(
        self, cells: Ints, level: int, half: int, first: Sequence[int], steps: Sequence[int]
    ) -> tuple[NDArray[np.int32], Ints]:
        """Pairs of a record and a ball that holds it."""


def fullest(balls: Balls, cells: Ints, counts: Ints, low: int, high: int) -> Ints:
    """Return the largest count of a ball of each level, from the finest, moved between `low` and `high`.

    The result is exact, because only balls and records that cannot change it are passed over:

    - Where one ball of a level has a count of `high`, the others are passed over.
    - A record is passed over at a level if balls of a coarser level hold all those of this level that hold
      the record, and none of the coarser balls has a count above `low`.

    Args:
        balls: the cover.
        cells: shape (m, d), all different.
        counts: shape (m,), records of each cell.
        low: counts up to this one need not be told apart.
        high: counts from this one on need not be told apart.
    """
    found = np.full(len(balls.levels), low, dtype=np.int64)
    left = {len(found): np.arange(len(cells))}  # by level: the records in a ball whose count exceeds `low`
    for level in reversed(balls.levels):
        wider = min(j for j in left if j == len(found) or balls.holds_cells(j) > balls.reach(level))
        rows = left[wider]
        if counts[rows].sum() <= low:
            break
        if wider == len(found) and _reaches(balls, cells, counts, level, high):
            found[level] = high
            continue
        most, full = _level(balls, cells[rows], counts[rows], level, low)
        found[level], left[level] = min(max(low, most), high), rows[full]
    return found


def _reaches(balls: Balls, cells: Ints, counts: Ints, level: int, high: int) -> bool:
    """Say whether one of a few balls of a level has a count of `high`."""
    most = balls.reach(level) ** 2
    for probe in range(_PROBES):
        center = balls.nearest(cells[(2 * probe + 1) * len(cells) // (2 * _PROBES)], level)
        if counts[distances_squared(cells, center) < most].sum() >= high:
            return True
    return False


def _level(balls: Balls, cells: Ints, counts: Ints, level: int, low: int) -> tuple[int, Ints]:
    """Return the largest count of a ball of a level, and the records in a ball whose count exceeds `low`."""
    first, sizes = balls.indices(cells, level)
    steps = [math.prod(sizes[:axis]) for axis in range(balls.dimension)]
    most, full = 0, np.zeros(len(cells), dtype=np.bool_)
    for half in (0, 1):
        parts = [
            (start, *balls.members(cells[start : start + _AT_ONCE], level, half, first, steps))
            for start in range(0, len(cells), _AT_ONCE)
        ]
        pairs = sum(len(rows) for _, rows, _ in parts)
        total = math.prod(sizes)
        if total > _DENSE * pairs:
            named, numbers = np.unique(np.concatenate([n for _, _, n in parts]), return_inverse=True)
            ends = np.cumsum([len(n) for _, _, n in parts])[:-1]
            parts = [(s, r, n) for (s, r, _), n in zip(parts, np.split(numbers, ends), strict=True)]
            total = len(named)
        totals = np.zeros(total, dtype=np.int64)
        for start, rows, numbers in parts:
            np.add.at(totals, numbers, counts[start + rows])
        most = max(most, int(totals.max(initial=0)))
        exceeds = totals > low
        if exceeds.any():
            for start, rows, numbers in parts:
                full[start + rows[exceeds[numbers]]] = True
    return most, np.flatnonzero(full)
