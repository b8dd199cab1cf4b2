"""What the number of triangles and its sensitivity need of a graph."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Wedges:
    """Corners of triangles, and the pairs of nodes for which a changed edge can matter most.

    For a pair of nodes let a be the number of their common neighbors, and b the number of nodes that are
    neighbors of exactly one of them, apart from the pair itself. A pair is left out if another has at least
    the same a and the same 2 a + b, because then every A(s) is the same without it (`CountTriangles`). So no
    two of those that are left agree in a, and the result of `+` does not depend on how pairs are split.

    Args:
        corners: number of corners of triangles, three for each triangle.
        common: shape (p,), the numbers a, ascending.
        sums: shape (p,), the largest 2 a + b of a pair with at least so many common neighbors, descending.
    """

    corners: int
    common: Ints
    sums: Ints

    @classmethod
    def none(cls) -> "Wedges":
        """Nothing is known of any pair."""
        return cls(0, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, corners: int, common: Ints, sums: Ints) -> "Wedges":
        """Leave out what does not matter of pairs of any numbers a and 2 a + b, shape (n,)."""
        order = np.lexsort((-sums, -common))  # falling a
        common, sums = common[order], sums[order]
        largest = np.maximum.accumulate(sums)
        kept = np.flatnonzero(np.append(True, largest[1:] > largest[:-1])[: len(sums)])[::-1]
        return cls(corners, common[kept], sums[kept])

    def __add__(self, other: "Wedges") -> "Wedges":
        common, sums = np.append(self.common, other.common), np.append(self.sums, other.sums)
        return Wedges.of(self.corners + other.corners, common, sums)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Wedges)
            and self.corners == other.corners
            and np.array_equal(self.common, other.common)
            and np.array_equal(self.sums, other.sums)
        )

    @property
    def triangles(self) -> int:
        """Number of triangles."""
        return self.corners // 3

    @property
    def half(self) -> Ints:
        """For each a the largest b: shape (p,)."""
        return self.sums - 2 * self.common

    def reached(self, common: Ints) -> Ints:
        """Return the largest sum of a pair with at least so many common neighbors, shape (n,); -1 if none."""
        return np.append(self.sums, -1)[np.searchsorted(self.common, common)]

    def least(self, total: int) -> int:
        """Return the least a for which `reached` is below `total`: a pair of this sum matters from there."""
        better = int(np.searchsorted(-self.sums, -total, side="right"))
        return int(self.common[better - 1]) + 1 if better else 0

    def local(self, changes: int, nodes: int) -> int:
        """Return A(s), the largest local sensitivity within s edges; see `CountTriangles`."""
        reached = self.common + (changes + np.minimum(changes, self.half)) // 2
        return int(min(int(reached.max()), max(0, nodes - 2)))

    def peaks(self, nodes: int, beta: float) -> list[int]:
        """Return ascending numbers s of edges, at one of which e^(-beta s) A(s) is largest.

        A(s) is the largest of min(a + floor((s + min(s, b)) / 2), nodes - 2) over pairs of nodes (a, b),
        where a + b <= nodes - 2. So the maximum is at the maximum of one pair, in one of two parts:

        1. For s <= b the pair has e^(-beta s) (a + s). The step from s to s + 1 raises this if a + s is below
           1 / (e^beta - 1), and does not raise it otherwise.
        2. For s = b + 2 j it has e^(-beta s) (a + b + j), up to a + b + j = nodes - 2. The step from j to
           j + 1 raises this if a + b + j is below 1 / (e^(2 beta) - 1). For s = b + 2 j + 1 it has less, as
           the value is that of s - 1.
        """
        both = self.common + self.half
        first = np.clip(_turn(beta) - self.common, 0, self.half)
        second = self.half + 2 * np.clip(_turn(2 * beta) - both, 0, np.maximum(0, nodes - 2 - both))
        return [int(s) for s in np.union1d(first, second)]


def _turn(beta: float) -> int:
    """Return the smallest x with x >= 1 / (e^beta - 1), where x e^(-beta x) stops rising."""
    return math.ceil(math.exp(-beta) / -math.expm1(-beta))
