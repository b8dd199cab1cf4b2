"""Count the triangles of a graph, and how much a changed edge can change their number."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from core.graphs.edges import Edges, adjacency

Ints = NDArray[np.int64]

_WEDGES = 1 << 22  # paths of length two held at a time
_FEW = 256  # nodes that are paired with each other first


@dataclass(frozen=True)
class Wedges:
    """What triangle counts and their sensitivity need.

    Args:
        triangles: number of triangles.
        common: distinct numbers a of common neighbors of a pair of nodes, ascending.
        half: for each a, the largest number b of nodes that neighbor exactly one of such a pair, apart
            from the pair itself. An entry is left out if another has at least the same a and the same
            2 a + b, because then every A(s) is the same without it.
    """

    triangles: int
    common: Ints
    half: Ints

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


def count_wedges(edges: Edges, nodes: int) -> Wedges:
    """Count triangles and, for all pairs of the `nodes` possible nodes, common and half-common neighbors.

    Memory is some hundred bytes an edge, plus a constant. In the worst case the time is proportional to the
    number of paths of length two. This happens where nodes have edges to a good part of all others. Otherwise
    paths between nodes of few edges are left out where they cannot matter (`_count_common`).
    """
    u, v, here = edges.compact()
    degrees = np.bincount(np.append(u, v), minlength=here)
    heaviest = np.argsort(-degrees, kind="stable")
    rank = np.empty(here, dtype=np.int64)
    rank[heaviest] = np.arange(here)
    degrees, u, v = degrees[heaviest], rank[u], rank[v]
    graph = adjacency(u, v, here)
    best = _count_common(graph, degrees)
    best[0] = max(int(best[0]), _sum_without_common(graph, degrees, int(best.max()), nodes > here))
    alone = best > np.append(_largest_from(best)[1:], -1)
    some = np.flatnonzero(alone)
    return Wedges(_count_triangles(u, v, here), some, best[some] - 2 * some)


def _count_triangles(u: Ints, v: Ints, here: int) -> int:
    """Count each triangle at its corner of lowest degree, where the fewest neighbors are compared."""
    light, heavy = np.maximum(u, v), np.minimum(u, v)
    upward = scipy.sparse.csr_array((np.ones(len(u), dtype=np.int64), (light, heavy)), shape=(here, here))
    start, closed = 0, 0
    while start < here:
        end = _fitting(upward, upward, start, here)
        corner = upward[start:end]
        closed += int((corner @ upward).multiply(corner).sum())
        start = end
    return closed


def _count_common(graph: "scipy.sparse.csr_array", degrees: Ints) -> Ints:
    """For each number a > 0 of common neighbors, find the largest 2 a + b of a pair that can matter; else -1.

    For a pair of nodes i, j of degrees d_i >= d_j:

    1. 2 a + b is d_i + d_j, or 2 less if i and j are joined by an edge. a is at most d_j.
    2. Let M be the largest 2 a + b of the pairs found so far whose a is at least d_j. The pair i, j matters
       only if d_i + d_j > M: otherwise it is at most equal to one of those in both a and 2 a + b.
    3. Nodes come by falling degree, each as node j. So only the first nodes have a d_i that is large enough.

    Args:
        graph: adjacency matrix, nodes by falling degree, shape (nodes, nodes).
        degrees: shape (nodes,), falling.

    Returns:
        Shape (largest degree + 1,).
    """
    best = np.full(int(degrees.max(initial=0)) + 1, -1, dtype=np.int64)
    start, here = 0, len(degrees)
    while start < here:
        exceeded = int(_largest_from(best)[degrees[start]]) - int(degrees[start])
        end = min(here, max(2 * start, _FEW))
        rivals = min(int(np.searchsorted(-degrees, -exceeded)), end)
        if rivals == 0:
            break
        heavy = graph[:rivals].T.tocsr()
        end = _fitting(graph, heavy, start, end)
        paths = (graph[start:end] @ heavy).tocoo()
        i, j, common = paths.coords[1], paths.coords[0] + start, paths.data
        pairs = i < j
        i, j, common = i[pairs], j[pairs], common[pairs]
        sums = degrees[i] + degrees[j]
        np.maximum.at(best, common, sums - 2)  # as if joined
        higher = np.flatnonzero(sums > _largest_from(best)[common])
        i, j = i[higher], j[higher]
        apart = higher[np.asarray(graph[j, i]).ravel() == 0] if len(higher) else higher
        np.maximum.at(best, common[apart], sums[apart])
        start = end
    return best


def _largest_from(best: Ints) -> Ints:
    """Return, for each a, the largest of the entries at a and above."""
    return np.maximum.accumulate(best[::-1])[::-1]


def _fitting(left: "scipy.sparse.csr_array", right: "scipy.sparse.csr_array", start: int, end: int) -> int:
    """Return the end of a range of rows of `left` with at most `_WEDGES` paths through `right`.

    The range begins at `start` and has at least one row.
    """
    paths = np.cumsum(left[start:end] @ np.diff(right.indptr).astype(np.int64))
    return start + max(1, int(np.searchsorted(paths, _WEDGES, side="right")))


def _sum_without_common(graph: "scipy.sparse.csr_array", degrees: Ints, enough: int, spare: bool) -> int:
    """Find the largest 2 a + b, above `enough`, of a pair without common neighbors (a = 0); else -1.

    Pairs are tried by descending sum of degrees. A pair without common neighbors has a sum of at most the
    number of nodes, so larger sums are skipped. `spare` says whether there is a node without edges.
    """
    best = int(degrees.max(initial=0)) if spare else -1
    for i in range(len(degrees) - 1):
        if degrees[i] + degrees[i + 1] <= max(best, enough):
            break
        if degrees[i] + degrees[-1] > len(degrees):
            continue
        apart = np.ones(len(degrees), dtype=np.bool_)
        apart[(graph[[i]] @ graph).indices] = False
        apart[: i + 1] = False
        sums = degrees[i] + degrees
        sums[graph[[i]].indices] -= 2
        best = max(best, int(sums[apart].max(initial=-1)))
    return best if best > enough else -1
