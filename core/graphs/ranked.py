"""A graph in rows: the neighbors of every node, nodes by falling degree, in parts that wait in a store."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.distinct import distinct
from core.graphs.edges import ends_of, is_small, nodes_of
from core.stored import InMemory, Store, Stored

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

_ROWS = 1 << 20
"""Neighbors in a part, unless a single node has more."""

_END = (1 << 31) - 1


@dataclass(frozen=True)
class Ranked:
    """The neighbors of every node, 8 bytes an edge in the store. Node 0 has the highest degree.

    Args:
        starts: shape (nodes + 1,), int64, where the neighbors of a node begin among those of all nodes.
        heavier: shape (nodes,), int32, how many neighbors come before the node.
        cuts: shape (parts + 1,), first nodes of the parts, and the number of nodes.
        parts: what the store's `put` returned of each part: neighbors, int32, ascending for each node.
        store: where the parts are.
    """

    starts: Ints
    heavier: Numbers
    cuts: Ints
    parts: tuple[Any, ...]
    store: Store = field(default_factory=InMemory)

    @classmethod
    def of(cls, edges: Stored, store: Store) -> "Ranked":
        """Number the nodes that occur by falling degree, equal degrees by their ids.

        Args:
            edges: parts of distinct `Edges` that have none in common.
            store: where the rows are to wait.
        """
        number, nodes = _numbering(edges)
        degrees = np.zeros(nodes, dtype=np.int32)
        for part in edges:
            for end in ends_of(part.keys):
                degrees += np.bincount(number(end), minlength=nodes).astype(np.int32)
        order = np.argsort(-degrees, kind="stable").astype(np.int32)
        rank = np.empty(nodes, dtype=np.int32)
        rank[order] = np.arange(nodes, dtype=np.int32)
        starts = np.append(0, np.cumsum(degrees[order], dtype=np.int64))
        del degrees, order
        cuts = _cuts(starts)
        directed = _directed(edges, lambda end: rank[number(end)], cuts, store.another())
        heavier = np.zeros(nodes, dtype=np.int32)
        parts = []
        for first, end, some in zip(cuts[:-1], cuts[1:], directed, strict=True):
            keys = np.concatenate(some)
            keys.sort(kind="stable")
            neighbors = (keys & _END).astype(np.int32)
            keys >>= 31
            heavier[first:end] = np.bincount(keys[neighbors < keys] - first, minlength=end - first)
            parts.append(store.put(neighbors))
        return cls(starts, heavier, cuts, tuple(parts), store)

    @property
    def nodes(self) -> int:
        """Number of nodes that occur."""
        return len(self.heavier)

    @cached_property
    def degrees(self) -> Ints:
        """Number of neighbors: shape (nodes,), falling."""
        return np.diff(self.starts)

    def above(self, degree: int) -> int:
        """Return how many nodes have a higher degree: the first ones."""
        return bisect_left(range(self.nodes), -degree, key=lambda node: -int(self.degrees[node]))

    def part_of(self, nodes: Ints | Numbers) -> Ints:
        """Return in which part the neighbors of nodes are, shape (n,)."""
        return np.searchsorted(self.cuts, nodes, side="right") - 1

    def rows(self, first: int, end: int) -> Iterator[Numbers]:
        """Yield the neighbors of the nodes from `first` on and below `end`, part by part."""
        for piece, low, high in zip(self.parts, self.cuts[:-1], self.cuts[1:], strict=True):
            if low < end and first < high:
                bounds = self.starts[[max(first, low), min(end, high)]] - self.starts[low]
                yield self.store.get(piece)[slice(*bounds)]

    def ranges(self, nodes: Ints | Numbers, starts: Ints, sizes: Ints) -> Iterator[Numbers]:
        """Yield what lies at starts, ..., starts + sizes - 1 among the neighbors of all nodes, part by part.

        Args:
            nodes: shape (n,), whose neighbors they are; their parts ascend.
            starts: shape (n,).
            sizes: shape (n,).
        """
        bounds = np.searchsorted(nodes, self.cuts)
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            here = slice(bounds[number], bounds[number + 1])
            neighbors, offset = self.store.get(self.parts[number]), self.starts[self.cuts[number]]
            yield _join(neighbors, starts[here] - offset, sizes[here])

    def joined_ranges(self, nodes: Ints | Numbers, starts: Ints, sizes: Ints) -> Numbers:
        """Return all that `ranges` yields."""
        return np.concatenate([*self.ranges(nodes, starts, sizes), np.zeros(0, dtype=np.int32)])

    def joined(self, i: Ints, j: Ints) -> NDArray[np.bool_]:
        """Return which pairs (i, j), shape (n,), have an edge, by binary search."""
        found = np.zeros(len(i), dtype=np.bool_)
        number = self.part_of(j)
        for each in distinct(np.sort(number)).tolist():
            here = np.flatnonzero(number == each)
            neighbors, offset = self.store.get(self.parts[each]), self.starts[self.cuts[each]]
            low, end = self.starts[j[here]] - offset, self.starts[j[here] + 1] - offset
            found[here] = _has(neighbors, i[here], low, end)
        return found


def _join(neighbors: Numbers, starts: Ints, sizes: Ints) -> Numbers:
    """Join ranges of neighbors; a slice takes as long as 30 places or so."""
    if int(sizes.sum()) < 30 * len(sizes):
        return neighbors[_ranges(starts, sizes)]
    places = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    return np.concatenate([neighbors[start:end] for start, end in places])


def _ranges(starts: Ints, sizes: Ints) -> Ints:
    """Join the ranges start, ..., start + size - 1."""
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))


def _ids_of(edges: Stored) -> Ints:
    """Return the ids of the nodes that occur: ascending, shape (nodes,)."""
    ids = np.zeros(0, dtype=np.int64)
    for part in edges:
        ids = distinct(np.sort(np.concatenate([ids, nodes_of(part.keys)]), kind="stable"))
    return ids


def _numbering(edges: Stored) -> tuple[Callable[[Ints], Ints | Numbers], int]:
    """Return what numbers the nodes that occur 0, 1, ... by their ids, and how many these are.

    It has a table of all ids up to the largest where that is small beside the edges.
    """
    ids = _ids_of(edges)
    nodes, largest = len(ids), int(ids[-1]) if len(ids) else 0
    if not is_small(largest, len(edges)):
        return lambda some: np.searchsorted(ids, some), nodes
    table = np.zeros(largest + 1, dtype=np.int32)
    table[ids] = np.arange(nodes, dtype=np.int32)
    return lambda some: table[some], nodes


def _cuts(starts: Ints) -> Ints:
    """Cut nodes into parts of at most `_ROWS` neighbors, or of one node; see `Ranked.cuts`."""
    cuts, nodes = [0], len(starts) - 1
    while cuts[-1] < nodes:
        end = int(np.searchsorted(starts, starts[cuts[-1]] + _ROWS, side="right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return np.array(cuts)


def _directed(
    edges: Stored, rank: Callable[[Ints], Numbers], cuts: Ints, store: Store
) -> Iterator[list[Ints]]:
    """Yield for each part of the rows all (row, neighbor), as row 2^31 + neighbor, in no order."""
    parts: list[list[Any]] = [[] for _ in cuts[1:]]
    for part in edges:
        u, v = (rank(end).astype(np.int64) for end in ends_of(part.keys))
        keys = np.concatenate([(u << 31) + v, (v << 31) + u])
        del u, v
        keys.sort()
        bounds = np.searchsorted(keys, cuts << 31)
        for some, begin, end in zip(parts, bounds[:-1], bounds[1:], strict=True):
            if begin < end:
                some.append(store.put(keys[begin:end]))
    for some in parts:
        yield [store.get(piece) for piece in some]


def _has(neighbors: Numbers, wanted: Ints, low: Ints, end: Ints) -> NDArray[np.bool_]:
    """Return whether neighbors[low:end], which ascend, have what is wanted; all of shape (n,)."""
    high, last = end, len(neighbors) - 1
    while (low < high).any():
        middle = (low + high) // 2
        below = (low < high) & (neighbors[np.minimum(middle, last)] < wanted)
        low, high = np.where(below, middle + 1, low), np.where(below, high, np.minimum(high, middle))
    found: NDArray[np.bool_] = (low < end) & (neighbors[np.minimum(low, last)] == wanted)
    return found
