"""Count common neighbors of pairs of nodes, where they can matter, and corners of triangles."""

import numpy as np
from numpy.typing import NDArray

from core.graphs.paths import count_closed, count_paths, table_of_paths
from core.graphs.ranked import Ranked
from core.graphs.wedges import Wedges

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Floats = NDArray[np.float32]

_SEED = 256  # nodes that are paired with each other first, and rows that are multiplied at a time
_CORE = 1 << 15  # most nodes whose pairs are counted by products of dense matrices
_DENSE = 1 / 16  # part of the pairs of a core that have an edge
_FLOATS = 1 << 20  # numbers held at a time


def examine_part(graph: Ranked, nodes: int, part: int, parts: int) -> Wedges:
    """Find what `parts` workers together find out about all pairs of the `nodes` possible nodes.

    Nodes come by falling degree, and each is paired with those before it. The heaviest nodes that have edges
    among many of their pairs are the core, at least `_SEED` nodes. Each part looks at every pair of the first
    `_SEED` nodes, and shares out all others by the later node. What is left out is in none of the sums of
    `Wedges`, so the total of all parts does not depend on their number.
    """
    core = core_size(graph)
    found = _count_core(graph, core, part, parts)
    found = _count_others(graph, core, part, parts, found)
    corners = found.corners + _corners(graph, core, part, parts)
    if part == 0:
        alone = _sum_without_common(graph, int(found.sums.max(initial=-1)), nodes > graph.nodes)
        found += Wedges.of(0, np.zeros(1, dtype=np.int64), np.array([alone]))
    return Wedges(corners, found.common, found.sums)


def core_size(graph: Ranked) -> int:
    """Return the largest number of first nodes of whose pairs `_DENSE` have an edge; at least `_SEED`."""
    first = np.arange(min(graph.nodes, _CORE))
    dense = np.flatnonzero(
        np.cumsum(graph.heavier[:_CORE], dtype=np.int64) >= _DENSE * first * (first + 1) / 2
    )
    return min(graph.nodes, max(_SEED, int(dense.max(initial=0)) + 1))


def _count_core(graph: Ranked, core: int, part: int, parts: int) -> Wedges:
    """Count for pairs of the core, in blocks of `_SEED` later nodes."""
    found, within = Wedges.none(), np.zeros(graph.nodes, dtype=np.int32)
    graph.count_neighbors(within, 0, core)
    for number, start in enumerate(range(0, core, _SEED)):
        if number % parts == part or number == 0:
            found = _count_block(graph, start, min(start + _SEED, core), within, core, found)
            if number == 0 and part > 0:
                found = Wedges(0, found.common, found.sums)
    return found


