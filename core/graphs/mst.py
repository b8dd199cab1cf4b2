"""Release the cost of a minimum spanning tree of a graph whose rows are weighted edges."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from core.budget import Budget, spend
from core.domain import Grid
from core.draws import Charged, Draw, Laplace, charged
from core.graphs.edges import Edges, check_nodes, labels
from core.graphs.params import MstCost
from core.mechanisms.smooth_bound import smooth_bound
from core.mechanisms.smooth_noise import Answer, SmoothNoise, plan_release
from core.neighbors import Neighbors
from core.noise import Noise
from core.plan import Plan
from core.rounds import Block

Ints = NDArray[np.int64]

_EXACT = 100  # nodes up to which cuts are minimized exactly
_DOUBLING = 10.0  # weights to change until the local sensitivity doubles


@dataclass(frozen=True)
class Cuts:
    """A weighted graph, its minimum spanning forest, and how light its cuts are.

    For a cut U of a component let w_t(U) be its t-th lightest edge, `cap` where it has fewer. The largest
    local sensitivity within k weights is

        A(k) = max over U of max(w_(k+1)(U), w_(k+2)(U) - w_1(U))

    (Nissim, Raskhodnikova and Smith 2007, Section 3.2). With W_e(k) the least w at which more than k
    edges of weight at most w must be cut to part the ends of the tree edge e, this is the maximum over e of
    W_e(k) and W_e(k+1) - w(e), as every cut parts some tree edge.

    Args:
        u: shape (m,), one end of each edge, 0, ..., nodes - 1.
        v: shape (m,), the other end.
        weights: shape (m,), in 0, ..., cap; edges ascend by weight, equal ones by their ends.
        nodes: number of nodes that occur.
        cap: largest weight.
    """

    u: Ints
    v: Ints
    weights: Ints
    nodes: int
    cap: int

    @classmethod
    def of(cls, edges: Edges, cap: int) -> "Cuts":
        """Order the edges."""
        u, v, nodes = edges.compact()
        order = np.argsort(edges.weights, kind="stable")
        return cls(u[order], v[order], edges.weights[order], nodes, cap)

    @cached_property
    def components(self) -> int:
        """Number of connected components among the nodes that occur."""
        return int(labels(self.u, self.v, self.nodes).max(initial=-1)) + 1

    @cached_property
    def tree(self) -> Ints:
        """Edges of the minimum spanning forest, as indices."""
        return self._forest(np.arange(len(self.u)))

    def _forest(self, edges: Ints) -> Ints:
        """Minimum spanning forest of some edges; unique, as their order is total."""
        shape = (self.nodes, self.nodes)
        ranks = scipy.sparse.csr_array((edges + 1.0, (self.u[edges], self.v[edges])), shape=shape)
        return np.sort(scipy.sparse.csgraph.minimum_spanning_tree(ranks).data.astype(np.int64) - 1)

    def local(self, changes: int, enough: float) -> float:
        """Return A(changes), or a bound of it; see `smooth_bound`.

        Exact within no change, and on graphs of up to 100 nodes. Otherwise the bound is the heaviest edge
        of the spanning forest number k + 2, `cap` where that spans less than the graph: forest number i is
        the minimum spanning forest of what i - 1 forests leave. Nodes that k + 2 forests of weight at most
        w connect have k + 2 disjoint paths, so w_(k+2)(U) <= w. Removing an edge from a graph changes each of
        what is left by at most one edge, hence lowers the number of forests that connect two nodes by at
        most 1; a changed weight is one removal and one addition: the bound within k + 1 changes of a
        neighbor is no less than this one.
        """
        if changes == 0:
            return self._within_none()
        return self._by_cuts(changes, enough) if self.nodes <= _EXACT else self._by_forests(changes)

    def _within_none(self) -> float:
        """Return the max over tree edges e of w(e), and of its replacement's weight minus w(e)."""
        weights = self.weights[self.tree]
        return int(max(weights.max(initial=0), (self._replacements() - weights).max(initial=0)))

    def _replacements(self) -> Ints:
        """Lightest edge outside of the forest that joins what each tree edge does, or `cap`: shape (tree,).

        Edges outside are taken from the lightest on; each closes a cycle with the path between its ends,
        whose edges are contracted once they have their replacement.
        """
        here, roots = self.tree, np.unique(labels(self.u, self.v, self.nodes), return_index=True)[1]
        top = self.nodes  # a node above one root of each component
        rows = np.concatenate([self.u[here], np.full(len(roots), top)])
        columns = np.concatenate([self.v[here], roots])
        forest = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(top + 1, top + 1))
        order, parents = scipy.sparse.csgraph.breadth_first_order(forest, top, directed=False)
        depth = np.zeros(top + 1, dtype=np.int64)
        for node in order[1:].tolist():
            depth[node] = depth[parents[node]] + 1
        parent, deep = parents.tolist(), depth.tolist()
        replaced, above = [self.cap] * (top + 1), list(range(top + 1))

        def uncovered(node: int) -> int:
            while above[node] != node:
                above[node] = above[above[node]]
                node = above[node]
            return node

        outside = np.setdiff1d(np.arange(len(self.u)), here)
        for a, b, weight in zip(
            self.u[outside].tolist(), self.v[outside].tolist(), self.weights[outside].tolist(), strict=True
        ):
            a, b = uncovered(a), uncovered(b)
            while a != b:
                if deep[a] < deep[b]:
                    a, b = b, a
                replaced[a], above[a] = weight, parent[a]
                a = uncovered(a)
        lower_end = np.where(depth[self.u[here]] > depth[self.v[here]], self.u[here], self.v[here])
        return np.array(replaced, dtype=np.int64)[lower_end]

    def _by_forests(self, changes: int) -> float:
        left = np.arange(len(self.u))
        for _ in range(changes + 2):
            forest = self._forest(left)
            if len(forest) < len(self.tree):
                return self.cap
            left = np.setdiff1d(left, forest, assume_unique=True)
        return int(self.weights[forest].max(initial=0))

    def _by_cuts(self, changes: int, enough: float) -> float:
        best = math.floor(enough)
        for edge in self.tree.tolist():
            best = max(best, self._reaches(edge, changes, best))
            own = int(self.weights[edge])
            best = max(best, self._reaches(edge, changes + 1, best + own) - own)
        return best

    def _reaches(self, edge: int, cut: int, start: int) -> int:
        """W_e(cut), or `start` where that is no more."""
        distinct = np.unique(np.append(self.weights, self.cap))
        if start >= self.cap or self._connectivity(edge, start) > cut:
            return start
        low, high = int(np.searchsorted(distinct, start, side="right")), len(distinct) - 1
        while low < high:
            middle = (low + high) // 2
            enough = self._connectivity(edge, int(distinct[middle])) > cut
            low, high = (low, middle) if enough else (middle + 1, high)
        return int(distinct[low])

    def _connectivity(self, edge: int, heaviest: int) -> int:
        """Fewest edges of weight at most `heaviest` to cut to part the ends of an edge."""
        some = int(np.searchsorted(self.weights, heaviest, side="right"))
        rows, columns = np.append(self.u[:some], self.v[:some]), np.append(self.v[:some], self.u[:some])
        shape = (self.nodes, self.nodes)
        network = scipy.sparse.csr_array((np.ones(2 * some, dtype=np.int32), (rows, columns)), shape=shape)
        flow = scipy.sparse.csgraph.maximum_flow(network, int(self.u[edge]), int(self.v[edge]))
        return int(flow.flow_value)


