"""Paths down a tree: on random neighbors, the lemmas that privacy rests on."""

import itertools

import numpy as np

from core.mechanisms.tree_paths import embed, heavier, path, path_to
from tests.core.trees import moved, neighboring


def test_heavy_paths_of_neighbors_embed_as_neighbors_below_theta():
    """8,000 random neighbors: Lemma 4.3 below theta = trim - 2, and Lemma 4.5 always."""
    rng, below = np.random.default_rng(0), 0
    for _ in range(8_000):
        bits, trim = int(rng.integers(3, 7)), int(rng.integers(3, 8))
        pair = neighboring(rng, bits, int(rng.integers(3 * trim + 1, 45)))
        trees = [embed(path(p, bits, trim, heavier), len(p) - trim) for p in pair]
        assert len(trees[0]) == len(trees[1]) == len(pair[0]) - trim
        assert all(tree == sorted(tree) for tree in trees)
        frequent = [int(np.bincount(tree).max()) for tree in trees]
        if frequent[0] < trim - 2:
            below += 1
            assert moved(*trees) <= 1
        if min(frequent) < trim - 2:
            assert abs(frequent[0] - frequent[1]) <= 1
    assert below > 50


def test_above_theta_the_lemma_fails():
    """Power: where two children are heavy, neighbors may turn apart and embed as strangers."""
    rng, apart = np.random.default_rng(0), 0
    for _ in range(3_000):
        bits, trim = int(rng.integers(3, 7)), int(rng.integers(3, 8))
        pair = neighboring(rng, bits, int(rng.integers(3 * trim + 1, 45)))
        trees = [embed(path(p, bits, trim, heavier), len(p) - trim) for p in pair]
        apart += int(np.bincount(trees[0]).max()) >= trim and moved(*trees) > 1
    assert apart > 0


def test_a_path_to_its_own_end_is_the_path():
    rng = np.random.default_rng(4)
    for _ in range(300):
        bits = int(rng.integers(1, 7))
        points = sorted(rng.integers(0, 1 << bits, 20).tolist())
        nodes = path(points, bits, int(rng.integers(0, 8)), lambda left, right: int(rng.integers(2)))
        assert path_to(points, bits, nodes[-1].level, nodes[-1].prefix) == nodes
    assert [n.weight for n in path_to([], 3, 2, 1)] == [0, 0, 0]


def test_paths_follow_the_records():
    points = sorted([0b1010] * 5 + [0b1000] * 2 + [0b0001] * 3)
    nodes = path(points, 4, 1, heavier)
    assert [(n.level, n.prefix, n.weight) for n in nodes] == [
        (0, 0, 10),
        (1, 1, 7),
        (2, 2, 7),
        (3, 5, 5),
        (4, 10, 5),
    ]
    assert embed(nodes, 9) == [0, 0, 0, 2, 2, 4, 4, 4, 4]
    assert list(itertools.accumulate(embed(nodes, 4))) == [0, 0, 0, 2]
