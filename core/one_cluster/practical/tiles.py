"""Count regions of cells that are too many to be held at once: tile by tile, with a margin about each.

Space is cut into tiles. A region belongs to the tile that holds its center. A tile is examined with all cells
that its regions may reach, so it has every record of its own regions, and perhaps not every one of others.
Where tiles are cut, and which cells are tried first, changes how many cells are held at once, and no count.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.one_cluster.practical.fullest import RegionsOfCells, fullest
from core.stored import Store, Stored

Ints = NDArray[np.int64]

PAIRS = 1 << 22
"""Pairs of a cell and a region that holds it which the cells of a tile should have at most."""

MOST_COUNTS = PAIRS // 2
"""What the pairs of a tile take at work, in counts; see `core.held`."""

_SAMPLE = 1 << 17
"""Most cells by which space is cut."""

_REPEATED, _MOST = 1.3, 12.0
"""A tile that is not too full is cut only where its halves have at most the former number of times its cells.
No cut makes cells be in more than the latter number of tiles, in the mean, so time and disk stay bounded."""

FULL = 1 << 22
"""Most cells of a tile, where tiles can be so small."""

_TRIED = 8
"""Cells of a tile that is examined first, for each record of `high`: half or a quarter of them are there."""

_AT_ONCE = 1 << 18
"""Regions that are looked at together, once they are counted."""

_END = 1 << 62
"""Beyond every cell and every center."""


@dataclass(eq=False)
class Tile:
    """A box of cells, and the cells in it and in the margin about it.

    Args:
        low: shape (d,), lowest coordinates.
        high: shape (d,), those after the highest.
        margin: how far cells may be outside of the box.
        axis: along which it is cut into two tiles, if it is.
        cut: first coordinate of the second one.
        halves: the two tiles, or none.
        kept: where the cells wait, if it is not cut.
    """

    low: Ints
    high: Ints
    margin: int
    axis: int = 0
    cut: int = 0
    halves: tuple["Tile", ...] = ()
    kept: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, sample: Ints, margin: int, enough: float, full: float) -> "Tile":
        """Cut all of space into tiles.

        A tile is cut at the median of its cells, with those of its margin, along the widest axis that makes
        both halves have fewer cells, until it has few enough. Where margins overlap much, because regions are
        wide and axes many, it is only cut until it is not too full, or cells are in too many tiles.

        Args:
            sample: shape (s, d), a sample of the cells.
            margin: of every tile.
            enough: cells of the sample that a tile should have, with its margin.
            full: cells of the sample that a tile may have, with its margin.
        """
        ends = np.full(sample.shape[1], _END)
        return cls(-ends, ends, margin)._cut(sample, enough, max(enough, full))

    def _cut(self, near: Ints, enough: float, full: float, repeated: float = 1.0) -> "Tile":
        if len(near) <= enough:
            return self
        for axis in np.argsort(np.min(near, axis=0) - np.max(near, axis=0)):
            self.axis, self.cut = int(axis), int(np.median(near[:, axis]))
            sides = self._sides(near[:, axis])
            sizes = [int(np.count_nonzero(side)) for side in sides]
            again = sum(sizes) / len(near)
            fewer = self.low[axis] < self.cut < self.high[axis] and max(sizes) < len(near)
            if fewer and again * repeated <= _MOST and (again <= _REPEATED or len(near) > full):
                parts = zip(self._split(), sides, strict=True)
                self.halves = tuple(
                    half._cut(near[side], enough, full, again * repeated) for half, side in parts
                )
                break
        return self

    def _split(self) -> tuple["Tile", "Tile"]:
        below, above = (Tile(self.low.copy(), self.high.copy(), self.margin) for _ in range(2))
        below.high[self.axis] = above.low[self.axis] = self.cut
        return below, above

    def _sides(self, along: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Say which cells each half needs, given their coordinates along the axis, shape (m,)."""
        return along < self.cut + self.margin, along >= self.cut - self.margin

    def owns(self, places: Ints) -> NDArray[np.bool_]:
        """Say which places, shape (m, d), are in the box."""
        return np.asarray(((places >= self.low) & (places < self.high)).all(axis=1))

    def leaves(self) -> Iterator["Tile"]:
        """Yield the tiles that are not cut: each place is in the box of exactly one."""
        if not self.halves:
            yield self
        for half in self.halves:
            yield from half.leaves()

    def deal(self, cells: Ints, counts: Counts, store: Store) -> None:
        """Store counts for every tile that needs them, given their cells, shape (m, d)."""
        columns = [np.ascontiguousarray(cells[:, axis]) for axis in range(cells.shape[1])]
        left = [(self, np.arange(len(counts), dtype=np.int32))]
        while left:
            tile, rows = left.pop()
            if tile.halves and len(rows):
                sides = tile._sides(columns[tile.axis][rows])
                left += [(half, rows[side]) for half, side in zip(tile.halves, sides, strict=True)]
            elif len(rows):
                tile.kept.append(store.put(Counts(counts.keys[rows], counts.counts[rows])))


