"""Rows and edges of any number, made piece by piece; `tests.benchmarks.scale` runs jobs on them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROW_GROUP = 1 << 20
WIDE = 1 << 40
_SPREAD = 0x9E3779B97F4A7C15

Rows = Mapping[str, NDArray[Any]]


def piecewise(make: Callable[[int, int], Rows]) -> Callable[[int], Iterator[Rows]]:
    """Return what makes rows in pieces, given what makes a piece from its first row and its length."""

    def rows(n: int) -> Iterator[Rows]:
        for first in range(0, n, ROW_GROUP):
            yield make(first, min(ROW_GROUP, n - first))

    return rows


def distinct(first: int, n: int) -> Rows:
    """Make integers below 2^40 that all differ, in no order: an odd factor permutes them; and labels."""
    x = (np.arange(first, first + n, dtype=np.uint64) * np.uint64(_SPREAD) & np.uint64(WIDE - 1)).astype(
        np.int64
    )
    noise = np.random.default_rng(first).random(n) < 0.1
    return {"x": x, "label": (x > WIDE // 3) ^ noise}


def visits(first: int, n: int) -> Rows:
    """Make such integers of people, who have ten each."""
    return {**distinct(first, n), "person": np.arange(first, first + n) // 10}


def classes(first: int, n: int) -> Rows:
    """Make such integers in a thousand groups."""
    return {**distinct(first, n), "group": np.arange(first, first + n) % 1000}


def one_person(first: int, n: int) -> Rows:
    """Make such integers, of which 90% are those of one person, as of a placeholder."""
    rows = visits(first, n)
    return {**rows, "person": np.where(rows["x"] % 10 < 9, -1, rows["person"])}


def in_groups(n: int) -> Iterator[Rows]:
    """Make values of n / 10 groups, each with about ten rows."""
    names = group_names(n)
    for first in range(0, n, ROW_GROUP):
        rng, here = np.random.default_rng(first), min(ROW_GROUP, n - first)
        yield {"x": rng.integers(0, 10_001, here), "group": names[rng.integers(0, len(names), here)]}


def group_names(n: int) -> NDArray[np.str_]:
    """Return the names of n / 10 groups."""
    return np.char.add("group-", np.char.zfill(np.arange(n // 10).astype(np.str_), 8))


def clumps(axes: int) -> Callable[[int, int], Rows]:
    """Return what makes points of the unit cube, half of them in ten clumps."""

    def make(first: int, n: int) -> Rows:
        rng = np.random.default_rng(first)
        centers = np.random.default_rng(0).uniform(0.2, 0.8, (10, axes))
        points = rng.random((n, axes))
        dense = centers[rng.integers(0, 10, n // 2)] + rng.normal(0, 0.02, (n // 2, axes))
        points[: n // 2] = dense
        return {f"x{axis}": points[:, axis] for axis in range(axes)}

    return make


def line(first: int, n: int) -> Rows:
    """Make two features and a target that is a linear function of them, with noise."""
    rng = np.random.default_rng(first)
    a, b = rng.random((2, n))
    return {"a": a, "b": b, "y": a + 2 * b + rng.normal(0, 0.1, n)}


def random_edges(m: int) -> Iterator[Rows]:
    """Make m edges between m / 10 nodes, all pairs alike."""
    yield between(nodes(m), m)


def edges_of_many_nodes(m: int) -> Iterator[Rows]:
    """Make m edges between m / 4 nodes, all pairs alike."""
    yield between(m // 4, m)


def between(n: int, m: int) -> Rows:
    """Make m edges between n nodes, all pairs alike."""
    return weighted(*np.random.default_rng(0).integers(0, n, (2, m)))


def edges_of_hubs(m: int) -> Iterator[Rows]:
    """Make m edges between m / 10 nodes, where node number i has a share of i^-0.7 of the ends."""
    likely = np.cumsum(np.arange(1.0, nodes(m) + 1) ** -0.7)
    u, v = np.searchsorted(likely / likely[-1], np.random.default_rng(0).random((2, m)))
    yield weighted(u, v)


def dense_edges(m: int) -> Iterator[Rows]:
    """Make m of the edges between 5,000 nodes."""
    u, v = np.triu_indices(5000, 1)
    some = np.random.default_rng(0).permutation(len(u))[:m]
    yield weighted(u[some], v[some])


def nodes(m: int) -> int:
    """Return the number of nodes of m edges."""
    return max(100, m // 10)


def weighted(u: NDArray[np.int64], v: NDArray[np.int64]) -> Rows:
    """Give edges random weights."""
    return {"u": u, "v": v, "weight": np.random.default_rng(1).integers(0, 1001, len(u))}