@dataclass(frozen=True, kw_only=True)
class SpanningCost:
    """Collect the edges, and the cost of their minimum spanning tree.

    With `public`, nodes and edges are public, and the cost is that of a spanning forest. Otherwise every id
    is a node and a missing edge weighs `cap`: an edge more or less is a changed weight.

    Args:
        grid: of u, v and weight.
        public: whether only weights are private.
    """

    grid: Grid
    public: bool
    name: str = "release"
    floor: None = None

    @property
    def cap(self) -> int:
        """Largest weight, grid steps."""
        return self.grid.extents[2]

    def summarize(self, block: Block, state: None) -> Edges:
        """Collect the edges."""
        return Edges.of(block.points)

    def missing(self, cuts: Cuts) -> int:
        """Edges that join what the edges at hand leave apart; none where the edges are public."""
        ids = self.grid.extents[0] + 1
        return 0 if self.public else ids - cuts.nodes + cuts.components - 1

    def cost(self, cuts: Cuts) -> tuple[int, int]:
        """Cost of the spanning tree above its edges' lower bounds, grid steps, and their public number."""
        missing = self.missing(cuts)
        return int(cuts.weights[cuts.tree].sum()) + self.cap * missing, len(cuts.tree) + missing

    def restored(self, value: int, edges: int, scale: float | None) -> Answer:
        """Return the answer in data units."""
        kept, step = min(max(value, 0), self.cap * edges), self.grid.step
        return Answer(kept * step + edges * self.grid.lower[2], None if scale is None else scale * step)


