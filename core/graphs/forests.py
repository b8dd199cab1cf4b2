"""Minimum spanning forests, one after another."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.graphs.by_weight import ByWeight
from core.graphs.components import Components


def spanning_forests(graph: ByWeight) -> Iterator[ByWeight]:
    """Yield forests without end: each is the minimum spanning forest of the edges in none before.

    They are unique, because equal weights are ordered too. Once a forest connects what the one before
    connects, no heavier edge can belong to it. Each takes 4 bytes for each number of a node while it is
    found, and all together a bit for each edge.
    """
    most = max(0, graph.nodes - 1)
    taken: list[NDArray[np.uint8] | None] = [None] * len(graph.windows)  # bits of edges in a forest before
    while True:
        components = Components(graph.numbers)
        windows: list[Any] = []
        sizes: list[int] = []
        for number, (u, v, weights) in enumerate(graph):
            bits = taken[number]
            used = np.zeros(len(u), dtype=np.bool_) if bits is None else _unpacked(bits, len(u))
            left = np.flatnonzero(~used)
            forest = left[components.forest(u[left], v[left], most - sum(sizes))]
            if len(forest):
                windows.append(graph.store.put((u[forest], v[forest], weights[forest])))
                sizes.append(len(forest))
                used[forest] = True
                taken[number] = np.packbits(used)
            if sum(sizes) == most:
                break
        most = sum(sizes)
        yield replace(graph, windows=tuple(windows), sizes=tuple(sizes))


def _unpacked(bits: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
    return np.unpackbits(bits, count=size).astype(np.bool_)
