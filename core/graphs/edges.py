"""Edge lists as aggregates, and forests of them."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from core.domain import Points

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edges:
    """The distinct edges of an undirected graph, each with its least weight; 16 bytes per edge.

    An edge between nodes u < v has key u 2^31 + v. Adding or removing a row adds, removes or reweights at
    most one edge, even where rows repeat. Replacing a row is a removal and an addition.

    Args:
        keys: shape (m,), int64, sorted and distinct.
        weights: shape (m,), int64, grid steps.
    """

    keys: Ints
    weights: Ints

    @classmethod
    def of(cls, points: Points) -> "Edges":
        """Collect the edges of rows (u, v) or (u, v, weight), shape (n, 2) or (n, 3); loops are left out."""
        points = points[points[:, 0] != points[:, 1]]
        ends = np.sort(points[:, :2], axis=1)
        weights = points[:, 2] if points.shape[1] > 2 else np.zeros(len(points), dtype=np.int64)
        return cls._lightest((ends[:, 0] << 31) + ends[:, 1], weights)

    @classmethod
    def _lightest(cls, keys: Ints, weights: Ints) -> "Edges":
        order = np.lexsort((weights, keys))
        keys, weights = keys[order], weights[order]
        first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        return cls(keys[first], weights[first])

    def __add__(self, other: "Edges") -> "Edges":
        keys, weights = np.append(self.keys, other.keys), np.append(self.weights, other.weights)
        return self._lightest(keys, weights)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Edges)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.weights, other.weights)
        )

    def compact(self) -> tuple[Ints, Ints, int]:
        """Return both ends of the edges, numbered 0, ..., c - 1 among the nodes that occur, and c."""
        ends = np.concatenate([self.keys >> 31, self.keys & ((1 << 31) - 1)])
        nodes, numbers = np.unique(ends, return_inverse=True)
        return numbers[: len(self.keys)], numbers[len(self.keys) :], len(nodes)


def adjacency(u: Ints, v: Ints, nodes: int) -> "scipy.sparse.csr_array":
    """Return the symmetric 0/1 matrix of edges (u, v), shape (nodes, nodes)."""
    rows, columns = np.append(u, v), np.append(v, u)
    return scipy.sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(nodes, nodes))


def labels(u: Ints, v: Ints, nodes: int) -> Ints:
    """Number the connected components of a graph: shape (nodes,)."""
    return np.asarray(
        scipy.sparse.csgraph.connected_components(adjacency(u, v, nodes), directed=False)[1], dtype=np.int64
    )
