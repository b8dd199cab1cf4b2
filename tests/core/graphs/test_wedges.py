"""Triangles: counts and smooth sensitivities against brute force on all small graphs."""

import itertools

import numpy as np
import pytest

from core.graphs import common_neighbors, paths, ranked
from core.graphs.common_neighbors import examine_part
from core.graphs.ranked import Ranked
from core.graphs.wedges import Wedges
from core.mechanisms.smooth_bound import FLOOR, smooth_bound
from core.stored import InMemory, Stored
from tests.core.graphs.test_edges import edges


def stored(found):
    """Edges in three parts."""
    first, *others = map(Stored.of, found.split(3))
    return sum(others, first)


def count_wedges(found, nodes, parts=2):
    """What all parts of the counting find together."""
    graph = Ranked.of(stored(found), InMemory())
    first, *others = [examine_part(graph, nodes, part, parts) for part in range(parts)]
    return sum(others, first)


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
            peaks = wedges[here].peaks(nodes, beta)
            some = smooth_bound(lambda s, _, w=wedges[here]: w.local(s, nodes), nodes - 2, beta, peaks)
            assert some == pytest.approx(smooth, rel=1e-12)


def test_triangles_of_a_star_and_of_spare_nodes():
    """A hub and a leaf have no common neighbor but many half-common ones; so have a hub and an unused id."""
    star = edges([(0, leaf) for leaf in range(1, 8)], 2)
    for nodes, half in ((8, 6), (9, 7)):
        wedges = count_wedges(star, nodes)
        assert wedges.triangles == 0
        assert dict(zip(wedges.common.tolist(), wedges.half.tolist(), strict=True)) == {0: half, 1: 0}
    assert count_wedges(edges([], 2), 5).local(4, 5) == 2


def test_pairs_out_of_the_core_are_found_as_those_of_it_are(monkeypatch):
    """Pairs without common neighbors too: a hub and its leaf, and nodes of two components."""
    graphs = [*all_graphs(5)[1][::20], [(0, leaf) for leaf in range(1, 5)], [(0, 1), (1, 2), (3, 4)]]
    within = [count_wedges(edges(graph, 2), nodes) for graph in graphs for nodes in (5, 6)]
    monkeypatch.setattr(common_neighbors, "_SEED", 1)
    monkeypatch.setattr(common_neighbors, "_DENSE", 2.0)  # so the core is one node
    assert within == [count_wedges(edges(graph, 2), nodes) for graph in graphs for nodes in (5, 6)]


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_attained_at_a_peak(seed):
    """For any pairs of nodes, and any smoothness, the peaks give what all numbers of edges give."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 3000))
    common = np.unique(rng.integers(0, nodes - 1, rng.integers(1, 8)))
    half = rng.integers(0, nodes - 1 - common)
    wedges = Wedges(0, common, 2 * common + half)
    for beta in (*(10 ** rng.uniform(-4, 1, 6)), 1 / nodes, 0.5 / nodes, 1e-3):

        def local(s, _):
            return wedges.local(s, nodes)

        peaks = wedges.peaks(nodes, beta)
        assert peaks == sorted(set(peaks))
        all_of_them = smooth_bound(local, nodes - 2, beta)
        assert smooth_bound(local, nodes - 2, beta, peaks) == pytest.approx(all_of_them, rel=1e-12)


def test_a_tiny_epsilon_takes_no_longer():
    wedges = count_wedges(edges([(0, leaf) for leaf in range(1, 300)], 2), 10**7)
    assert len(wedges.peaks(10**7, 1e-9)) <= 2 * len(wedges.common)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("small", [True, False])
def test_triangles_of_random_graphs_though_most_pairs_are_left_out(monkeypatch, exponent, parts, small):
    """Count and A(s) against all pairs, with many like nodes and with few that have most of the edges."""
    if small:  # every piece of the work is cut into many
        monkeypatch.setattr(paths, "_PATHS", 50)
        monkeypatch.setattr(paths, "_FEW", 30)
        monkeypatch.setattr(ranked, "_ROWS", 20)
        for name, value in {"_SEED": 4, "_CORE": 20, "_FLOATS": 60}.items():
            monkeypatch.setattr(common_neighbors, name, value)
    rng, nodes = np.random.default_rng(0), 120
    likely = np.arange(1, nodes + 1) ** -exponent
    rows = rng.choice(nodes, (900, 2), p=likely / likely.sum())
    rows[rows == 7] = 8  # an id that does not occur
    check(rows, nodes, parts)


@pytest.mark.parametrize("seed", range(8))
def test_paths_over_the_heaviest_neighbors_are_left_out_and_counted_where_they_matter(monkeypatch, seed):
    """Hubs have leaves of their own, so no two of them are alike; some light nodes are, with their hubs."""
    monkeypatch.setattr(common_neighbors, "_SEED", 8)
    monkeypatch.setattr(common_neighbors, "_CORE", 8)
    monkeypatch.setattr(ranked, "_ROWS", 60)
    rng, nodes, hubs = np.random.default_rng(seed), 240, 4
    leaves = np.arange(hubs, nodes)
    rows = [np.stack([leaves % hubs, leaves], axis=1), rng.integers(hubs, nodes, (800, 2))]
    for one, alike in enumerate((9, 11, 14)):
        shared = np.append(np.arange(2), rng.choice(leaves, alike, replace=False))
        for node in (nodes - 10 + 2 * one, nodes - 9 + 2 * one):
            rows.append(np.stack([np.full(len(shared), node), shared], axis=1))
    check(np.concatenate(rows), nodes, 1 + seed % 3)


def check(rows, nodes, parts):
    matrix = np.zeros((nodes, nodes), dtype=np.int64)
    matrix[rows[:, 0], rows[:, 1]] = 1
    matrix = np.maximum(matrix, matrix.T)
    np.fill_diagonal(matrix, 0)
    found = count_wedges(edges(rows, 2), nodes, parts)
    square, degrees = matrix @ matrix, matrix.sum(axis=0)
    half = degrees[:, None] + degrees[None, :] - 2 * square - 2 * matrix
    assert found.corners == (square * matrix).sum() // 2
    apart = ~np.eye(nodes, dtype=bool)
    for s in range(2 * nodes):
        exact = (square + (s + np.minimum(s, half)) // 2)[apart].max()
        assert found.local(s, nodes) == min(exact, nodes - 2)
    for a, b in zip(found.common, found.half, strict=True):
        assert b == half[apart & (square == a)].max()
    assert (np.diff(found.common) > 0).all() and (np.diff(found.sums) < 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_findings_merge_free_of_order(seed):
    rng = np.random.default_rng(seed)
    a, b, c = (Wedges.of(3, rng.integers(0, 9, 20), rng.integers(0, 60, 20)) for _ in range(3))
    assert (a + b) + c == c + (a + b) == (b + c) + a
    assert a + a == Wedges(6, a.common, a.sums)
    assert Wedges.none() + a == a
    for total in range(62):
        least = a.least(total)
        reached = a.reached(np.arange(30))
        assert (reached[:least] >= total).all() and reached[least] < total
