"""Edges by weight in windows, their forests and replacements, against one list and brute force."""

import numpy as np
import pytest

from core.graphs import by_weight, components
from core.graphs.by_weight import ByWeight
from core.graphs.cuts import Cuts
from core.graphs.edges import WeightedEdges
from core.graphs.forests import spanning_forests
from core.graphs.replacements import largest_increase
from core.rounds import total_of
from core.stored import InMemory, Stored
from transforms.spill import Spill

SEEDS = range(12)


@pytest.fixture(params=[(4, 1, 3), (9, 3, 1 << 17), (1 << 18, 64, 2)])
def _small(request, monkeypatch):
    """Windows, samples and looks of few edges."""
    window, apart, most = request.param
    monkeypatch.setattr(by_weight, "_WINDOW", window)
    monkeypatch.setattr(by_weight, "_APART", apart)
    monkeypatch.setattr(components, "_MOST", most)


def rows_of(seed, ids=None):
    """Some graph: sparse or dense, of few or many weights, in one part or several."""
    rng = np.random.default_rng(seed)
    nodes, weights = int(rng.integers(2, 30)), int(rng.choice([1, 3, 1000]))
    m = int(rng.integers(0, nodes * int(rng.choice([1, 8]))))
    rows = np.column_stack([rng.integers(0, nodes, (m, 2)), rng.integers(0, weights, m)])
    if ids is not None:
        rows[:, :2] = np.sort(rng.choice(ids, nodes, replace=False))[rows[:, :2]]
    return rows


def graph_of(rows, shards=5):
    store = Spill()
    edges = WeightedEdges.of(rows)
    return ByWeight.of(total_of(Stored.of(part, store) for part in edges.split(shards)), store), edges


def listed(edges):
    """Return all (weight, u, v), ascending."""
    ends = zip(edges.keys >> 31, edges.keys & (2**31 - 1), strict=True)
    return sorted((int(w), int(u), int(v)) for w, (u, v) in zip(edges.weights, ends, strict=True))


def of_graph(graph, edges):
    """Return all (weight, u, v) of a graph made of `edges`, in its order, with the ids of these."""
    ids = sorted({end for _, *ends in listed(edges) for end in ends})
    ids = ids if graph.numbers == len(ids) else range(graph.numbers)
    return [(w, ids[u], ids[v]) for u, v, w in zip(*(each.tolist() for each in graph.whole()), strict=True)]


def kruskal(some):
    """Return a minimum spanning forest of ascending (weight, u, v), and the others."""
    component, forest, others = {}, [], []
    for w, u, v in some:
        a, b = (component.setdefault(end, {end}) for end in (u, v))
        if a is b:
            others.append((w, u, v))
            continue
        a |= b
        component.update(dict.fromkeys(b, a))
        forest.append((w, u, v))
    return forest, others


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ids", [None, 100, 2**31])
def test_windows_hold_all_edges_from_the_lightest_up(seed, ids):
    graph, edges = graph_of(rows_of(seed, ids))
    expected = listed(edges)
    occur = {end for _, *ends in expected for end in ends}
    assert graph.nodes == len(occur) <= graph.numbers <= 2 * graph.nodes
    assert of_graph(graph, edges) == expected
    assert len(graph) == len(expected) == sum(len(weights) for *_, weights in graph)
    assert [len(weights) for *_, weights in graph] == list(graph.sizes)


