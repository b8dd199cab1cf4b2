"""Triangles and spanning trees: counts and smooth sensitivities against brute force on all small graphs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.budget import Budget
from core.domain import Ball, Grid
from core.graphs.edges import Edges
from core.graphs.mst import Cuts, plan_mst_cost
from core.graphs.params import MstCost, Triangles
from core.graphs.triangles import count_wedges, plan_triangles
from core.mechanisms.smooth_bound import FLOOR, smooth_bound
from core.neighbors import Neighbors
from core.rounds import Block, run_in_memory
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
PURE = Budget(1.0, 0.0)
QUIET = Budget(1e6, 0.0)


def edges(rows, axes=3):
    return Edges.of(np.array(rows, dtype=np.int64).reshape(-1, axes))


def ids(nodes):
    return Grid((0.0, 0.0), (nodes - 1.0, nodes - 1.0), 1.0)


def weighted(nodes, cap, lower=0.0):
    return Grid((0.0, 0.0, lower), (nodes - 1.0, nodes - 1.0, lower + cap), 1.0)


def released(plan, rows, axes, seed=0):
    points = np.array(rows, dtype=np.int64).reshape(-1, axes)
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    return run_in_memory(plan.rounds, [block], plan.start, SeededNoise(seed))


rows_of_edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=30)


@given(rows_of_edges, rows_of_edges, rows_of_edges)
def test_edges_merge_free_of_order(a, b, c):
    a, b, c = edges(a), edges(b), edges(c)
    assert (a + b) + c == a + (c + b)
    assert a + edges([]) == a


@given(rows_of_edges)
def test_edges_are_the_lightest_of_the_rows(rows):
    lightest = {}
    for u, v, weight in rows:
        if u != v:
            key = (min(u, v), max(u, v))
            lightest[key] = min(weight, lightest.get(key, weight))
    found = edges(rows)
    ends = zip((found.keys >> 31).tolist(), (found.keys % 2**31).tolist(), strict=True)
    assert dict(zip(ends, found.weights.tolist(), strict=True)) == lightest


def all_graphs(nodes):
    pairs = list(itertools.combinations(range(nodes), 2))
    return pairs, [[e for i, e in enumerate(pairs) if bits >> i & 1] for bits in range(1 << len(pairs))]


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_triangles_equal_brute_force(nodes):
    """Every graph: count, A(s) for all s, and the smooth sensitivity."""
    pairs, graphs = all_graphs(nodes)
    wedges = [count_wedges(edges(graph, 2), nodes) for graph in graphs]
    counted = np.array([w.triangles for w in wedges])
    for graph, count in zip(graphs, counted, strict=True):
        present = set(graph)
        corners = itertools.combinations(range(nodes), 3)
        assert count == sum(set(itertools.combinations(c, 2)) <= present for c in corners)
    index = np.arange(len(graphs))
    local = np.max([np.abs(counted - counted[index ^ (1 << i)]) for i in range(len(pairs))], axis=0)
    changed = np.array([bin(i).count("1") for i in index])
    for here in index[:: max(1, len(index) // 300)]:
        distance = changed[index ^ here]
        for s in range(len(pairs) + 1):
            assert wedges[here].local(s, nodes) == local[distance <= s].max()
        for beta in (0.05, 0.4):
            smooth = smooth_bound(lambda s, _, w=wedges[here]: w.local(s, nodes), nodes - 2, beta)
            assert smooth == pytest.approx(max(FLOOR, (np.exp(-beta * distance) * local).max()))


def test_triangles_of_a_star_and_of_spare_nodes():
    """A hub and a leaf have no common neighbor but many half-common ones; so have a hub and an unused id."""
    star = edges([(0, leaf) for leaf in range(1, 8)], 2)
    for nodes, half in ((8, 6), (9, 7)):
        wedges = count_wedges(star, nodes)
        assert wedges.triangles == 0
        assert dict(zip(wedges.common.tolist(), wedges.half.tolist(), strict=True)) == {0: half, 1: 0}
    assert count_wedges(edges([], 2), 5).local(4, 5) == 2


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("paths", [50, 1 << 22])
def test_triangles_of_random_graphs_though_most_pairs_are_left_out(monkeypatch, exponent, paths):
    """Count and A(s) against all pairs, with many like nodes and with few that have most of the edges."""
    monkeypatch.setattr("core.graphs.triangles._WEDGES", paths)
    monkeypatch.setattr("core.graphs.triangles._FEW", 4)
    rng, nodes = np.random.default_rng(0), 120
    likely = np.arange(1, nodes + 1) ** -exponent
    rows = rng.choice(nodes, (900, 2), p=likely / likely.sum())
    rows[rows == 7] = 8  # an id that does not occur
    matrix = np.zeros((nodes, nodes), dtype=np.int64)
    matrix[rows[:, 0], rows[:, 1]] = 1
    matrix = np.maximum(matrix, matrix.T)
    np.fill_diagonal(matrix, 0)
    found = count_wedges(edges(rows, 2), nodes)
    square, degrees = matrix @ matrix, matrix.sum(axis=0)
    half = degrees[:, None] + degrees[None, :] - 2 * square - 2 * matrix
    assert found.triangles == (square * matrix).sum() // 6
    apart = ~np.eye(nodes, dtype=bool)
    for s in range(2 * nodes):
        exact = (square + (s + np.minimum(s, half)) // 2)[apart].max()
        assert found.local(s, nodes) == min(exact, nodes - 2)
    for a, b in zip(found.common, found.half, strict=True):
        assert b == half[apart & (square == a)].max()
    assert len(found.common) < len(np.unique(square)) or exponent == 0


FAMILIES = [
    list(itertools.combinations(range(4), 2)),  # complete
    [(0, 1), (1, 2), (2, 3), (0, 3)],  # a cycle
    [(0, 1), (1, 2), (0, 2), (2, 3)],  # a triangle and a bridge
    [(0, 1), (2, 3)],  # apart
]


def weightings(pairs, cap):
    return np.array(list(itertools.product(range(cap + 1), repeat=len(pairs))), dtype=np.int64)


def with_weights(pairs, weights):
    return edges([(u, v, w) for (u, v), w in zip(pairs, weights, strict=True)])


def costs(pairs, table, cap):
    cuts = [Cuts.of(with_weights(pairs, weights), cap) for weights in table]
    return cuts, np.array([int(c.weights[c.tree].sum()) for c in cuts])


def kruskal(rows, nodes):
    parent, total = list(range(nodes)), 0

    def root(node):
        while parent[node] != node:
            node = parent[node]
        return node

    for weight, u, v in sorted((w, u, v) for u, v, w in rows):
        if root(u) != root(v):
            parent[root(u)] = root(v)
            total += weight
    return total


@pytest.mark.parametrize("pairs", FAMILIES)
def test_spanning_costs_equal_brute_force(pairs):
    """All weights in 0..3: cost, A(k) for all k, the smooth sensitivity, the forests' bound."""
    cap, table = 3, weightings(pairs, 3)
    cuts, cost = costs(pairs, table, cap)
    base = (cap + 1) ** np.arange(len(pairs) - 1, -1, -1)
    index, local = np.arange(len(table)), np.zeros(len(table), dtype=np.int64)
    for edge, value in itertools.product(range(len(pairs)), range(cap + 1)):
        other = index + (value - table[:, edge]) * base[edge]
        local = np.maximum(local, np.abs(cost - cost[other]))
    for here in np.random.default_rng(0).permutation(len(table))[:50]:
        rows = [(u, v, w) for (u, v), w in zip(pairs, table[here].tolist(), strict=True)]
        assert cost[here] == kruskal(rows, 4)
        distance = (table != table[here]).sum(axis=1)
        for k in range(len(pairs) + 1):
            exact = local[distance <= k].max()
            assert cuts[here].local(k, 0.0) == exact
            assert cuts[here]._by_forests(k) >= exact
        for beta in (0.05, 0.5, 2.0):
            expected = max(FLOOR, (np.exp(-beta * distance) * local).max())
            assert smooth_bound(cuts[here].local, cap, beta) == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 9), st.sampled_from([0.1, 0.7]), st.booleans())