def fullest_of_all(regions: RegionsOfCells, aggregate: Stored, low: int, high: int) -> Ints:
    """Return the largest count of a region of each level, moved between `low` and `high`; see `fullest`.

    Some cells that are dense, and more than `high` if there are so many, are examined first, and alone: what
    a region has there, it has at least. So levels of large regions are known to reach `high`, and tiles need
    no margin for them. The others are then counted in all tiles.

    Args:
        regions: the balls or boxes.
        aggregate: counts of all cells.
        low: counts up to this one need not be told apart.
        high: counts from this one on need not be told apart.
    """
    found = np.full(len(regions.levels), low, dtype=np.int64)
    most = _most(regions)
    if len(aggregate) <= most:
        return _fullest(regions, aggregate.whole(), low, high, found)
    sample = _sample(regions, aggregate)
    enough = max(most / 2, _TRIED * high) * len(sample) / len(aggregate)
    dense = _densest(Tile.of(sample, 0, enough, 0), sample, enough / 4)
    found = _fullest(regions, _within(regions, aggregate, dense), low, high, found)
    unknown = [level for place, level in enumerate(regions.levels) if found[place] < high]
    if unknown:
        for _, cells in _tiles(regions, aggregate, regions.reach(max(unknown)), sample):
            found = _fullest(regions, cells, low, high, found)
    return found


def crowded_of_all(regions: RegionsOfCells, aggregate: Stored, level: int, floor: int) -> Iterator[Counts]:
    """Yield by how much the count of each region of a level exceeds a floor; see `BallCover.crowded`.

    A region is in one part. However small the floor is, the regions of few cells are held at a time.

    Args:
        regions: the balls or boxes.
        aggregate: counts of all cells.
        level: of the regions.
        floor: clipping floor, at least 0.
    """
    if len(aggregate) <= _most(regions):
        for counts in regions.crowded(aggregate.whole(), level, floor):
            yield from _slices(counts)
        return
    for tile, cells in _tiles(regions, aggregate, regions.reach(level), _sample(regions, aggregate)):
        for counts in regions.crowded(cells, level, floor):
            for some in _slices(counts):
                own = tile.owns(regions.centers(some.keys, level))
                yield Counts(some.keys[own], some.counts[own])


def _slices(counts: Counts) -> Iterator[Counts]:
    for start in range(0, len(counts), _AT_ONCE):
        yield Counts(counts.keys[start : start + _AT_ONCE], counts.counts[start : start + _AT_ONCE])


def _most(regions: RegionsOfCells) -> int:
    return max(1, int(PAIRS / regions.pairs))


def _fullest(regions: RegionsOfCells, cells: Counts, low: int, high: int, found: Ints) -> Ints:
    return fullest(regions, regions.cells(cells.keys), cells.counts, low, high, found)


def _sample(regions: RegionsOfCells, aggregate: Stored) -> Ints:
    """Return some cells of every part, shape (s, d)."""
    step = -(-len(aggregate) // _SAMPLE)
    some = [part.keys[::step].copy() for part in aggregate]  # a view would hold the whole part
    return regions.cells(np.concatenate(some))


def _densest(tiles: Tile, sample: Ints, enough: float) -> Tile:
    """Return the tile whose cells of the sample lie in the smallest box, of those with enough of them."""

    def spread(tile: Tile) -> tuple[bool, float]:
        own = sample[tile.owns(sample)]
        return len(own) < enough, float(np.log1p(np.ptp(own, axis=0)).sum()) if len(own) else np.inf

    return min(tiles.leaves(), key=spread)


def _within(regions: RegionsOfCells, aggregate: Stored, tile: Tile) -> Counts:
    parts = []
    for part in aggregate:
        own = tile.owns(regions.cells(part.keys))
        parts.append(Counts(part.keys[own], part.counts[own]))
    return Counts.merged(parts)


def _tiles(
    regions: RegionsOfCells, aggregate: Stored, margin: int, sample: Ints
) -> Iterator[tuple[Tile, Counts]]:
    """Yield tiles that together own all regions, and the counts of the cells in and about each.

    Args:
        regions: the balls or boxes.
        aggregate: counts of all cells.
        margin: at least the reach of the regions.
        sample: of the cells, shape (s, d).
    """
    store = aggregate.store.another()
    share = len(sample) / len(aggregate)
    tiles = Tile.of(sample, margin, share * _most(regions), share * FULL)
    for part in aggregate:
        tiles.deal(regions.cells(part.keys), part, store)
    for tile in tiles.leaves():
        if tile.kept:
            yield tile, Counts.gathered(map(store.get, tile.kept))
            tile.kept.clear()