@pytest.mark.parametrize("weights", [1, 2, 1000])
def test_windows_are_of_like_size_whatever_the_weights(monkeypatch, weights):
    """Also where all edges weigh the same, they are cut."""
    monkeypatch.setattr(by_weight, "_WINDOW", 1000)
    monkeypatch.setattr(by_weight, "_APART", 8)
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 500, (20_000, 2)), rng.integers(0, weights, 20_000)])
    graph, edges = graph_of(rows)
    assert of_graph(graph, edges) == listed(edges)
    assert len(graph.sizes) == -(-len(edges) // 1000)
    assert max(graph.sizes) < 1400


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("seed", SEEDS)
def test_forests_are_those_of_the_edges_in_none_before(seed):
    graph, edges = graph_of(rows_of(seed, 100))
    left = listed(edges)
    forests = spanning_forests(graph)
    for _ in range(12):
        expected, left = kruskal(left)
        found = next(forests)
        assert of_graph(found, edges) == expected
        assert len(found) == len(expected)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_increase_is_that_of_brute_force(seed):
    """Each edge of the tree is removed, and the tree of what is left compared."""
    cap = 2000
    graph, edges = graph_of(rows_of(seed))
    tree, second = (found for found, _ in zip(spanning_forests(graph), range(2), strict=False))
    every, largest = listed(edges), 0
    cost = sum(w for w, *_ in kruskal(every)[0])
    for edge in of_graph(tree, edges):
        without = kruskal([each for each in every if each != edge])[0]
        lost = cap if len(without) < len(tree) else 0
        largest = max(largest, sum(w for w, *_ in without) + lost - cost)
    assert largest_increase(tree, second, cap) == largest


@pytest.mark.parametrize("seed", SEEDS)
def test_a_graph_in_windows_has_the_costs_and_bounds_of_one_list(monkeypatch, seed):
    rows = rows_of(seed)
    whole = Cuts.of(WeightedEdges.of(rows), 1000)
    expected = [whole.cost, whole.components, *(whole._by_forests(k) for k in range(6)), whole.local(0, 0.0)]
    monkeypatch.setattr(by_weight, "_WINDOW", 5)
    monkeypatch.setattr(by_weight, "_APART", 2)
    parts = total_of(Stored.of(part, InMemory()) for part in WeightedEdges.of(rows).split(7))
    cuts = Cuts.of(parts, 1000, Spill())
    found = [cuts.cost, cuts.components, *(cuts._by_forests(k) for k in range(6)), cuts.local(0, 0.0)]
    assert found == expected


def test_a_long_path_and_a_star_are_rooted():
    """Neither the depth of a tree nor the number of neighbors of a node is a limit."""
    n = 20_000
    path = np.column_stack([np.arange(n), np.arange(1, n + 1), np.arange(n) % 7])
    star = np.column_stack([np.zeros(n, dtype=np.int64), np.arange(1, n + 1), np.arange(n) % 7])
    for rows in (path, path[::-1], star):
        around = np.vstack([rows, [[0, n, 9]]]) if rows is not star else rows
        graph, _ = graph_of(around)
        tree, second = (found for found, _ in zip(spanning_forests(graph), range(2), strict=False))
        assert len(tree) == n
        assert largest_increase(tree, second, 50) == (50 if rows is star else 9)


def test_the_nodes_that_stand_for_components_are_found_through_long_chains():
    """Each edge joins a component to one with a lower number, so that chains grow."""
    n = 300
    found = components.Components(n)
    for node in range(n - 1, 0, -1):
        ends = np.array([node], dtype=np.int32), np.array([node - 1], dtype=np.int32)
        assert found.forest(*ends, 1).tolist() == [0]
        assert found.forest(*ends, 1).tolist() == []
    assert (found.of(np.arange(n, dtype=np.int32)) == 0).all()


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("seed", SEEDS)
def test_weights_and_ids_reach_the_ends_of_their_types(seed):
    rng = np.random.default_rng(seed)
    ids = np.append(np.sort(rng.choice(2**31 - 1, 20, replace=False)), 2**31 - 1)
    weights = rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1], 150)
    graph, edges = graph_of(np.column_stack([ids[rng.integers(0, 21, (150, 2))], weights]))
    assert of_graph(graph, edges) == listed(edges)
    assert of_graph(next(spanning_forests(graph)), edges) == kruskal(listed(edges))[0]