def test_both_bounds_of_spanning_costs_are_smooth(seed, nodes, beta, small):
    """Random dense graphs and one other weight; `small` has exact cuts, else forests bound them."""
    rng, cap = np.random.default_rng(seed), 20
    pairs = [e for e in itertools.combinations(range(nodes), 2) if rng.uniform() < 0.9]
    weights = rng.integers(0, cap + 1, len(pairs))
    other = weights.copy()
    other[rng.integers(len(pairs))] = rng.integers(0, cap + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.graphs.mst._EXACT", 100 if small else 0)
        cuts, cost = costs(pairs, [weights, other], cap)
        here, there = (smooth_bound(c.local, cap, beta) for c in cuts)
    assert abs(math.log(here / there)) <= beta + 1e-9
    assert abs(cost[0] - cost[1]) <= min(here, there) + 1e-9


def test_a_missing_edge_weighs_the_upper_bound():
    """With private edges, an edge of the largest weight and none are the same; a lost node costs one."""
    grid, rows = weighted(5, 9), [(0, 1, 2), (1, 2, 3), (2, 3, 1), (3, 4, 2), (4, 0, 7), (1, 3, 4)]
    (step,) = plan_mst_cost(grid, MstCost(method="smooth"), PURE, ADD, b"").rounds
    with_it, without = (Cuts.of(edges(r), 9) for r in ([*rows, (0, 2, 9)], rows))
    assert step.cost(with_it) == step.cost(without) == (8, 4)
    assert step.sensitivity(with_it) == step.sensitivity(without) < 9
    apart = Cuts.of(edges(rows[:3]), 9)
    assert step.cost(apart) == (6 + 9, 4)
    assert step.sensitivity(apart) == 9
    assert step.cost(Cuts.of(edges([]), 9)) == (4 * 9, 4)
    (public,) = plan_mst_cost(grid, MstCost(change="weight", method="smooth"), PURE, REPLACE, b"").rounds
    assert public.cost(apart) == (6, 3)
    assert public.sensitivity(Cuts.of(edges([]), 9)) == FLOOR


def test_replacing_public_weights_is_one_change_and_an_edge_two():
    grid = weighted(5, 9)
    one = plan_mst_cost(grid, MstCost(change="weight", method="smooth"), PURE, REPLACE, b"")
    two = plan_mst_cost(grid, MstCost(method="smooth"), PURE, REPLACE, b"")
    value, scale = one.mechanisms
    assert value.epsilon == pytest.approx(0.9, rel=1e-3)
    assert scale.epsilon == pytest.approx(0.1, rel=1e-3)
    assert two.mechanisms[0].epsilon == pytest.approx(0.9, rel=1e-3)
    assert two.rounds[0].smooth.noise.cost_of_one().epsilon == pytest.approx(0.45, rel=1e-3)
    assert two.rounds[0].smooth.noise.alpha < 0.6 * one.rounds[0].smooth.noise.alpha


@pytest.mark.parametrize("budget", [PURE, Budget(0.2, 1e-9), Budget(2.0, 1e-5)])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("noise", ["auto", "cauchy", "student", "laplace"])
def test_the_budget_is_spent_and_no_more(budget, relation, noise):
    if noise == "laplace" and budget.delta == 0:
        with pytest.raises(ValueError, match="noise is laplace"):
            plan_triangles(ids(50), Triangles(noise=noise), budget, relation, b"")
        return
    for plan in (
        plan_triangles(ids(50), Triangles(noise=noise), budget, relation, b""),
        plan_mst_cost(
            weighted(50, 9), MstCost(method="smooth", noise=noise, scale_share=0), budget, relation, b""
        ),
    ):
        assert 0.995 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
        assert sum(m.delta for m in plan.mechanisms) <= budget.delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("change", "relation", "changes"), [("edge", ADD, 1), ("edge", REPLACE, 2), ("weight", REPLACE, 1)]
)
def test_the_global_noise_is_what_the_worst_edge_needs(change, relation, changes):
    """A bridge of weight 0 that becomes one of weight 9: the loss of one changed weight is the charge."""
    plan = plan_mst_cost(weighted(4, 9), MstCost(change=change), PURE, relation, b"")
    assert plan.method == "global"
    drawn = []
    for weight in (0, 9):
        noise = RecordingNoise(SeededNoise(0))
        points = np.array([(0, 1, weight), (1, 2, 3), (2, 3, 3)])
        block = Block(points, np.arange(3, dtype=np.uint64))
        answer = run_in_memory(plan.rounds, [block], None, noise)
        ((_, value, scale),) = noise.calls
        drawn.append(int(value[0]))
        assert answer.scale == scale
    assert changes * abs(drawn[0] - drawn[1]) / scale == pytest.approx(plan.spend.epsilon) == 1.0
    assert plan.promises["error"] == math.ceil(changes * 9 * math.log(10))