def _count_block(graph: Ranked, start: int, end: int, within: Numbers, core: int, found: Wedges) -> Wedges:
    """Count for pairs of some nodes of the core with those before them, where they can matter beside `found`.

    Paths over the core are counted by a product of matrices, and others one by one. A product is exact,
    because float32 holds all integers up to 2^24.
    """
    degrees, height = graph.degrees, max(_SEED, _FLOATS // core)
    rows, skipped = np.arange(start, end), within[start:end]
    others = table_of_paths(graph, rows, skipped, degrees[start:end] - skipped, within, core)
    later = _dense(graph, start, end, within, core)
    for left in range(0, end, height):
        right = min(left + height, end)
        common = (later @ _dense(graph, left, right, within, core).T).astype(np.int32)
        joined = later[:, left:right] > 0
        before = np.arange(left, right) < rows[:, None]
        corners = int(common[joined & before].sum(dtype=np.int64))
        common += others[:, left:right]
        least = found.least(int(degrees[start]) + int(degrees[left]))
        j, i = np.nonzero(before & (common >= least))
        sums = degrees[start + j].astype(np.int64) + degrees[left + i] - 2 * joined[j, i]
        counts = common[j, i].astype(np.int64)
        matter = sums > found.reached(counts)
        found += Wedges.of(corners, counts[matter], sums[matter])
    return found


def _dense(graph: Ranked, start: int, end: int, within: Numbers, core: int) -> Floats:
    """Return the edges of some nodes within the core: shape (end - start, core)."""
    sizes = within[start:end]
    matrix = np.zeros((end - start, core), dtype=np.float32)
    columns = graph.joined_ranges(np.arange(start, end), 0, sizes)
    matrix[np.repeat(np.arange(end - start), sizes), columns] = 1
    return matrix


def _count_others(graph: Ranked, core: int, part: int, parts: int, found: Wedges) -> Wedges:
    """Count for pairs whose later node j is not in the core, where they can matter beside `found`.

    For a pair of nodes i < j, of degrees d_i >= d_j:

    1. 2 a + b is d_i + d_j, or 2 less if i and j are joined by an edge. a is at most d_j.
    2. Let M(a) be the largest 2 a + b of the pairs found so far that have at least a common neighbors. The
       pair matters only if d_i + d_j > M(a). So it needs d_i + d_j > M(d_j), which only the first nodes i
       have. They also need a >= t, the least number with M(t) < d_0 + d_j.
    3. Of t common neighbors at least t - h are not among the h heaviest neighbors of j. So paths over those,
       which are the most numerous, need not be counted, unless the pair has t - h others.
    """
    degrees, width, within, start = graph.degrees, 0, np.zeros(graph.nodes, dtype=np.int32), core
    while start < graph.nodes:
        light = int(degrees[start])
        rivals = graph.above(int(found.reached(np.array([light]))[0]) - light)
        if rivals == 0:
            break
        end = min(graph.end_after(start), start + max(_SEED, start // 2))
        before, width = width, min(rivals, end)
        if width < before:
            before, within = 0, np.zeros(graph.nodes, dtype=np.int32)
        graph.count_neighbors(within, before, width)
        least = max(1, found.least(int(degrees[0]) + light))
        skipped = least // 3
        rows = np.arange(start + (part - start) % parts, end, parts)
        sizes = np.maximum(degrees[rows] - skipped, 0)
        for j, i, counts in count_paths(graph, rows, skipped, sizes, within, width, least - skipped):
            sums = degrees[i].astype(np.int64) + degrees[j]
            matter = (i < j) & (sums > found.reached(np.minimum(counts + skipped, degrees[j])))
            i, j, counts, sums = i[matter], j[matter], counts[matter], sums[matter]
            for place in range(skipped):
                counts += graph.joined(i, graph.joined_ranges(j, place, np.ones_like(j)))
            sums -= 2 * graph.joined(i, j)
            found += Wedges.of(0, counts, sums)
        start = end
    return found


def _corners(graph: Ranked, core: int, part: int, parts: int) -> int:
    """Count the triangles that are not in the core at their corner of lowest degree, three for each."""
    heavier, start, corners = graph.heavier, core, 0
    while start < graph.nodes:
        end = graph.end_after(start)
        rows = np.arange(start + (part - start) % parts, end, parts)
        corners += 3 * count_closed(graph, rows, heavier[rows], heavier, end)
        start = end
    return corners


def _sum_without_common(graph: Ranked, enough: int, spare: bool) -> int:
    """Find the largest 2 a + b, above `enough`, of a pair without common neighbors (a = 0); else -1.

    Pairs are tried by descending sum of degrees. A pair without common neighbors has a sum of at most the
    number of nodes, so larger sums are skipped. `spare` says whether there is a node without edges.
    """
    degrees, nodes = graph.degrees, graph.nodes
    best = int(degrees.max(initial=0)) if spare else -1
    for i in range(nodes - 1):
        degree = int(degrees[i])
        if degree + int(degrees[i + 1]) <= max(best, enough):
            break
        if degree + int(degrees[-1]) > nodes:
            continue
        apart = np.ones(nodes, dtype=np.bool_)
        (over,) = graph.rows(i, i + 1)
        for neighbors in graph.ranges(over, 0, degrees[over]):
            apart[neighbors] = False
        apart[: i + 1] = False
        joined = over[apart[over]]  # the first one has the highest degree, and so has `free`
        apart[over] = False
        free = int(apart.argmax())
        if len(joined):
            best = max(best, degree + int(degrees[joined[0]]) - 2)
        if apart[free]:
            best = max(best, degree + int(degrees[free]))
    return best if best > enough else -1
