"""Spanning trees: costs and smooth sensitivities against brute force on all weights of small graphs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.graphs.cuts import Cuts
from core.mechanisms.smooth_bound import FLOOR, smooth_bound
from tests.core.graphs.test_edges import edges

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
    return cuts, np.array([c.cost for c in cuts])


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
        patch.setattr("core.graphs.cuts._EXACT", 100 if small else 0)
        cuts, cost = costs(pairs, [weights, other], cap)
        here, there = (smooth_bound(c.local, cap, beta) for c in cuts)
    assert abs(math.log(here / there)) <= beta + 1e-9
    assert abs(cost[0] - cost[1]) <= min(here, there) + 1e-9


@pytest.mark.parametrize("seed", range(4, 8))
def test_forests_bound_what_cuts_show(seed):
    """Random weights, most of which are far apart: the bound covers the exact figure within k changes."""
    rng, cap = np.random.default_rng(seed), 200
    pairs = list(itertools.combinations(range(6), 2))
    (cuts,), _ = costs(pairs, [rng.choice([0, 1, 100], len(pairs))], cap)
    assert all(cuts._by_forests(k) >= cuts._by_cuts(k, 0.0) for k in range(1, 6))
