"""Exact counts of the values of one column in each group, from which ranks follow."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts, Ints

_MOST = 1 << 62
"""Most pairs that are words: all numbers below that are int64."""


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Counts of distinct pairs of a group and a grid point, sorted by group, then by point.

    Args:
        groups: shape (m,), int64: the place of each pair's group in the keys of a `GroupTotals`.
        points: shape (m,), int64, grid points of one axis.
        counts: shape (m,), int64, all positive.
    """

    groups: Ints
    points: Ints
    counts: Ints

    @classmethod
    def of(cls, groups: Ints, points: Ints, counts: Ints | None = None) -> "ValueCounts":
        """Add up the counts of equal pairs, shape (n,); without counts each pair counts once."""
        bits = _bits_of_points([(groups, points)])
        if bits is not None:
            return cls._of_words(groups << bits | points, bits, counts)
        order = np.lexsort((points, groups))
        groups, points = groups[order], points[order]
        first = np.ones(len(groups), dtype=np.bool_)
        first[1:] = (groups[1:] != groups[:-1]) | (points[1:] != points[:-1])
        starts = np.flatnonzero(first)
        if counts is None:
            added = np.diff(np.append(starts, len(groups)))
        else:
            added = np.add.reduceat(counts[order], starts) if len(starts) else counts
        return cls(groups[first], points[first], added)

    @classmethod
    def _of_words(cls, words: Ints, bits: int, counts: Ints | None) -> "ValueCounts":
        """Do what `of` does to pairs in one word each, with the point in the last bits: faster."""
        if counts is None:
            words.sort()
        else:
            order = np.argsort(words, kind="stable")  # which merges sorted parts
            words = words[order]  # one after the other, so that fewer are held
            counts = counts[order]
            del order
        starts = np.flatnonzero(np.append(True, words[1:] != words[:-1])[: len(words)])
        if counts is None:
            counts = np.diff(np.append(starts, len(words)))
        elif len(starts):
            counts = np.add.reduceat(counts, starts)
        words = words[starts]
        return cls(words >> bits, words & ((1 << bits) - 1), counts)

    @classmethod
    def merged(cls, parts: Sequence["ValueCounts"], places: Sequence[Ints]) -> "ValueCounts":
        """Add up several counts.

        Args:
            parts: at least one.
            places: of each part, the new place of each of its groups.
        """
        both = zip(parts, places, strict=True)
        return cls.joined([cls(place[part.groups], part.points, part.counts) for part, place in both])

    @classmethod
    def joined(cls, parts: Sequence["ValueCounts"]) -> "ValueCounts":
        """Put counts of the same groups together, at least one, and add up those of equal pairs."""
        counts = np.concatenate([part.counts for part in parts])
        bits = _bits_of_points([(part.groups, part.points) for part in parts])
        if bits is not None:
            words = np.concatenate([part.groups << bits | part.points for part in parts])
            return cls._of_words(words, bits, counts)
        groups, points = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("groups", "points")
        )
        return cls.of(groups, points, counts)

    def __len__(self) -> int:
        return len(self.groups)

    def renamed(self, places: Ints) -> "ValueCounts":
        """Return the counts with other places of groups, which all differ; -1 leaves one out."""
        groups = places[self.groups]
        here = np.flatnonzero(groups >= 0)
        here = here[np.argsort(groups[here], kind="stable")]
        return ValueCounts(groups[here], self.points[here], self.counts[here])

    def part(self, first: int, last: int) -> "ValueCounts":
        """Return some neighboring pairs."""
        return ValueCounts(self.groups[first:last], self.points[first:last], self.counts[first:last])

    def counted(self) -> Counts:
        """Return the counts of a group that has all pairs."""
        return Counts(self.points, self.counts)

    def kept(self, groups: NDArray[np.bool_]) -> "ValueCounts":
        """Return the counts of some groups, shape (groups,), which get the places 0, 1, ..., in order."""
        here = groups[self.groups]
        places = np.cumsum(groups) - 1
        return ValueCounts(places[self.groups[here]], self.points[here], self.counts[here])

    def at(self, group: int) -> Counts:
        """Return the counts of one group; none where the place is below 0."""
        return self.part(*np.searchsorted(self.groups, [group, group + 1])).counted()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueCounts) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("groups", "points", "counts")
        )


def _bits_of_points(parts: Sequence[tuple[Ints, Ints]]) -> int | None:
    """Return how many bits all points need, if a group fits before them in a word; else None.

    Args:
        parts: groups and points of pairs.
    """
    bits = max(int(points.max(initial=0)).bit_length() for _, points in parts)
    groups = max(int(groups.max(initial=0)) for groups, _ in parts)
    return bits if (groups + 1) << bits <= _MOST else None
