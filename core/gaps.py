"""The points of an ordered universe of any size, in runs of equal rank: occupied points and gaps between."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts

Ints = NDArray[np.int64]
Points = Ints | NDArray[np.object_]
"""Grid points of one axis, shape (m,): int64, or Python integers where the universe is larger."""

MOST_RECORDS = 1 << 33
"""Ranks are cut off at this number of records, so that scores with weights of at most 2^28 fit into int64."""

_FAR = 1 << 61
_PART = 1 << 16  # runs


@dataclass(frozen=True, eq=False)
class Order:
    """A multiset of grid points, sorted.

    Args:
        values: shape (m,), distinct, ascending.
        ranks: shape (m + 1,), ranks[i] records are below values[i]; the last entry is the number of records.
    """

    values: Points
    ranks: Ints

    @classmethod
    def of_counts(cls, counts: Counts) -> "Order":
        """Return the multiset whose points are the keys of `counts`."""
        return cls(counts.keys, np.append(0, np.cumsum(counts.counts)))

    @classmethod
    def of(cls, points: Iterable[int]) -> "Order":
        """Sort grid points of any size; they become int64 if they fit into 62 bits."""
        ordered = sorted(points)
        small = not ordered or ordered[-1] < 1 << 62
        whole = np.array(ordered, dtype=np.int64 if small else object)
        first = np.flatnonzero(np.append(True, whole[1:] != whole[:-1])) if ordered else np.empty(0, np.int64)
        return cls(whole[first], np.append(first, len(ordered)))

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self.ranks[-1])

    def below(self, point: int) -> int:
        """Number of records below `point`."""
        return int(self.ranks[self._position(point)])

    def ranks_at(self, points: Points) -> Ints:
        """Number of records below each of `points`, shape (k,)."""
        return np.asarray(self.ranks[np.searchsorted(self.values, points, side="left")])

    def within(self, low: int, high: int) -> "Order":
        """Return the records in [low, high)."""
        first, last = self._position(low), self._position(high)
        return Order(self.values[first:last], self.ranks[first : last + 1] - self.ranks[first])

    def _position(self, point: int) -> int:
        if self.values.dtype != object:
            point = max(min(point, (1 << 63) - 1), -1 << 63)
        return int(np.searchsorted(self.values, point, side="left"))


@dataclass(frozen=True, eq=False)
class Runs:
    """Grid points in runs of equal rank: every point that has records, and every gap between such points.

    The runs are in no particular order.

    Args:
        starts: shape (m,), first point of each run.
        lengths: shape (m,), positive.
        below: shape (m,), records below a point of the run.
        upto: shape (m,), records at or below it.
    """

    starts: Points
    lengths: Points
    below: Ints
    upto: Ints

    @classmethod
    def between(cls, order: Order, low: int, high: int) -> "Runs":
        """Cut the points of [low, high), low < high, into runs; ranks count all records of `order`."""
        here = order.within(low, high)
        ranks = here.ranks + order.below(low)
        # The universe may be too large for int64 although every record is small.
        wide = here.values.dtype == object or max(high, high - low) >= 1 << 63
        kind: Any = object if wide else np.int64
        values = here.values.astype(kind)
        after = np.concatenate([np.array([low], dtype=kind), values + 1])
        gaps = np.concatenate([values, np.array([high], dtype=kind)]) - after
        open_ = np.flatnonzero(gaps > 0)
        ones = np.ones(len(values), dtype=kind)
        return cls(
            np.concatenate([values, after[open_]]),
            np.concatenate([ones, gaps[open_]]),
            np.concatenate([ranks[:-1], ranks[open_]]),
            np.concatenate([ranks[1:], ranks[open_]]),
        )

    def parts(self) -> Iterator["Runs"]:
        """Yield the runs some at a time, at least once: what is computed of a part takes little memory."""
        for first in range(0, max(1, len(self.starts)), _PART):
            part = slice(first, first + _PART)
            yield Runs(self.starts[part], self.lengths[part], self.below[part], self.upto[part])


def rank_ends(runs: Runs, total: int, offset: int, up: int, down: int) -> tuple[Ints, Ints]:
    """Return the lowest and the highest rank of the points of each run; see `rank_scores`."""
    offset = min(max(offset, -_FAR), _FAR)

    def rank(below: Ints) -> Ints:
        # Counts are cut off where their products would wrap. A record still moves them by at most 1.
        above = total - below  # in place from here on: there may be a million
        np.minimum(above, MOST_RECORDS, out=above)
        above *= -down
        found = np.minimum(below, MOST_RECORDS)
        found *= up
        found += above
        found += offset
        return found

    return rank(runs.below), rank(runs.upto)


def distances(ends: tuple[Ints, Ints], aim: int = 0) -> Ints:
    """Return the distance of a rank from each range of ranks, given the lowest and the highest of each."""
    low, high = ends
    off: Ints = low - aim
    np.maximum(off, aim - high, out=off)
    np.maximum(off, 0, out=off)
    return off


def rank_scores(runs: Runs, total: int, offset: int, up: int, down: int) -> Ints:
    """Score the points of each run by minus the distance of their ranks from rank 0; scores are at most 0.

    A point v has all ranks from offset + up #{x < v} - down #{x >= v} to
    offset + up #{x <= v} - down #{x > v}. So a point that many records share serves every quantile among
    them.

    Sensitivity. Adding a record at y changes the two ends of the ranks of v:
    - if v > y, both rise by `up`;
    - if v < y, both fall by `down`;
    - if v = y, the upper end rises by `up`, and the lower end falls by `down`.
    The distance is 1-Lipschitz in the two ends. So each score changes by at most max(up, down), and the
    change of the scores has a range of at most 2 max(up, down).

    Args:
        runs: the points, with ranks that start from 0.
        total: number of records that the ranks count.
        offset: rank of a point below all records, plus `down` times the number of records.
        up: weight of a record below a point, at most 2^28.
        down: weight of a record above a point, at most 2^28.
    """
    return -distances(rank_ends(runs, total, offset, up, down))
