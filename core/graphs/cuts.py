"""Minimum spanning forests, and how much a changed weight can change their cost."""

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from core.graphs.edges import WeightedEdges, compact
from core.graphs.forests import labels, spanning_forests

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

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
        u: shape (m,), int32, one end of each edge, 0, ..., nodes - 1.
        v: shape (m,), int32, the other end.
        weights: shape (m,), uint32, in 0, ..., cap; edges ascend by weight, equal ones by their ends.
        nodes: number of nodes that occur.
        cap: largest weight.
    """

    u: Numbers
    v: Numbers
    weights: NDArray[np.uint32]
    nodes: int
    cap: int

    @classmethod
    def of(cls, edges: WeightedEdges, cap: int) -> "Cuts":
        """Order the edges."""
        u, v, nodes = compact(edges.keys)
        order = edges.by_weight()
        u = u[order]  # one after the other, so that fewer are held
        v = v[order]
        return cls(u, v, edges.weights[order], nodes, cap)

    @property
    def components(self) -> int:
        """Number of connected components among the nodes that occur."""
        return self.nodes - len(self.tree)

    @property
    def tree(self) -> Ints:
        """Edges of the minimum spanning forest, as indices."""
        return self.forest(0)

    @property
    def cost(self) -> int:
        """Cost of the minimum spanning forest."""
        return int(self._weights(self.tree).sum())

    def forest(self, number: int) -> Ints:
        """Return a minimum spanning forest of the edges that are in none of the `number` before it."""
        found, more = self._forests
        while len(found) <= number:
            found.append(next(more))
        return found[number]

    @cached_property
    def _forests(self) -> tuple[list[Ints], Iterator[Ints]]:
        return [], spanning_forests(self.u, self.v, self.nodes)

    def _weights(self, edges: Ints) -> Ints:
        return self.weights[edges].astype(np.int64)

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
        return self._by_cuts(changes, enough) if self.nodes <= _EXACT else self._by_forests(changes)

    def _within_none(self) -> float:
        """Return the maximum over tree edges e of w(e), and of the weight of e's replacement minus w(e)."""
        weights = self._weights(self.tree)
        return int(max(weights.max(initial=0), (self._replacements() - weights).max(initial=0)))

    def _replacements(self) -> Ints:
        """Weight of each tree edge's replacement, or `cap` if it has none: shape (tree,).

        If a tree edge is removed, its tree splits into two parts. The replacement is the lightest edge
        outside of the forest that connects these parts. It is the lightest edge of a cut of the graph without
        the forest, so it belongs to the second forest. The edges of that forest are taken from the lightest
        up. Each closes a cycle with the tree path between its ends. It is the replacement of those edges of
        the path that have none yet. Edges that have their replacement are contracted.
        """
        here, outside, top = self.tree, self.forest(1), self.nodes
        roots = np.unique(labels(self.u[here], self.v[here], top), return_index=True)[1]
        rows = np.concatenate([self.u[here], np.full(len(roots), top, dtype=np.int32)])  # a node above all
        columns = np.concatenate([self.v[here], roots.astype(np.int32)])
        forest = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(top + 1, top + 1))
        order, parents = scipy.sparse.csgraph.breadth_first_order(forest, top, directed=False)
        parent, above = array("q", parents.astype(np.int64).tobytes()), array("q", range(top + 1))
        deep, replaced = array("q", [0]) * (top + 1), array("q", [self.cap]) * (top + 1)
        for node in order[1:].tolist():
            deep[node] = deep[parent[node]] + 1

        def uncovered(node: int) -> int:
            while above[node] != node:
                above[node] = above[above[node]]
                node = above[node]
            return node

        for a, b, weight in zip(self.u[outside], self.v[outside], self.weights[outside], strict=True):
            a, b = uncovered(int(a)), uncovered(int(b))
            while a != b:
                if deep[a] < deep[b]:
                    a, b = b, a
                replaced[a], above[a] = int(weight), parent[a]
                a = uncovered(a)
        depth = np.array(deep, dtype=np.int64)
        lower_end = np.where(depth[self.u[here]] > depth[self.v[here]], self.u[here], self.v[here])
        return np.array(replaced, dtype=np.int64)[lower_end]

    def _by_forests(self, changes: int) -> float:
        forest = self.forest(changes + 1)
        return self.cap if len(forest) < len(self.tree) else int(self.weights[forest].max(initial=0))

    def _by_cuts(self, changes: int, enough: float) -> float:
        best = math.floor(enough)
        for edge in self.tree.tolist():
            best = max(best, self._reaches(edge, changes, best))
            own = int(self.weights[edge])
            best = max(best, self._reaches(edge, changes + 1, best + own) - own)
        return best

    def _reaches(self, edge: int, cut: int, start: int) -> int:
        """The larger of W_e(cut) and `start`."""
        distinct = np.unique(np.append(self.weights.astype(np.int64), self.cap))
        if start >= self.cap or self._connectivity(edge, start) > cut:
            return start
        low, high = int(np.searchsorted(distinct, start, side="right")), len(distinct) - 1
        while low < high:
            middle = (low + high) // 2
            enough = self._connectivity(edge, int(distinct[middle])) > cut
            low, high = (low, middle) if enough else (middle + 1, high)
        return int(distinct[low])

    def _connectivity(self, edge: int, heaviest: int) -> int:
        """Fewest edges in a cut between the ends of an edge, counting only weights up to `heaviest`."""
        some = int(np.searchsorted(self.weights, heaviest, side="right"))
        rows, columns = np.append(self.u[:some], self.v[:some]), np.append(self.v[:some], self.u[:some])
        shape = (self.nodes, self.nodes)
        network = scipy.sparse.csr_array((np.ones(2 * some, dtype=np.int32), (rows, columns)), shape=shape)
        return int(
            scipy.sparse.csgraph.maximum_flow(network, int(self.u[edge]), int(self.v[edge])).flow_value
        )
