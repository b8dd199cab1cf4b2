"""The whole database as distinct points with multiplicities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Points

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Weighted:
    """`counts[i]` records lie at `points[i]`; the points are distinct and sorted.

    Args:
        points: shape (m, d), int64 grid steps.
        counts: shape (m,), int64, all positive.
    """

    points: Points
    counts: Ints

    @classmethod
    def of(cls, points: Points) -> "Weighted":
        """Count the occurrences of each row of `points`, shape (n, d)."""
        return cls.merged(points, np.ones(len(points), dtype=np.int64))

    @classmethod
    def merged(cls, points: Points, counts: Ints) -> "Weighted":
        """Sort, and add up the counts of equal rows."""
        if not len(points):
            return cls(points, counts)
        order = np.lexsort(points.T[::-1])
        points, counts = points[order], counts[order]
        first = np.flatnonzero(np.append(True, (points[1:] != points[:-1]).any(axis=1)))
        return cls(points[first], np.add.reduceat(counts, first))

    def __add__(self, other: "Weighted") -> "Weighted":
        return Weighted.merged(
            np.concatenate([self.points, other.points]), np.concatenate([self.counts, other.counts])
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Weighted)
            and np.array_equal(self.points, other.points)
            and np.array_equal(self.counts, other.counts)
        )

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def where(self, kept: NDArray[np.bool_]) -> "Weighted":
        """Keep the points marked in `kept`, shape (m,)."""
        return Weighted(self.points[kept], self.counts[kept])

    def tally(self, cells: NDArray[np.int64]) -> tuple[Ints, Ints]:
        """Count the records of each cell.

        Args:
            cells: the cell of each point, shape (m, c).

        Returns:
            The number of the cell of each point, shape (m,), and the count of each cell, shape (s,).
        """
        _, number = np.unique(cells, axis=0, return_inverse=True)
        number = number.reshape(-1)
        counts = np.zeros(number.max(initial=-1) + 1, dtype=np.int64)
        np.add.at(counts, number, self.counts)
        return number, counts

    def tallied(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the distinct keys, shape (s,), and the records of each, given the key of each point (m,)."""
        return np.unique(keys), self.tally(keys[:, None])[1]
