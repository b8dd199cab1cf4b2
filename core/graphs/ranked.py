"""A graph in rows: the neighbors of every node, nodes by falling degree, in parts that wait in a store."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.distinct import distinct
from core.graphs.edges import ends_of, ids_of, is_small
from core.stored import InMemory, Store, Stored

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

_ROWS = 1 << 20
"""Neighbors in a part, unless a single node has more."""

_END = (1 << 31) - 1
_AT_ONCE = 1 << 16  # places that are counted together


@dataclass(frozen=True)
class Ranked:
    """The neighbors of every node, 8 bytes an edge in the store. Node 0 has the highest degree.

    Beside the store this takes 12 bytes a node.

    Args:
        degrees: shape (nodes,), int32, number of neighbors of each node, falling.
        heavier: shape (nodes,), int32, how many neighbors come before the node.
        starts: shape (nodes,), int32, where the neighbors of a node begin in its part.
        cuts: shape (parts + 1,), int64, first nodes of the parts, and the number of nodes.
        parts: what the store's `put` returned of each part: neighbors, int32, ascending for each node.
        store: where the parts are.
    """

    degrees: Numbers
    heavier: Numbers
    starts: Numbers
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
                add_often(degrees, number(end))
        order = np.argsort(-degrees, kind="stable")
        rank = np.empty(nodes, dtype=np.int32)
        rank[order] = np.arange(nodes, dtype=np.int32)
        degrees = degrees[order]
        del order
        starts, cuts = _cut(degrees)
        directed = _directed(edges, lambda end: rank[number(end)], cuts, store.another())
        heavier, parts = np.zeros(nodes, dtype=np.int32), []
        for first, end, keys in zip(cuts[:-1], cuts[1:], directed, strict=True):
            neighbors = (keys & _END).astype(np.int32)
            keys >>= 31
            heavier[first:end] = np.add.reduceat(neighbors < keys, starts[first:end], dtype=np.int32)
            parts.append(store.put(neighbors))
        return cls(degrees, heavier, starts, cuts, tuple(parts), store)

    @property
    def nodes(self) -> int:
        """Number of nodes that occur."""
        return len(self.degrees)

    def above(self, degree: int) -> int:
        """Return how many nodes have a higher degree: the first ones."""
        return bisect_left(range(self.nodes), -degree, key=lambda node: -int(self.degrees[node]))

    def part_of(self, nodes: Ints | Numbers) -> Ints:
        """Return in which part the neighbors of nodes are, shape (n,)."""
        return np.searchsorted(self.cuts, nodes, side="right") - 1

    def end_after(self, node: int) -> int:
        """Return the end of the part after that of a node, or of the last one."""
        return int(self.cuts[min(int(np.searchsorted(self.cuts, node, side="right")) + 1, len(self.parts))])

    def rows(self, first: int, end: int) -> Iterator[Numbers]:
        """Yield the neighbors of the nodes from `first` on and below `end`, part by part."""
        for piece, low, high in zip(self.parts, self.cuts[:-1], self.cuts[1:], strict=True):
            if max(first, low) < min(end, high):
                last = min(end, high) - 1
                yield self.store.get(piece)[
                    self.starts[max(first, low)] : self.starts[last] + self.degrees[last]
                ]

    def count_neighbors(self, often: Numbers, first: int, end: int) -> None:
        """Add to `often`, shape (nodes,), how many neighbors each has from `first` on and below `end`."""
        for neighbors in self.rows(first, end):
            add_often(often, neighbors)

    def ranges(self, nodes: Ints | Numbers, skipped: Numbers | int, sizes: Numbers) -> Iterator[Numbers]:
        """Yield some neighbors of each node, one node after the other, part by part.

        Args:
            nodes: shape (n,), such that their parts ascend.
            skipped: shape (n,), or one for all: how many neighbors come before those in question.
            sizes: shape (n,), how many these are.
        """
        starts, bounds = self.starts[nodes] + skipped, np.searchsorted(nodes, self.cuts)
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            here = slice(bounds[number], bounds[number + 1])
            yield _join(self.store.get(self.parts[number]), starts[here], sizes[here])

    def joined_ranges(self, nodes: Ints | Numbers, skipped: Numbers | int, sizes: Numbers) -> Numbers:
        """Return all that `ranges` yields."""
        return np.concatenate([*self.ranges(nodes, skipped, sizes), np.zeros(0, dtype=np.int32)])

    def joined(self, i: Ints, j: Ints | Numbers) -> NDArray[np.bool_]:
        """Return which pairs (i, j), shape (n,), have an edge, by binary search."""
        found = np.zeros(len(i), dtype=np.bool_)
        number = self.part_of(j)
        for each in distinct(np.sort(number)).tolist():
            here = np.flatnonzero(number == each)
            low = self.starts[j[here]]
            found[here] = _has(self.store.get(self.parts[each]), i[here], low, low + self.degrees[j[here]])
        return found


def add_often(often: Numbers, places: Ints | Numbers | NDArray[np.uint32]) -> None:
    """Add to `often` how often each place is among some, shape (n,), in any order.

    `np.bincount` would copy all places, and make another array as long as `often`, of 8 bytes a place.
    """
    for start in range(0, len(places), _AT_ONCE):
        np.add.at(often, places[start : start + _AT_ONCE].astype(np.intp), np.int32(1))


def _join(neighbors: Numbers, starts: Numbers, sizes: Numbers) -> Numbers:
    """Join ranges of neighbors; a slice takes as long as 30 places or so."""
    if int(sizes.sum()) < 30 * len(sizes):
        return neighbors[_ranges(starts, sizes)]
    places = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    return np.concatenate([neighbors[start:end] for start, end in places])


def _ranges(starts: Numbers, sizes: Numbers) -> Numbers:
    """Join the ranges start, ..., start + size - 1."""
    ends = np.cumsum(sizes, dtype=np.int32)
    places = np.repeat(starts - (ends - sizes), sizes)
    places += np.arange(len(places), dtype=np.int32)
    return places


def _numbering(edges: Stored) -> tuple[Callable[[Ints], Ints | Numbers], int]:
    """Return what numbers the nodes that occur 0, 1, ... by their ids, and how many these are.

    It has a table of all ids up to the largest where that is small beside the edges.
    """
    ids = ids_of(edges)
    nodes, largest = len(ids), int(ids[-1]) if len(ids) else 0
    if not is_small(largest, len(edges)):
        return lambda some: np.searchsorted(ids, some.astype(np.int32)), nodes
    table = np.zeros(largest + 1, dtype=np.int32)
    table[ids] = np.arange(nodes, dtype=np.int32)
    return lambda some: table[some], nodes


def _cut(degrees: Numbers) -> tuple[Numbers, Ints]:
    """Cut nodes into parts of at most `_ROWS` neighbors, or of one node: see `Ranked.starts` and `cuts`."""
    ends, starts, cuts = np.cumsum(degrees, dtype=np.int64), np.empty_like(degrees), [0]
    while cuts[-1] < len(degrees):
        first = cuts[-1]
        before = int(ends[first]) - int(degrees[first])
        end = max(first + 1, int(np.searchsorted(ends, before + _ROWS, side="right")))
        starts[first:end] = ends[first:end] - degrees[first:end] - before
        cuts.append(end)
    return starts, np.array(cuts)


def _directed(edges: Stored, rank: Callable[[Ints], Numbers], cuts: Ints, store: Store) -> Iterator[Ints]:
    """Yield for each part of the rows all (row, neighbor), as row 2^31 + neighbor, ascending."""
    parts: list[list[Any]] = [[] for _ in cuts[1:]]
    for part in edges:
        u, v = map(rank, ends_of(part.keys))
        keys = np.concatenate([u, v], dtype=np.int64)
        keys <<= 31
        keys += np.concatenate([v, u])
        del u, v
        keys.sort()
        bounds = np.searchsorted(keys, cuts << 31)
        for some, begin, end in zip(parts, bounds[:-1], bounds[1:], strict=True):
            if begin < end:
                some.append(store.put(keys[begin:end]))
    for some in parts:
        keys = np.concatenate([store.get(piece) for piece in some])
        keys.sort()
        yield keys


def _has(neighbors: Numbers, wanted: Ints, low: Numbers, end: Numbers) -> NDArray[np.bool_]:
    """Return whether neighbors[low:end], which ascend, have what is wanted; all of shape (n,)."""
    high, last = end, len(neighbors) - 1
    while (low < high).any():
        middle = low + (high - low) // 2
        below = (low < high) & (neighbors[np.minimum(middle, last)] < wanted)
        low, high = np.where(below, middle + 1, low), np.where(below, high, np.minimum(high, middle))
    found: NDArray[np.bool_] = (low < end) & (neighbors[np.minimum(low, last)] == wanted)
    return found