def test_answers_without_noise_to_speak_of():
    rows = [(u, v) for u, v in itertools.combinations(range(9), 2)]
    plan = plan_triangles(ids(9), Triangles(), QUIET, ADD, b"")
    assert released(plan, rows, 2).result(ids(9))["value"] == 84
    grid = weighted(5, 9, lower=-3.0)
    tree = plan_mst_cost(grid, MstCost(method="smooth"), QUIET, ADD, b"")
    rows = [(0, 1, 2), (1, 2, 3), (2, 3, 1), (3, 4, 2), (4, 0, 7)]
    assert released(tree, rows, 3).value == pytest.approx(8 - 4 * 3)


@pytest.mark.parametrize("rows", [[], [(1, 1, 3)], [(0, 1, 3)], [(0, 1, 9)] * 4])
def test_releases_are_total(rows):
    kinds = itertools.product((("edge", ADD), ("weight", REPLACE)), ("smooth", "global"))
    for (change, relation), method in kinds:
        params = MstCost(change=change, method=method)
        plan = plan_mst_cost(weighted(6, 9), params, PURE, relation, b"")
        assert 0 <= released(plan, rows, 3).value <= 45
    plan = plan_triangles(ids(6), Triangles(), PURE, ADD, b"")
    assert 0 <= released(plan, [row[:2] for row in rows], 2).value <= 20


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: plan_triangles(weighted(5, 9), Triangles(), PURE, ADD, b""), "input.columns"),
        (lambda: plan_mst_cost(ids(5), MstCost(method="smooth"), PURE, ADD, b""), "input.columns"),
        (lambda: plan_triangles(Grid((0, 0), (5, 6), 1.0), Triangles(), PURE, ADD, b""), "domain"),
        (
            lambda: plan_triangles(Grid((0, 0), (5, 5), 1.0, Ball((1, 1), 2.0)), Triangles(), PURE, ADD, b""),
            "domain.ball",
        ),
        (
            lambda: plan_mst_cost(weighted(5, 9), MstCost(change="weight", method="smooth"), PURE, ADD, b""),
            "params.change",
        ),
        (lambda: MstCost(change="node"), "params.change"),
        (lambda: MstCost(method="best"), "params.method"),
        (lambda: Triangles(failure=1.0), "failure"),
    ],
)
def test_bad_parameters_say_so(make, field):
    with pytest.raises(ValueError, match=field.replace(".", r"\.")):
        make()
