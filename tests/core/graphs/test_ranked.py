"""The rows of a graph in parts: the neighbors of every node, against sets of them."""

import numpy as np
import pytest

from core.graphs import ranked
from core.graphs.edges import Edges
from core.graphs.ranked import Ranked
from core.stored import InMemory, Stored
from tests.core.graphs.test_edges import edges
from transforms.spill import Place, Spill

LAST = 2**31 - 1
HUB = [(3, leaf) for leaf in range(4, 60)]

GRAPHS = {
    "no edges": [],
    "one edge": [(7, 2)],
    "a node with more neighbors than a part": [*HUB, (4, 5), (5, 6)],
    "two of them": [*HUB, *((2, leaf) for leaf in range(20, 50))],
    "ids near the largest": [(0, LAST), (LAST - 1, LAST), (LAST - 1, 5), (5, LAST), (LAST - 7, 5)],
    "some": np.random.default_rng(0).integers(0, 40, (150, 2)).tolist(),
    "far apart": (np.random.default_rng(1).integers(0, 40, (150, 2)) * 55_000_000).tolist(),
}


def stored(found, parts=3, store=None):
    """Return edges in parts that wait in a store."""
    first, *others = (Stored.of(part, store or InMemory()) for part in found.split(parts))
    return sum(others, first)


def expected(rows):
    """Return the neighbors of every node by rank."""
    near = {}
    for u, v in rows:
        if u != v:
            near.setdefault(u, set()).add(v)
            near.setdefault(v, set()).add(u)
    rank = {node: i for i, node in enumerate(sorted(near, key=lambda node: (-len(near[node]), node)))}
    return [sorted(rank[other] for other in near[node]) for node in rank]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("most", [1, 20, 1 << 20])
@pytest.mark.parametrize("parts", [1, 3, 32])
def test_rows_are_the_neighbors_of_nodes_by_falling_degree(monkeypatch, name, most, parts):
    monkeypatch.setattr(ranked, "_ROWS", most)
    spill, rows = Spill(), expected(GRAPHS[name])
    graph = Ranked.of(stored(edges(GRAPHS[name], 2), parts, spill), spill)
    assert all(isinstance(piece, Place) for piece in graph.parts)
    assert graph.nodes == len(rows)
    assert [row.tolist() for node in range(len(rows)) for row in graph.rows(node, node + 1)] == rows
    assert graph.degrees.tolist() == [len(row) for row in rows]
    assert graph.heavier.tolist() == [sum(other < node for other in row) for node, row in enumerate(rows)]
    assert {each.dtype for each in (graph.degrees, graph.heavier, graph.starts)} == {np.dtype(np.int32)}
    assert graph.cuts.tolist() == sorted({0, *graph.cuts.tolist(), len(rows)})
    for first, end in zip(graph.cuts[:-1].tolist(), graph.cuts[1:].tolist(), strict=True):
        assert end == first + 1 or sum(map(len, rows[first:end])) <= most
        assert graph.end_after(first) == min([c for c in graph.cuts.tolist() if c > end] or [len(rows)])
    for degree in range(60):
        assert graph.above(degree) == sum(len(row) > degree for row in rows)


@pytest.mark.parametrize("most", [1, 20, 1 << 20])
def test_some_neighbors_and_edges_are_found_in_any_part(monkeypatch, most):
    monkeypatch.setattr(ranked, "_ROWS", most)
    rng = np.random.default_rng(2)
    for name in ("some", "two of them"):
        rows = expected(GRAPHS[name])
        graph = Ranked.of(stored(edges(GRAPHS[name], 2)), InMemory())
        nodes = np.sort(rng.integers(0, len(rows), 200))
        skipped = rng.integers(0, graph.degrees[nodes] + 1, dtype=np.int32)
        sizes = rng.integers(0, graph.degrees[nodes] - skipped + 1, dtype=np.int32)
        wanted = [
            neighbor
            for node, first, size in zip(nodes.tolist(), skipped.tolist(), sizes.tolist(), strict=True)
            for neighbor in rows[node][first : first + size]
        ]
        assert graph.joined_ranges(nodes, skipped, sizes).tolist() == wanted
        firsts = [rows[node][0] for node in nodes]
        assert graph.joined_ranges(nodes, 0, np.ones_like(sizes)).tolist() == firsts
        i, j = rng.integers(0, len(rows), (2, 500))
        assert graph.joined(i, j).tolist() == [
            a in rows[b] for a, b in zip(i.tolist(), j.tolist(), strict=True)
        ]


def test_the_order_and_the_number_of_parts_of_the_edges_change_nothing():
    found = edges(GRAPHS["some"], 2)
    whole = Ranked.of(Stored.of(found), InMemory())
    for parts in (2, 7):
        first, *others = map(Stored.of, found.split(parts)[::-1])
        graph = Ranked.of(sum(others, first), InMemory())
        for name in ("degrees", "heavier", "starts", "cuts"):
            assert np.array_equal(getattr(graph, name), getattr(whole, name))
        assert all(map(np.array_equal, graph.parts, whole.parts))


def test_parts_of_edges_have_each_edge_once_and_by_its_key_alone():
    found, fewer = edges(GRAPHS["some"], 2), edges(GRAPHS["some"][:70], 2)
    for shards in (1, 3, 32):
        parts = found.split(shards)
        assert np.array_equal(np.sort(np.concatenate([part.keys for part in parts])), found.keys)
        for part, less in zip(parts, fewer.split(shards), strict=True):
            assert part + less == part and isinstance(less, Edges)
