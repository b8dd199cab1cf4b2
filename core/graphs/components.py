"""Connected components, to which edges are added from the lightest up."""

import numpy as np
import scipy
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

_MOST = 1 << 17  # edges that are looked at together: more take memory, and no less time


class Components:
    """Which nodes are connected by the edges so far, 4 bytes a node. A node of each component stands for it.

    Args:
        nodes: number of nodes, which are 0, ..., nodes - 1.
    """

    def __init__(self, nodes: int) -> None:
        self._above = np.arange(nodes, dtype=np.int32)  # leads to what stands for the component

    def of(self, nodes: Numbers) -> Numbers:
        """Return the node that stands for the component of each node: shape (n,)."""
        above = self._above
        found = above[nodes]
        moved = np.flatnonzero(above[found] != found)
        while len(moved):
            higher = above[found[moved]]
            found[moved] = higher
            moved = moved[above[higher] != higher]
        above[nodes] = found
        return found

    def forest(self, u: Numbers, v: Numbers, most: int) -> Ints:
        """Add distinct edges, and return which of them are in the minimum spanning forest of all so far.

        Args:
            u: shape (m,), one end of each edge; edges ascend by weight, and none comes before an earlier one.
            v: shape (m,), the other end.
            most: bound of how many are in it.

        Returns:
            Indices, ascending.
        """
        found, start, size = [np.zeros(0, dtype=np.int64)], 0, min(4 * len(self._above), _MOST)
        while start < len(u) and most > 0:
            here = slice(start, start + size)
            found.append(start + self._join(u[here], v[here]))
            start, size, most = start + size, min(2 * size, _MOST), most - len(found[-1])
        return np.concatenate(found)

    def _join(self, u: Numbers, v: Numbers) -> Ints:
        a, b = self.of(u), self.of(v)
        some = np.flatnonzero(a != b)
        if not len(some):
            return some
        ends, numbers = np.unique(np.concatenate([a[some], b[some]]), return_inverse=True)
        pairs = numbers.reshape(2, -1)
        keys = pairs.min(axis=0) * len(ends) + pairs.max(axis=0)
        first = np.sort(np.unique(keys, return_index=True)[1])  # the lightest between two components
        (a, b), shape = pairs[:, first], (len(ends), len(ends))
        ranks = scipy.sparse.csr_array((np.arange(1.0, len(first) + 1), (a, b)), shape=shape)
        kept = np.sort(scipy.sparse.csgraph.minimum_spanning_tree(ranks).data.astype(np.int64) - 1)
        tree = scipy.sparse.csr_array((np.ones(len(kept), dtype=np.int8), (a[kept], b[kept])), shape=shape)
        count, joined = scipy.sparse.csgraph.connected_components(tree, directed=False)
        lowest = np.empty(count, dtype=np.int32)
        lowest[joined[::-1]] = ends[::-1]  # of nodes written to one place, the last one stays
        self._above[ends] = lowest[joined]
        found: Ints = some[first[kept]]
        return found


def spanning_forest(u: Numbers, v: Numbers, nodes: int) -> Ints:
    """Return the minimum spanning forest of distinct edges that ascend by weight: see `Components.forest`."""
    return Components(nodes).forest(u, v, nodes - 1)
