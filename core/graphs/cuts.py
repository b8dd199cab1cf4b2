"""Minimum spanning forests, and how much a changed weight can change their cost."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from core.graphs.by_weight import ByWeight, Window
from core.graphs.edges import WeightedEdges
from core.graphs.forests import spanning_forests
from core.graphs.replacements import largest_increase
from core.stored import InMemory, Store, Stored

_EXACT = 100  # up to so many nodes, the local sensitivity within k changes is exact


@dataclass(frozen=True)
class Cuts:
    """A weighted graph, its minimum spanning forest, and the weights of the lightest edges of its cuts.

    For a cut U of a component let w_t(U) be the weight of its t-th lightest edge, or `cap` if the cut has
    fewer than t edges. The largest local sensitivity within k changed weights is

        A(k) = max over U of max(w_(k+1)(U), w_(k+2)(U) - w_1(U))

    (Nissim, Raskhodnikova and Smith 2007, Section 3.2). For a tree edge e let W_e(k) be the least w for which
    every cut that separates the ends of e has more than k edges of weight at most w; `cap` if there is no
    such w. Every cut separates the ends of some tree edge. So A(k) is the maximum over all e of W_e(k) and
    W_e(k+1) - w(e).

    Args:
        graph: the edges.
        cap: largest weight.
    """

    graph: ByWeight
    cap: int

    @classmethod
    def of(cls, edges: WeightedEdges | Stored, cap: int, store: Store | None = None) -> "Cuts":
        """Order the edges, which wait in the store."""
        return cls(ByWeight.of(Stored.of(edges), InMemory() if store is None else store), cap)

    @property
    def components(self) -> int:
        """Number of connected components among the nodes that occur."""
        return self.graph.nodes - len(self.tree)

    @property
    def tree(self) -> ByWeight:
        """The minimum spanning forest."""
        return self.forest(0)

    @cached_property
    def cost(self) -> int:
        """Cost of the minimum spanning forest."""
        return sum(int(weights.sum(dtype=np.int64)) for _, _, weights in self.tree)

    def forest(self, number: int) -> ByWeight:
        """Return a minimum spanning forest of the edges that are in none of the `number` before it."""
        found, more = self._forests
        while len(found) <= number:
            found.append(next(more))
        return found[number]

    @cached_property
    def _forests(self) -> tuple[list[ByWeight], Iterator[ByWeight]]:
        return [], spanning_forests(self.graph)

    def local(self, changes: int, enough: float) -> float:
        """Return A(k) for k = `changes`, or a bound of it; see `core.mechanisms.smooth_bound`.

        For k = 0, and on graphs of up to 100 nodes, the value is A(k), or at most `enough`. Otherwise it is a
        bound: the weight of the heaviest edge of forest number k + 2, or `cap` if that forest does not
        connect all that the graph connects. Forest number i is the minimum spanning forest of the edges that
        are in none of the i - 1 forests before.

        The bound is at least A(k):

        1. If k + 2 forests of weights at most w connect two nodes, there are k + 2 edge-disjoint paths
           between these nodes, of edges of weight at most w.
        2. So every cut U between them has w_(k+2)(U) <= w.

        The bound for k is at most the bound of any neighbor for k + 1:

        1. Removing an edge from the graph changes the edges that remain after each forest by at most one. So
           it lowers the number of forests that connect two nodes by at most 1.
        2. Changing a weight is one removal and one addition.
        """
        if changes == 0:
            return self._within_none()
        return self._by_cuts(changes, enough) if self.graph.nodes <= _EXACT else self._by_forests(changes)

    def _within_none(self) -> float:
        """Return the maximum over tree edges e of w(e), and of the weight of e's replacement minus w(e).

        See `core.graphs.replacements`.
        """
        heaviest = max((int(weights[-1]) for _, _, weights in self.tree), default=0)
        return max(heaviest, largest_increase(self.tree, self.forest(1), self.cap))

    def _by_forests(self, changes: int) -> float:
        forest = self.forest(changes + 1)
        if len(forest) < len(self.tree):
            return self.cap
        return max((int(weights[-1]) for _, _, weights in forest), default=0)

    def _by_cuts(self, changes: int, enough: float) -> float:
        best = math.floor(enough)
        for u, v, weights in self.tree:
            for end, other, own in zip(u.tolist(), v.tolist(), weights.tolist(), strict=True):
                best = max(best, self._reaches(end, other, changes, best))
                best = max(best, self._reaches(end, other, changes + 1, best + own) - own)
        return best

    @cached_property
    def _whole(self) -> Window:
        return self.graph.whole()

    def _reaches(self, end: int, other: int, cut: int, start: int) -> int:
        """The larger of W_e(cut) and `start`, for the edge e between two nodes."""
        distinct = np.unique(np.append(self._whole[2].astype(np.int64), self.cap))
        if start >= self.cap or self._connectivity(end, other, start) > cut:
            return start
        low, high = int(np.searchsorted(distinct, start, side="right")), len(distinct) - 1
        while low < high:
            middle = (low + high) // 2
            enough = self._connectivity(end, other, int(distinct[middle])) > cut
            low, high = (low, middle) if enough else (middle + 1, high)
        return int(distinct[low])

    def _connectivity(self, end: int, other: int, heaviest: int) -> int:
        """Fewest edges in a cut between two nodes, counting only weights up to `heaviest`."""
        u, v, weights = self._whole
        some = int(np.searchsorted(weights, heaviest, side="right"))
        rows, columns = np.append(u[:some], v[:some]), np.append(v[:some], u[:some])
        shape = (self.graph.numbers, self.graph.numbers)
        network = scipy.sparse.csr_array((np.ones(2 * some, dtype=np.int32), (rows, columns)), shape=shape)
        return int(scipy.sparse.csgraph.maximum_flow(network, end, other).flow_value)
