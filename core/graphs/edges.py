"""Edge lists as aggregates."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.aggregate import shard_of
from core.distinct import distinct, distinct_in_place
from core.domain import Points
from core.graphs.components import spanning_forest

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

_END = (1 << 31) - 1
_CROWDED = 2  # edges a node, above which a forest is much smaller
_MANY = 1 << 16  # edges that are kept without a look at what could be left out, or are looked at together


@dataclass(frozen=True, eq=False)
class Edges:
    """The distinct edges of an undirected graph, 8 bytes an edge.

    An edge between nodes u < v has key u 2^31 + v. Adding or removing a row adds or removes at most one edge,
    even where rows repeat. Replacing a row is a removal and an addition.

    Args:
        keys: shape (m,), int64, sorted and distinct.
    """

    keys: Ints

    @classmethod
    def of(cls, points: Points) -> "Edges":
        """Collect the edges of rows whose first columns are u and v: shape (n, 2) or more; no loops."""
        keys = keys_of(points)
        keys.sort()
        return cls(distinct_in_place(keys))

    def __add__(self, other: "Edges") -> "Edges":
        if not len(other.keys):
            return self
        if not len(self.keys):
            return other
        keys = np.concatenate([self.keys, other.keys])
        keys.sort(kind="stable")  # which merges two sorted runs
        return Edges(distinct_in_place(keys))

    def __len__(self) -> int:
        return len(self.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edges) and np.array_equal(self.keys, other.keys)

    def split(self, shards: int) -> list["Edges"]:
        """Split by key into `shards` parts, which together have each edge once."""
        shard = shard_of(self.keys, shards)
        return [Edges(self.keys[shard == number]) for number in range(shards)]


@dataclass(frozen=True, eq=False)
class WeightedEdges:
    """The distinct edges of a weighted graph, each with its least weight, 12 bytes an edge.

    Adding or removing a row adds, removes or reweights at most one edge, even where rows repeat.

    With `forest`, edges that are in no minimum spanning forest of some of the rows may be left out. They are
    in none of all rows either, because their ends are joined by edges that come before them. So the forest is
    that of all rows, and no more than `_CROWDED` edges a node are kept, or `_MANY` edges. Which others are
    kept may depend on how rows are split.

    Args:
        keys: shape (m,), int64, sorted and distinct; see `Edges`.
        weights: shape (m,), uint32, grid steps.
        forest: whether only the minimum spanning forest is needed.
    """

    keys: Ints
    weights: NDArray[np.uint32]
    forest: bool = False

    @classmethod
    def of(cls, points: Points, forest: bool = False) -> "WeightedEdges":
        """Collect the edges of rows (u, v, weight), shape (n, 3); loops are left out."""
        weights = points[points[:, 0] != points[:, 1], 2].astype(np.uint32)
        return cls(*_lightest(keys_of(points), weights), forest)._thinned()

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: "WeightedEdges") -> "WeightedEdges":
        keys = np.empty(len(self) + len(other), dtype=np.int64)
        weights, size = np.empty(len(keys), dtype=np.uint32), 0
        longer = max(self.keys, other.keys, key=len)
        cuts = longer[_MANY::_MANY]  # the next slices begin there, so that little is held beside the sum
        bounds = ([0, *np.searchsorted(each.keys, cuts).tolist(), len(each)] for each in (self, other))
        for (begin, end), (first, last) in zip(*map(pairwise, bounds), strict=True):
            some = np.append(self.keys[begin:end], other.keys[first:last])
            more = np.append(self.weights[begin:end], other.weights[first:last])
            some, more = _lightest(some, more)
            here = slice(size, size + len(some))
            keys[here], weights[here], size = some, more, here.stop
        keys.resize(size, refcheck=False)
        weights.resize(size, refcheck=False)
        return WeightedEdges(keys, weights, self.forest)._thinned()

    def split(self, shards: int) -> list["WeightedEdges"]:
        """See `Edges.split`."""
        shard = shard_of(self.keys, shards)
        places = (np.flatnonzero(shard == number) for number in range(shards))
        return [WeightedEdges(self.keys[here], self.weights[here], self.forest) for here in places]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WeightedEdges)
            and self.forest == other.forest
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.weights, other.weights)
        )

    def by_weight(self) -> Numbers:
        """Return the order of the edges by weight, equal ones by their ends: shape (m,)."""
        words = self.weights.astype(np.int64)
        words <<= 31
        words |= np.arange(len(words), dtype=np.int32)
        words.sort()  # which takes a fifth of a stable `argsort`
        words &= _END
        return words.astype(np.int32)

    def _thinned(self) -> "WeightedEdges":
        if not self.forest or len(self.keys) <= _MANY:
            return self
        if len(self.keys) <= _CROWDED * _lower_ends(self.keys):  # then all nodes need not be counted
            return self
        if len(self.keys) <= _CROWDED * len(nodes_of(self.keys)):
            return self
        u, v, nodes = compact(self.keys)
        order = self.by_weight()
        u = u[order]  # one after the other, so that fewer are held
        v = v[order]
        kept = np.sort(order[spanning_forest(u, v, nodes)])
        return WeightedEdges(self.keys[kept], self.weights[kept], True)


def keys_of(points: Points) -> Ints:
    """Return the keys of the edges of rows (u, v, ...), in the order of the rows; loops are left out."""
    u, v = points[:, 0], points[:, 1]
    keys: Ints = np.minimum(u, v)
    keys <<= 31
    keys += np.maximum(u, v)
    found: Ints = keys[u != v]
    return found


def _lightest(keys: Ints, weights: NDArray[np.uint32]) -> tuple[Ints, NDArray[np.uint32]]:
    """Return the distinct keys, ascending, and the least weight of each."""
    order = np.argsort(keys, kind="stable")  # which merges sorted runs
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[first], np.minimum.reduceat(weights, first) if len(first) else weights


def compact(keys: Ints) -> tuple[Numbers, Numbers, int]:
    """Number the nodes that occur 0, 1, ... by their ids. Beside the result this takes little memory.

    Args:
        keys: shape (m,).

    Returns:
        Both ends of the edges, shape (m,), and the number of nodes that occur.
    """
    nodes = nodes_of(keys)
    ends = np.empty((2, len(keys)), dtype=np.int32)
    largest = int(nodes[-1]) if len(nodes) else 0
    table = np.zeros(largest + 1 if is_small(largest, len(keys)) else 0, dtype=np.int32)
    if len(table):
        table[nodes] = np.arange(len(nodes), dtype=np.int32)
    for part in _parts(keys):
        for end, ids in zip(ends, ends_of(keys[part]), strict=True):
            end[part] = table[ids] if len(table) else np.searchsorted(nodes, ids)
    return ends[0], ends[1], len(nodes)


def nodes_of(keys: Ints) -> Ints:
    """Return the nodes that are an end of edges of some keys, shape (m,): ascending ids, shape (nodes,)."""
    largest = max((int((keys[part] & _END).max()) for part in _parts(keys)), default=-1)
    if is_small(largest, len(keys)):
        occurs = np.zeros(largest + 1, dtype=np.bool_)
        for part in _parts(keys):
            for ids in ends_of(keys[part]):
                occurs[ids] = True
        return np.flatnonzero(occurs)
    some = [distinct(np.sort(np.concatenate(ends_of(keys[part])))) for part in _parts(keys)]
    return distinct(np.sort(np.concatenate(some)))


def _lower_ends(keys: Ints) -> int:
    """Count the nodes that are the lower end of edges of ascending keys."""
    ids = (keys[max(0, part.start - 1) : part.stop] >> 31 for part in _parts(keys))
    return sum(int(np.count_nonzero(np.diff(some))) for some in ids) + (len(keys) > 0)


def ids_of(parts: Iterable[Edges | WeightedEdges]) -> Numbers:
    """Return the ids of the nodes that occur in some parts: ascending, shape (nodes,)."""
    ids = np.zeros(0, dtype=np.int32)
    for part in parts:
        ids = distinct(np.sort(np.append(ids, nodes_of(part.keys).astype(np.int32)), kind="stable"))
    return ids


def is_small(largest: int, edges: int) -> bool:
    """Return whether a table of all ids up to the largest is small beside the edges; it is much faster."""
    return largest < 8 * edges + _MANY


def _parts(keys: Ints) -> list[slice]:
    return [slice(start, start + _MANY) for start in range(0, len(keys), _MANY)]


def ends_of(keys: Ints) -> tuple[Ints, Ints]:
    """Return the ids of both ends of edges of some keys, shape (m,)."""
    return keys >> 31, keys & _END
