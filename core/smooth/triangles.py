"""Count the triangles of a graph whose rows are edges."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from core.budget import Budget, spend
from core.domain import Grid
from core.neighbors import Neighbors
from core.noise import Noise
from core.plan import Plan
from core.rounds import Block
from core.smooth.bound import smooth_bound
from core.smooth.graphs import Edges, adjacency, check_nodes
from core.smooth.params import Triangles
from core.smooth.release import Answer, SmoothNoise, plan_release

Ints = NDArray[np.int64]

_WEDGES = 1 << 22  # paths of length two held at a time
_MOST = 2**62
_DOUBLING = 50.0  # edges that a pair with many common neighbors takes to have twice as many


@dataclass(frozen=True)
class Wedges:
    """What triangle counts and their sensitivity need.

    Args:
        triangles: number of triangles.
        common: distinct numbers a of common neighbors of a pair of nodes.
        half: for each a, the largest number b of nodes that neighbor exactly one of such a pair, apart
            from the pair.
    """

    triangles: int
    common: Ints
    half: Ints

    def local(self, changes: int, nodes: int) -> int:
        """Return A(s), the largest local sensitivity within s edges; see `CountTriangles`."""
        reached = self.common + (changes + np.minimum(changes, self.half)) // 2
        return int(min(int(reached.max()), max(0, nodes - 2)))


def count_wedges(edges: Edges, nodes: int) -> Wedges:
    """Count triangles and, for all pairs of the `nodes` possible nodes, common and half-common neighbors.

    Time is the number of paths of length two; memory 16 bytes an edge and a constant.
    """
    u, v, here = edges.compact()
    graph = adjacency(u, v, here)
    degrees = np.diff(graph.indptr).astype(np.int64)
    best = np.full(int(degrees.max(initial=0)) + 1, -1, dtype=np.int64)
    closed = 0
    for rows in _chunks(degrees, graph):
        paths = (graph[rows] @ graph).tocoo()
        i, j, common = rows[paths.coords[0]], paths.coords[1], paths.data
        apart = i != j
        i, j, common = i[apart], j[apart], common[apart]
        joined = np.asarray(graph[i, j]).ravel() if len(i) else common
        closed += int(common[joined > 0].sum())
        np.maximum.at(best, common, degrees[i] + degrees[j] - 2 * common - 2 * joined)
    best[0] = _largest_without_common(graph, degrees, nodes > here)
    some = np.flatnonzero(best >= 0)
    return Wedges(closed // 6, some, best[some])


def _chunks(degrees: Ints, graph: csr_array) -> Iterator[Ints]:
    """Split the nodes so that each part starts about `_WEDGES` paths of length two."""
    paths = np.cumsum(graph @ degrees) // _WEDGES
    for part in np.unique(paths):
        yield np.flatnonzero(paths == part)


def _largest_without_common(graph: csr_array, degrees: Ints, spare: bool) -> int:
    """Find the largest number of half-common neighbors of a pair without common ones.

    Pairs are tried by descending sum of degrees; `spare` tells of a node without edges.
    """
    order = np.argsort(-degrees, kind="stable")
    best = int(degrees.max(initial=0)) if spare else -1
    for place, i in enumerate(order[:-1].tolist()):
        if degrees[i] + degrees[order[place + 1]] <= best:
            break
        near = np.zeros(len(degrees), dtype=np.bool_)
        near[(graph[[i]] @ graph).indices] = True
        others = order[place + 1 :]
        others = others[~near[others]]
        joined = np.zeros(len(degrees), dtype=np.int64)
        joined[graph[[i]].indices] = 2
        best = max(best, int((degrees[i] + degrees[others] - joined[others]).max(initial=-1)))
    return best


@dataclass(frozen=True)
class CountTriangles:
    """Release the number of triangles with noise by its smooth sensitivity, one edge more or less.

    For a pair of nodes let a be the number of their common neighbors and b the number of nodes that neighbor
    exactly one of them. Changing the edge between them changes a triangles, and s other edges can raise a by
    floor((s + min(s, b)) / 2), at most to nodes - 2:

        A(s) = max over pairs of min(a + floor((s + min(s, b)) / 2), nodes - 2)

    (Nissim, Raskhodnikova and Smith 2007, Claim 3.13). Exact; per distinct a only the largest b matters.

    Args:
        nodes: number of possible nodes, public.
        smooth: the draws.
    """

    nodes: int
    smooth: SmoothNoise
    name: str = "release"
    floor: None = None

    def summarize(self, block: Block, state: None) -> Edges:
        """Collect the edges."""
        return Edges.of(block.points)

    def release(self, aggregate: Edges, state: None, noise: Noise) -> Answer:
        """Release the count, and the scale of its noise where that is paid for."""
        wedges = count_wedges(aggregate, self.nodes)
        bound = self.sensitivity(wedges)
        most = min(_MOST, self.nodes * (self.nodes - 1) * (self.nodes - 2) // 6)
        value = self.smooth.value(wedges.triangles, bound, 0, most, noise)
        return Answer(float(value), self.smooth.scale(bound, noise))

    def sensitivity(self, wedges: Wedges) -> float:
        """Compute the smooth sensitivity."""
        beta = self.smooth.noise.beta
        return smooth_bound(lambda s, _: wedges.local(s, self.nodes), max(0, self.nodes - 2), beta)


def plan_triangles(grid: Grid, params: Triangles, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the triangle count: one round, the edge list on one node (16 bytes an edge).

    Args:
        grid: two equal axes, whose points are the ids that a node may have.
        params: noise.
        budget: what the run may spend.
        neighbors: `add_or_remove_one` is one edge more or less; a replaced one is two such changes.
        salt: not used: nothing is sampled.

    Raises:
        ValueError: the grid is none of edges, or the noise does not fit the budget.
    """
    check_nodes(grid, "triangles", 2)
    nodes = grid.extents[0] + 1
    smooth, mechanisms = plan_release(params, budget, neighbors.moves, _DOUBLING)
    return Plan(
        method="smooth",
        rounds=(CountTriangles(nodes, smooth),),
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={},
        failure=params.failure,
        notes=(
            "A row more or less is an edge more or less: an edge is hidden, not a node with all its edges.",
            "The edge list is brought to one node: 16 bytes an edge, and time for every path of two edges.",
        ),
    )
