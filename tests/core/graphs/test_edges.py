"""Edges merge free of order, each with its least weight."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.graphs.edges import Edges


def edges(rows, axes=3):
    return Edges.of(np.array(rows, dtype=np.int64).reshape(-1, axes))


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
