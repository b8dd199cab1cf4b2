"""A graph as one worker holds it: neighbors in rows, nodes by falling degree."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from core.graphs.edges import Edges, degrees_of

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Ranked:
    """The neighbors of every node, 8 bytes an edge. Node 0 has the highest degree.

    Args:
        starts: shape (nodes + 1,), int64, where the neighbors of a node begin.
        neighbors: shape (2 m,), int32, ascending for each node.
        heavier: shape (nodes,), how many neighbors come before the node.
    """

    starts: Ints
    neighbors: Numbers
    heavier: Ints

    @classmethod
    def of(cls, edges: Edges) -> "Ranked":
        """Number the nodes that occur by falling degree, equal degrees by their ids."""
        u, v, nodes = edges.compact()
        rank = np.empty(nodes, dtype=np.int32)
        order = np.argsort(-degrees_of(u, v, nodes), kind="stable")
        rank[order] = np.arange(nodes, dtype=np.int32)
        u = rank[u]  # one after the other, so that fewer are held
        v = rank[v]
        low = np.minimum(u, v)
        high = np.maximum(u, v, out=v)
        del u, v
        upper = scipy.sparse.csr_array((np.ones(len(low), dtype=np.int8), (low, high)), shape=(nodes, nodes))
        del low, high
        lower = upper.T.tocsr()
        upper.sort_indices()
        heavier, lighter = np.diff(lower.indptr).astype(np.int64), np.diff(upper.indptr)
        after, before = upper.indices, lower.indices
        del upper, lower
        is_before = np.repeat(np.tile([True, False], nodes), np.stack([heavier, lighter], axis=1).ravel())
        neighbors = np.empty(len(is_before), dtype=np.int32)
        neighbors[is_before] = before
        neighbors[~is_before] = after
        return cls(np.append(0, np.cumsum(heavier + lighter)), neighbors, heavier)

    @property
    def nodes(self) -> int:
        """Number of nodes that occur."""
        return len(self.heavier)

    @property
    def degrees(self) -> Ints:
        """Number of neighbors: shape (nodes,), falling."""
        return np.diff(self.starts)

    def joined(self, i: Ints, j: Ints) -> NDArray[np.bool_]:
        """Return which pairs (i, j), shape (n,), have an edge, by binary search."""
        low, high = self.starts[j], self.starts[j + 1]
        end = high
        while (low < high).any():
            middle = (low + high) // 2
            below = (low < high) & (self.neighbors[np.minimum(middle, len(self.neighbors) - 1)] < i)
            low, high = np.where(below, middle + 1, low), np.where(below, high, np.minimum(high, middle))
        found: NDArray[np.bool_] = (low < end) & (
            self.neighbors[np.minimum(low, len(self.neighbors) - 1)] == i
        )
        return found
