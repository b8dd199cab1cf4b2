"""Paths of two edges, counted by their ends."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from core.graphs.ranked import Ranked

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

_PATHS = 1 << 20  # paths held at a time
_FEW = 1 << 12  # paths of a row that is taken together with others


def count_paths(
    graph: Ranked, rows: Ints, first: Ints, last: Ints, within: Numbers, width: int, least: int
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Count the paths from a row over one of its neighbors to a node below `width`.

    Rows with few paths are taken together: their paths are sorted by both ends. For a row with many paths
    there is a counter for every node.

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
    entries, together = np.maximum(last - first, 0), (1 << 32) // max(1, width)
    for some in runs(entries, _PATHS):
        over = graph.joined_ranges(rows[some], first[some], entries[some])
        bounds = np.append(0, np.cumsum(entries[some]))
        paths = np.diff(np.append(0, np.cumsum(within[over]))[bounds])
        nodes, sizes = rows[some], entries[some]
        start = 0
        for end in np.append(np.flatnonzero(paths >= max(_FEW, width // 4)), len(paths)).tolist():
            for run in runs(paths[start:end], _PATHS, together):
                part = slice(start + run.start, start + run.stop)
                middles = over[bounds[part.start] : bounds[part.stop]]
                yield _together(graph, nodes[part], sizes[part], middles, within, width, least)
            if end < len(paths):
                middles = over[bounds[end] : bounds[end + 1]]
                yield _alone(graph, nodes[end], middles, within, width, least)
            start = end + 1


def runs(sizes: Ints, most: int, longest: int = 1 << 62) -> Iterator[slice]:
    """Cut a sequence into runs of at most `longest`, whose sizes add up to at most `most`; or runs of one."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = min(int(np.searchsorted(ends, before + most, side="right")), start + longest)
        yield slice(start, max(end, start + 1))
        start = max(end, start + 1)


def _together(
    graph: Ranked, rows: Ints, entries: Ints, over: Numbers, within: Numbers, width: int, least: int
) -> tuple[Ints, Ints, Ints]:
    local = np.repeat(np.arange(len(rows), dtype=np.uint32) * np.uint32(width), entries)
    if len(graph.parts) > 1:
        order = np.argsort(graph.part_of(over).astype(np.uint16), kind="stable")
        over, local = over[order], local[order]
    sizes = within[over]
    keys, end = np.repeat(local, sizes), 0
    for ends in graph.ranges(over, graph.starts[over], sizes):
        keys[end : end + len(ends)] += ends.astype(np.uint32)
        end += len(ends)
    keys.sort()
    at = np.flatnonzero(keys[least - 1 :] == keys[: max(0, len(keys) - least + 1)])
    hits = keys[at]
    begins = np.flatnonzero(np.append(True, hits[1:] != hits[:-1])[: len(hits)])
    counts = np.diff(np.append(begins, len(hits))) + least - 1
    row, last = np.divmod(hits[begins].astype(np.int64), width)
    return rows[row], last, counts


def _alone(
    graph: Ranked, row: int, over: Numbers, within: Numbers, width: int, least: int
) -> tuple[Ints, Ints, Ints]:
    counter, starts, sizes = np.zeros(width, dtype=np.int64), graph.starts[over], within[over]
    for run in runs(sizes, _PATHS):
        for ends in graph.ranges(over[run], starts[run], sizes[run]):
            counter += np.bincount(ends, minlength=width)
    found = np.flatnonzero(counter >= least)
    return np.full(len(found), row), found, counter[found]
