"""The largest count of a region at every level, without looking at all regions."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.one_cluster.practical.exceeding import exceeding

Ints = NDArray[np.int64]

_PROBES = 4  # regions of a level that are tried, to see whether one has so many records that no other matters
_DENSE = 8  # numbers of regions per pair of a record and a region, up to which every number has a total
_HELD = 1 << 23  # pairs that are held, and not made again, at most
_AT_ONCE = 1 << 12  # records whose pairs are made at once

Members = tuple[int, NDArray[np.int32], Ints]
"""Number of the first record, and pairs of a record, from there on, and a region that holds it."""


class RegionsOfCells(Protocol):
    """Regions of cells at levels: the balls of `BallCover`, or the boxes of `Boxes`."""

    @property
    def levels(self) -> range:
        """Every level, from the finest."""

    @property
    def dimension(self) -> int:
        """Number of axes."""

    @property
    def parts(self) -> int:
        """Number of parts of a level's regions, which are numbered apart."""

    def in_one(self, cells: Ints, near: Ints, level: int) -> NDArray[np.bool_]:
        """Say which cells are in a certain region of a level, which is near a cell."""

    def nests(self, level: int, wider: int) -> bool:
        """Say whether any region of a level lies in some region of a wider one."""

    @property
    def pairs(self) -> float:
        """Pairs of a cell and a region of a level that are held at once for each cell, about."""

    def indices(self, cells: Ints, level: int) -> tuple[list[int], list[int]]:
        """Lowest index of a region that may hold one of the cells, and how many there are, by axis."""

    def members(
        self, cells: Ints, level: int, part: int, first: Sequence[int], steps: Sequence[int]
    ) -> tuple[NDArray[np.int32], Ints]:
        """Pairs of a record and a region of a part that holds it."""

    def cells(self, keys: Ints) -> Ints:
        """Cells that keys name, shape (m, d)."""

    def reach(self, level: int) -> int:
        """Number of cells by which no cell of a region of a level is farther from its center, by axis."""

    def centers(self, keys: Ints, level: int) -> Ints:
        """Centers of the regions that keys name, shape (m, d), in cells."""

    def crowded(self, aggregate: Counts, level: int, floor: int) -> Iterator[Counts]:
        """By how much the counts of regions exceed a floor, in parts."""


def fullest(
    regions: RegionsOfCells, cells: Ints, counts: Ints, low: int, high: int, known: Ints | None = None
) -> Ints:
    """Return the largest count of a region of each level, from the finest, moved between `low` and `high`.

    The result is exact, because only regions and records that cannot change it are passed over:

    - Where one region of a level has a count of `high`, the others are passed over.
    - A record is passed over at a level if regions of a coarser level hold all those of this level that hold
      the record, and none of the coarser regions has a count above `low`.

    Args:
        regions: the balls or boxes.
        cells: shape (m, d), all different.
        counts: shape (m,), records of each cell.
        low: counts up to this one need not be told apart.
        high: counts from this one on need not be told apart.
        known: shape (levels,): counts between `low` and `high` that are surely reached. A level that reaches
            `high` is passed over, and no result is smaller.
    """
    found = np.full(len(regions.levels), low, dtype=np.int64) if known is None else known.copy()
    above = regions.levels[-1] + 1
    left = {above: np.arange(len(cells))}  # by level: the records in a region whose count exceeds `low`
    for place, level in reversed(list(enumerate(regions.levels))):
        if found[place] >= high:
            continue
        wider = min(j for j in left if j == above or regions.nests(level, j))
        rows = left[wider]
        if counts[rows].sum() <= low:
            break
        if wider == above and _reaches(regions, cells, counts, level, high):
            found[place] = high
            continue
        most, full = _level(regions, cells[rows], counts[rows], level, low)
        found[place], left[level] = min(max(int(found[place]), most), high), rows[full]
    return found


def _reaches(regions: RegionsOfCells, cells: Ints, counts: Ints, level: int, high: int) -> bool:
    """Say whether one of a few regions of a level has a count of `high`."""
    tried = [cells[(2 * probe + 1) * len(cells) // (2 * _PROBES)] for probe in range(_PROBES)]
    return any(counts[regions.in_one(cells, near, level)].sum() >= high for near in tried)


def _level(regions: RegionsOfCells, cells: Ints, counts: Ints, level: int, low: int) -> tuple[int, Ints]:
    """Return the largest count of a region of a level, and the records in one whose count exceeds `low`."""
    first, sizes = regions.indices(cells, level)
    steps = [math.prod(sizes[:axis]) for axis in range(regions.dimension)]
    most, full = 0, np.zeros(len(cells), dtype=np.bool_)
    for part in range(regions.parts):

        def members(part: int = part) -> Iterator[Members]:
            for start in range(0, len(cells), _AT_ONCE):
                some = cells[start : start + _AT_ONCE]
                yield start, *regions.members(some, level, part, first, steps)

        about = len(cells) * regions.pairs
        if about > _HELD:
            most = max(most, _of_many(members, counts, low, full, about))
        else:
            most = max(most, _of_few(members, counts, low, full, math.prod(sizes)))
    return most, np.flatnonzero(full)


def _of_few(
    members: Callable[[], Iterable[Members]], counts: Ints, low: int, full: NDArray[np.bool_], total: int
) -> int:
    """Return the largest count of the regions of a part, and mark records in `full`.

    Args:
        members: yields all pairs, whenever it is called.
        counts: shape (m,), records of each cell.
        low: counts up to this one need not be told apart.
        full: shape (m,): whether a record is in a region whose count exceeds `low`.
        total: number of regions.
    """
    parts = list(members())
    pairs = sum(len(rows) for _, rows, _ in parts)
    if total > _DENSE * pairs:
        named, numbers = np.unique(np.concatenate([n for _, _, n in parts]), return_inverse=True)
        ends = np.cumsum([len(n) for _, _, n in parts])[:-1]
        parts = [(s, r, n) for (s, r, _), n in zip(parts, np.split(numbers, ends), strict=True)]
        total = len(named)
    totals = np.zeros(total, dtype=np.int64)
    for start, rows, numbers in parts:
        np.add.at(totals, numbers, counts[start + rows])
    exceeds = totals > low
    if exceeds.any():
        for start, rows, numbers in parts:
            full[start + rows[exceeds[numbers]]] = True
    return int(totals.max(initial=0))


def _of_many(
    members: Callable[[], Iterable[Members]], counts: Ints, low: int, full: NDArray[np.bool_], about: float
) -> int:
    """Return what `_of_few` does, or 0 if the count does not exceed `low`; hold few pairs at a time.

    Args:
        members: see `_of_few`.
        counts: see `_of_few`.
        low: see `_of_few`.
        full: see `_of_few`.
        about: number of pairs, about.
    """

    def pairs() -> Iterator[tuple[Ints, Ints]]:
        for start, rows, numbers in members():
            yield numbers, counts[start + rows]

    most = 0
    for found in exceeding(pairs, low, about):
        if not len(found):
            continue
        most = max(most, int(found.counts.max()) + low)
        for start, rows, numbers in members():
            places = np.minimum(np.searchsorted(found.keys, numbers), len(found) - 1)
            full[start + rows[found.keys[places] == numbers]] = True
    return most
