"""Paths of two edges, counted by their ends."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.graphs.ranked import Ranked, add_often

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Words = NDArray[np.uint32]

_PATHS = 1 << 20  # paths held at a time
_MIDDLES = 1 << 18  # neighbors of rows that are looked at together
_FEW = 1 << 12  # paths of a row that are sorted, where nodes are few


def count_paths(
    graph: Ranked, rows: Ints, skipped: Numbers | int, sizes: Numbers, within: Numbers, width: int, least: int
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Count the paths from a row over one of its neighbors to a node below `width`.

    Args:
        graph: the graph.
        rows: shape (r,), ascending nodes where paths begin.
        skipped: shape (r,), or one for all: how many neighbors of a row come before those in question.
        sizes: shape (r,), how many these are.
        within: shape (nodes,), for every neighbor how many of its own, from its first, paths may go to. None
            of them is `width` or more.
        width: bound of the ends.
        least: fewest paths that count, at least 1.

    Yields:
        Rows, ends and numbers of paths, shape (n,), by row and end: all pairs with at least `least` paths.
    """
    for batch in _batches(graph, rows, skipped, sizes, within, width):
        yield _pairs(batch, width, least)


def _pairs(batch: "_Batch", width: int, least: int) -> tuple[Ints, Ints, Ints]:
    places, counts = batch.counted(least)
    row, end = np.divmod(places, width)
    return batch.rows[row], end, counts


def table_of_paths(
    graph: Ranked, rows: Ints, skipped: Numbers | int, sizes: Numbers, within: Numbers, width: int
) -> Numbers:
    """Count such paths for all pairs of a row and an end: shape (r, width); see `count_paths`."""
    table = np.zeros((len(rows), width), dtype=np.int32)
    for batch in _batches(graph, rows, skipped, sizes, within, width):
        first = int(np.searchsorted(rows, batch.rows[0]))
        flat = table[first : first + len(batch.rows)].reshape(-1)
        if batch.many:
            flat += batch.counters()
        else:
            places, counts = batch.counted(1)
            flat[places] = counts
    return table


def count_closed(graph: Ranked, rows: Ints, sizes: Numbers, within: Numbers, width: int) -> int:
    """Count the paths from a row over one of its first neighbors that end at another of these.

    Args:
        graph: see `count_paths`.
        rows: see `count_paths`.
        sizes: shape (r,), how many neighbors of a row are in question, from its first.
        within: see `count_paths`.
        width: see `count_paths`.
    """
    closed = 0
    for batch in _batches(graph, rows, 0, sizes, within, width):
        wanted = batch.local + batch.over.astype(np.uint32)
        if batch.many:
            closed += int(batch.counters()[wanted].sum())
        else:
            ends = batch.ends()
            closed += int(np.searchsorted(ends, wanted, side="right").sum())
            closed -= int(np.searchsorted(ends, wanted, side="left").sum())
    return closed


@dataclass(frozen=True)
class _Batch:
    """Some rows and their neighbors. Each row has a place for every end: its number times the width, plus it.

    Args:
        graph: see `count_paths`.
        rows: shape (r,).
        over: shape (n,), the neighbors in question of each row after the other.
        local: shape (n,), the place of the row and of node 0.
        within: see `count_paths`.
        places: number of places.
        many: whether a counter for every place takes less than all paths, sorted.
    """

    graph: Ranked
    rows: Ints
    over: Numbers
    local: Words
    within: Numbers
    places: int
    many: bool

    def ends(self) -> Words:
        """Return the places of the ends of all paths, ascending."""
        order = self._by_part()
        ends = self._ends(self.over[order], self.local[order])
        ends.sort()
        return ends

    def counted(self, least: int) -> tuple[Ints, Ints]:
        """Return the places with at least `least` paths, ascending, and their numbers of paths."""
        if not self.many:
            return _repeated(self.ends(), least)
        counters = self.counters()
        places = np.flatnonzero(counters >= least)
        return places, counters[places].astype(np.int64)

    def counters(self) -> Numbers:
        """Count the paths by place: shape (places,)."""
        order = self._by_part()
        over, local = self.over[order], self.local[order]
        counters = np.zeros(self.places, dtype=np.int32)
        for run in runs(self.within[over], _PATHS):
            add_often(counters, self._ends(over[run], local[run]))
        return counters

    def _by_part(self) -> Ints:
        """Return an order of the neighbors in which each part of the graph is read once: shape (n,)."""
        return np.argsort(self.graph.part_of(self.over).astype(np.uint16), kind="stable")

    def _ends(self, over: Numbers, local: Words) -> Words:
        """Return the places of the ends of paths over some neighbors, whose parts ascend, in no order."""
        sizes, end = self.within[over], 0
        places = np.repeat(local, sizes)
        for ends in self.graph.ranges(over, 0, sizes):
            places[end : end + len(ends)] += ends.view(np.uint32)
            end += len(ends)
        return places


def _batches(
    graph: Ranked, rows: Ints, skipped: Numbers | int, sizes: Numbers, within: Numbers, width: int
) -> Iterator[_Batch]:
    """Take several rows together, so that parts of the graph are read less often; see `count_paths`.

    Where rows have few paths, these are sorted by both ends. Where they have many, there is a counter for
    every node.
    """
    skipped, most = np.broadcast_to(skipped, rows.shape), (1 << 32) // max(1, width)
    for some in runs(sizes, _MIDDLES):
        over = graph.joined_ranges(rows[some], skipped[some], sizes[some])
        bounds = np.append(0, np.cumsum(sizes[some]))
        paths = np.diff(np.append(0, np.cumsum(within[over], dtype=np.int64))[bounds])
        many = paths >= max(_FEW, width // 4)
        turns = np.flatnonzero(many[1:] != many[:-1]) + 1
        for start, end in zip([0, *turns.tolist()], [*turns.tolist(), len(paths)], strict=True):
            weights = np.full(end - start, width) if many[start] else paths[start:end]
            for run in runs(weights, _PATHS, most):
                first, last = start + run.start, start + run.stop
                numbers = np.arange(last - first, dtype=np.uint32) * np.uint32(width)
                yield _Batch(
                    graph,
                    rows[some][first:last],
                    over[bounds[first] : bounds[last]],
                    np.repeat(numbers, sizes[some][first:last]),
                    within,
                    (last - first) * width,
                    bool(many[start]),
                )


def runs(sizes: Ints | Numbers, most: int, longest: int = 1 << 62) -> Iterator[slice]:
    """Cut a sequence into runs of at most `longest`, whose sizes add up to at most `most`; or runs of one."""
    ends, start = np.cumsum(sizes, dtype=np.int64), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = min(int(np.searchsorted(ends, before + most, side="right")), start + longest)
        yield slice(start, max(end, start + 1))
        start = max(end, start + 1)


def _repeated(places: Words, least: int) -> tuple[Ints, Ints]:
    """Return the places that occur at least `least` times among ascending ones, and how often they do."""
    hits = places[np.flatnonzero(places[least - 1 :] == places[: max(0, len(places) - least + 1)])]
    begins = np.flatnonzero(np.append(True, hits[1:] != hits[:-1])[: len(hits)])
    return hits[begins].astype(np.int64), np.diff(np.append(begins, len(hits))) + least - 1
