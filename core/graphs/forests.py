"""Minimum spanning forests, one after another."""

from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

_MOST = 1 << 17  # edges that are looked at together: more take memory, and no less time
_PART = 8  # or a part of the nodes, where that is more: each look costs time for all components


def labels(u: Numbers, v: Numbers, nodes: int) -> Numbers:
    """Number the connected components of a graph: shape (nodes,)."""
    graph = scipy.sparse.csr_array((np.ones(len(u), dtype=np.int8), (u, v)), shape=(nodes, nodes))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1], dtype=np.int32)


def spanning_forest(u: Numbers, v: Numbers, nodes: int) -> Ints:
    """Return the minimum spanning forest of distinct edges (u, v) that ascend by weight, as indices."""
    return next(spanning_forests(u, v, nodes))


def spanning_forests(u: Numbers, v: Numbers, nodes: int) -> Iterator[Ints]:
    """Yield forests without end: each is the minimum spanning forest of the edges in none before.

    They are unique, because equal weights are ordered too. Edges are looked at from the lightest up, some at
    a time. Those that close a cycle with the forest so far are left out, and the next ones are joined to it.
    Once a forest connects what the first one connects, no heavier edge can belong to it.

    Args:
        u: shape (m,), one end of each edge, 0, ..., nodes - 1.
        v: shape (m,), the other end.
        nodes: number of nodes.

    Yields:
        Ascending indices of edges, shape (edges of the forest,).
    """
    left, most = np.ones(len(u), dtype=np.bool_), nodes
    while True:
        forest = _lightest(u, v, nodes, left, most)
        left[forest], most = False, len(forest)
        yield forest


def _lightest(u: Numbers, v: Numbers, nodes: int, left: NDArray[np.bool_], most: int) -> Ints:
    """Return the minimum spanning forest of the edges that are `left`; it has at most `most` edges."""
    found: list[Ints] = []
    component, components = np.arange(nodes, dtype=np.int32), nodes
    largest = max(_MOST, nodes // _PART)
    start, size = 0, min(4 * nodes, largest)
    while start < len(u) and nodes - components < most:
        some = start + np.flatnonzero(left[start : start + size])
        start, size = start + size, min(2 * size, largest)
        a, b = component[u[some]], component[v[some]]
        apart = a != b
        some, a, b = some[apart], a[apart], b[apart]
        pairs = np.minimum(a, b).astype(np.int64) * components + np.maximum(a, b)
        first = np.sort(np.unique(pairs, return_index=True)[1])  # the lightest between two components
        if not len(first):
            continue
        a, b, shape = a[first], b[first], (components, components)
        ranks = scipy.sparse.csr_array((np.arange(1.0, len(first) + 1), (a, b)), shape=shape)
        kept = np.sort(scipy.sparse.csgraph.minimum_spanning_tree(ranks).data.astype(np.int64) - 1)
        joined = labels(a[kept], b[kept], components)
        component, components = joined[component], components - len(kept)
        found.append(some[first[kept]])
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
