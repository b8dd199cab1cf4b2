"""Edges merge free of order, each with its least weight."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.graphs import components
from core.graphs import edges as module
from core.graphs.cuts import Cuts
from core.graphs.edges import Edges, WeightedEdges, compact


def edges(rows, axes=3):
    points = np.array(rows, dtype=np.int64).reshape(-1, axes)
    return WeightedEdges.of(points) if axes == 3 else Edges.of(points)


def edges_of(rows):
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


rows_of_edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=30)


@given(rows_of_edges, rows_of_edges, rows_of_edges)
def test_edges_merge_free_of_order(a, b, c):
    for kind in (edges, lambda rows: Edges.of(edges_of(rows))):
        x, y, z = kind(a), kind(b), kind(c)
        assert (x + y) + z == x + (z + y)
        assert x + kind([]) == kind([]) + x == x
        assert x + y == kind([*b, *a])


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


@given(rows_of_edges)
def test_edges_without_weights_are_the_distinct_ones(rows):
    found = Edges.of(edges_of(rows))
    assert np.array_equal(found.keys, edges(rows).keys)
    u, v, nodes = compact(found.keys)
    ids = np.unique(np.append(found.keys >> 31, found.keys % 2**31))
    assert nodes == len(ids)
    assert np.array_equal((ids[u] << 31) + ids[v], found.keys)


def test_edges_of_far_ids_are_numbered_too():
    rows = [(2**31 - 2, 5), (5, 2**31 - 1), (7, 2**31 - 2)]
    u, v, nodes = compact(edges(rows, 2).keys)
    assert (u.tolist(), v.tolist(), nodes) == ([0, 0, 1], [2, 3, 2], 4)


@pytest.mark.parametrize(("crowded", "looked_at"), [(0, 1 << 17), (1, 1 << 17), (3, 1 << 17), (1, 1)])
@pytest.mark.parametrize("seed", range(10))
def test_a_forest_of_forests_is_the_forest(monkeypatch, crowded, looked_at, seed):
    """However rows are split, with other weights of the same edge among them; and few edges are kept."""
    monkeypatch.setattr(components, "_MOST", looked_at)
    monkeypatch.setattr(module, "_MANY", 10)
    monkeypatch.setattr(module, "_CROWDED", crowded)
    rng, cap = np.random.default_rng(seed), 30
    rows = np.column_stack([rng.integers(0, 25, (600, 2)), rng.integers(0, cap + 1, 600)])
    parts = [WeightedEdges.of(part, forest=True) for part in np.array_split(rows, 7)]
    left = sum(parts[1:], parts[0])
    right = parts[6] + (parts[2] + (parts[5] + parts[0])) + (parts[1] + parts[4] + parts[3])
    assert max(len(left.keys), len(right.keys)) <= max(10, 25 * crowded, 24)
    whole, *others = (Cuts.of(each, cap) for each in (WeightedEdges.of(rows), left, right))
    for other in others:
        assert (other.cost, other.graph.nodes) == (whole.cost, whole.graph.nodes)
        for found, wanted in zip(other.tree.whole(), whole.tree.whole(), strict=True):
            assert np.array_equal(found, wanted)