@dataclass(frozen=True, kw_only=True)
class SmoothCost(SpanningCost):
    """Release the cost with noise by its smooth sensitivity, one weight changed.

    Args:
        smooth: the draws.
    """

    smooth: SmoothNoise

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.smooth.draws()

    def release(self, aggregate: Edges, state: None, noise: Noise) -> Answer:
        """Release the cost, and the scale of its noise where that is paid for."""
        cuts = Cuts.of(aggregate, self.cap)
        cost, edges = self.cost(cuts)
        bound = self.sensitivity(cuts)
        value = self.smooth.value(cost, bound, 0, self.cap * edges, noise)
        return self.restored(value, edges, self.smooth.scale(bound, noise))

    def sensitivity(self, cuts: Cuts) -> float:
        """Compute the smooth sensitivity, grid steps; `cap` where a missing edge is in the tree."""
        beta = self.smooth.noise.beta
        if self.missing(cuts) > 0:
            return float(self.cap)
        return smooth_bound(cuts.local, self.cap if len(cuts.tree) else 0, beta)


@dataclass(frozen=True, kw_only=True)
class GlobalCost(SpanningCost):
    """Release the cost with discrete Laplace noise: one weight moves it by at most `cap`.

    Args:
        total: noise of the cost, grid steps.
    """

    total: Laplace

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.total,)

    def release(self, aggregate: Edges, state: None, noise: Noise) -> Answer:
        """Release the cost and the public scale of its noise."""
        cost, edges = self.cost(Cuts.of(aggregate, self.cap))
        value = int(self.total.add(np.array([cost], dtype=np.int64), noise)[0])
        return self.restored(value, edges, self.total.scale)


def plan_mst_cost(grid: Grid, params: MstCost, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the cost of a minimum spanning tree: one round, the edge list on one node (16 bytes an edge).

    `auto` is the global sensitivity: a node with a single edge alone makes the smooth one at least half of
    it. It promises `error`, in data units; the smooth one's depends on the data.

    Args:
        grid: two equal axes, whose points are the ids that a node may have, and the weights.
        params: what a row may change, and the noise.
        budget: what the run may spend.
        neighbors: `add_or_remove_one` is one edge more or less, hence one weight that becomes or was the
            upper bound; a replaced edge is two such changes; under `change: weight` a replaced row is one
            change.
        salt: not used: nothing is sampled.

    Raises:
        ValueError: the grid is none of weighted edges, public edges are to be added or removed, or the noise
            does not fit the budget.
    """
    check_nodes(grid, "mst_cost", 3)
    public = params.change == "weight"
    if public and neighbors.name == "add_or_remove_one":
        raise ValueError(
            "params.change is weight, with privacy.neighbors add_or_remove_one: public edges are "
            "neither added nor removed, so neighbors must be replace_one."
        )
    changes = neighbors.count() if public else neighbors.moves
    method = "global" if params.method == "auto" else params.method
    total = Laplace.of("cost", budget.epsilon, changes * grid.extents[2])
    error = math.ceil(total.scale * math.log(1 / params.failure)) * grid.step
    step: Charged = GlobalCost(grid=grid, public=public, total=total)
    if method == "smooth":
        step = plan_release(
            params,
            budget,
            changes,
            _DOUBLING,
            lambda smooth: SmoothCost(grid=grid, public=public, smooth=smooth),
        )
    mechanisms = charged((step,))
    other = "smooth" if method == "global" else "global"
    means = (
        "Nodes and edges are taken for public, and released through the cost."
        if public
        else "An edge is hidden, not a node with all of its edges; every id is a node, and a missing edge "
        "weighs the upper bound."
    )
    return Plan(
        method=method,
        rounds=(step,),
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={"error": error if method == "global" else None},
        failure=params.failure,
        alternatives={other: {"error": None if method == "global" else error}},
        notes=(means, "The edge list is brought to one node: 16 bytes an edge."),
        hides="the weight of one row; its nodes, and every edge, are public" if public else None,
    )
