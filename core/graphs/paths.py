"""Paths of two edges, counted by their ends."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from core.graphs.ranked import Ranked

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Words = NDArray[np.uint32]

_PATHS = 1 << 20  # paths held at a time
_MIDDLES = 1 << 18  # neighbors of rows that are looked at together
_FEW = 1 << 12  # paths of a row that is taken together with others


def count_paths(
    graph: Ranked, rows: Ints, first: Ints, last: Ints, within: Numbers, width: int, least: int
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Count the paths from a row over one of its neighbors to a node below `width`.

    Where rows have few paths, these are sorted by both ends. Where they have many, there is a counter for
    every node. Several rows are taken together, so that parts of the graph are read less often.

    Args:
        graph: the graph.
        rows: shape (r,), ascending nodes where paths begin.
        first: shape (r,), where the neighbors in question begin; see `Ranked.starts`.
        last: shape (r,), where they end.
        within: shape (nodes,), for every neighbor how many of its own, from its first, paths may go to. None
            of them is `width` or more.
        width: bound of the ends.
        least: fewest paths that count, at least 1.

    Yields:
        Rows, ends and numbers of paths, shape (n,), by row and end: all pairs with at least `least` paths.
    """
    entries, most = np.maximum(last - first, 0), (1 << 32) // max(1, width)
    for some in runs(entries, _MIDDLES):
        over = graph.joined_ranges(rows[some], first[some], entries[some])
        bounds = np.append(0, np.cumsum(entries[some]))
        paths = np.diff(np.append(0, np.cumsum(within[over]))[bounds])
        nodes, sizes = rows[some], entries[some]
        many = paths >= max(_FEW, width // 4)
        turns = np.flatnonzero(many[1:] != many[:-1]) + 1
        for start, end in zip([0, *turns.tolist()], [*turns.tolist(), len(paths)], strict=True):
            weights = np.full(end - start, width) if many[start] else paths[start:end]
            for run in runs(weights, _PATHS, most):
                part = slice(start + run.start, start + run.stop)
                middles = over[bounds[part.start] : bounds[part.stop]]
                together = part.stop - part.start
                local = np.repeat(np.arange(together, dtype=np.uint32) * np.uint32(width), sizes[part])
                order = np.argsort(graph.part_of(middles).astype(np.uint16), kind="stable")
                count = _by_counters if many[start] else _by_sorting
                at, counts = count(graph, middles[order], local[order], within, together * width, least)
                row, last = np.divmod(at, width)
                yield nodes[part][row], last, counts


def runs(sizes: Ints, most: int, longest: int = 1 << 62) -> Iterator[slice]:
    """Cut a sequence into runs of at most `longest`, whose sizes add up to at most `most`; or runs of one."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = min(int(np.searchsorted(ends, before + most, side="right")), start + longest)
        yield slice(start, max(end, start + 1))
        start = max(end, start + 1)


def _by_sorting(
    graph: Ranked, over: Numbers, local: Words, within: Numbers, places: int, least: int
) -> tuple[Ints, Ints]:
    """Count places of paths, of which there are few; see `_by_counters`."""
    sizes = within[over]
    keys = _places(graph, over, local, sizes)
    keys.sort()
    hits = keys[np.flatnonzero(keys[least - 1 :] == keys[: max(0, len(keys) - least + 1)])]
    begins = np.flatnonzero(np.append(True, hits[1:] != hits[:-1])[: len(hits)])
    return hits[begins].astype(np.int64), np.diff(np.append(begins, len(hits))) + least - 1


def _by_counters(
    graph: Ranked, over: Numbers, local: Words, within: Numbers, places: int, least: int
) -> tuple[Ints, Ints]:
    """Count places of paths.

    Args:
        graph: see `count_paths`.
        over: shape (n,), a neighbor of each row after the other.
        local: shape (n,), the place of the row and of node 0. Ends have the places after it.
        within: see `count_paths`.
        places: number of places.
        least: see `count_paths`.

    Returns:
        Places with at least `least` paths, ascending, and their numbers of paths.
    """
    counters, sizes = np.zeros(places, dtype=np.int64), within[over]
    for run in runs(sizes, _PATHS):
        counters += np.bincount(_places(graph, over[run], local[run], sizes[run]), minlength=places)
    found = np.flatnonzero(counters >= least)
    return found, counters[found]


def _places(graph: Ranked, over: Numbers, local: Words, sizes: Numbers) -> Words:
    """Return the places of all ends, in no order, where neighbors ascend by their parts."""
    places, end = np.repeat(local, sizes), 0
    for ends in graph.ranges(over, graph.starts[over], sizes):
        places[end : end + len(ends)] += ends.astype(np.uint32)
        end += len(ends)
    return places
