"""Weighted edges from the lightest up, in windows that wait in a store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from core.graphs.edges import WeightedEdges, ends_of, ids_of, is_small
from core.stored import Store, Stored

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Weights = NDArray[np.uint32]
Window = tuple[Numbers, Numbers, Weights]
"""Both ends and the weight of some edges, from the lightest up: each of shape (m,)."""

_WINDOW = 1 << 18
"""Edges in a window, about."""

_APART = 1 << 6
"""Each of so many edges, by their ends, is in the sample that says where windows end."""


@dataclass(frozen=True)
class ByWeight:
    """A graph's edges, which ascend by weight, equal ones by their ends; 12 bytes an edge in the store.

    Args:
        nodes: number of nodes that occur.
        numbers: ends are numbered 0, ..., numbers - 1 by their ids. Less than half of these do not occur.
        windows: what the store's `put` returned of each `Window`.
        sizes: number of edges of each window.
        store: where the windows are.
    """

    nodes: int
    numbers: int
    windows: tuple[Any, ...]
    sizes: tuple[int, ...]
    store: Store

    @classmethod
    def of(cls, edges: Stored, store: Store) -> "ByWeight":
        """Sort edges.

        Args:
            edges: parts of `WeightedEdges` that have no edge in common.
            store: where the windows are to wait.
        """
        ids, nodes, numbers = _numbering(edges)
        windows, sizes = [], []
        for keys, weights in _sorted(edges, _ends(edges), store.another()):
            ends = (end.astype(np.int32) for end in ends_of(keys))  # as ids are, which would be copied
            u, v = (end if ids is None else np.searchsorted(ids, end).astype(np.int32) for end in ends)
            windows.append(store.put((u, v, weights)))
            sizes.append(len(keys))
        return cls(nodes, numbers, tuple(windows), tuple(sizes), store)

    def __len__(self) -> int:
        return sum(self.sizes)

    def __iter__(self) -> Iterator[Window]:
        return map(self.store.get, self.windows)

    def whole(self) -> Window:
        """Return all edges."""
        none = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint32)
        u, v, weights = zip(none, *self, strict=True)
        return np.concatenate(u), np.concatenate(v), np.concatenate(weights)


def _parts(edges: Stored) -> Iterator[WeightedEdges]:
    return cast(Iterator[WeightedEdges], iter(edges))


def _numbering(edges: Stored) -> tuple[Numbers | None, int, int]:
    """Return the ids that get numbers, ascending; how many occur; and how many numbers there are.

    Where more than half of all ids up to the largest occur, an id is its own number, and no ids are returned.
    """
    largest = max((int(ends_of(part.keys)[1].max(initial=-1)) for part in edges), default=-1)
    if not is_small(largest, len(edges)):
        ids = ids_of(edges)
        return ids, len(ids), len(ids)
    occurs = np.zeros(largest + 1, dtype=np.bool_)
    for part in edges:
        for end in ends_of(part.keys):
            occurs[end] = True
    nodes = int(np.count_nonzero(occurs))
    if 2 * nodes > largest:
        return None, nodes, largest + 1
    return np.flatnonzero(occurs).astype(np.int32), nodes, nodes


def _ends(edges: Stored) -> list[tuple[int, int]]:
    """Return (weight, key) of the edges at which windows begin, but for the first: ascending."""
    keys, weights = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.uint32)]
    for part in _parts(edges):
        keys.append(part.keys[::_APART].copy())  # or the whole part would be held
        weights.append(part.weights[::_APART].copy())
    some, own = np.concatenate(keys), np.concatenate(weights)
    windows = -(-len(edges) // _WINDOW)
    places = np.arange(1, windows) * len(some) // max(1, windows)
    cuts = np.lexsort((some, own))[places]
    return list(zip(own[cuts].tolist(), some[cuts].tolist(), strict=True))


def _sorted(edges: Stored, ends: Sequence[tuple[int, int]], store: Store) -> Iterator[tuple[Ints, Weights]]:
    """Yield keys and weights window by window, both shape (m,); see `_ends`."""
    pieces: list[list[Any]] = [[] for _ in range(len(ends) + 1)]
    for part in _parts(edges):
        order = part.by_weight()
        keys, weights = part.keys[order], part.weights[order]
        places = [0, *(_place(keys, weights, *cut) for cut in ends), len(keys)]
        for window, (begin, end) in zip(pieces, pairwise(places), strict=True):
            if begin < end:
                window.append(store.put((keys[begin:end], weights[begin:end])))
    for window in pieces:
        if window:
            some, more = zip(*map(store.get, window), strict=True)
            keys, weights = np.concatenate(some), np.concatenate(more)
            ascending = np.lexsort((keys, weights))
            yield keys[ascending], weights[ascending]


def _place(keys: Ints, weights: Weights, weight: int, key: int) -> int:
    """Return how many edges come before one; edges ascend by (weight, key)."""
    first, last = (int(np.searchsorted(weights, np.uint32(weight), side=side)) for side in ("left", "right"))
    return first + int(np.searchsorted(keys[first:last], key))
