"""The walk down a heavy path: its proof on random neighbors, its margins, and the points it releases."""

from dataclasses import replace

import numpy as np
import pytest

from core.mechanisms.heavy_path import HeavyPathWalk
from core.mechanisms.tree_paths import heavier, path
from tests.core.seeded import SeededNoise
from tests.core.trees import neighboring


def test_walks_of_neighbors_are_as_the_proof_says():
    """5,000 random neighbors: sensitivity 1 while paths agree; a parting is passed over or does no harm."""
    rng, parted = np.random.default_rng(1), 0
    for _ in range(5_000):
        bits, stop = int(rng.integers(3, 7)), int(rng.integers(3, 9))
        walk = HeavyPathWalk(
            what="any", threshold_scale=1, query_scale=1, threshold=0, stop=stop, levels=bits
        )
        paths = [path(p, bits, stop, heavier) for p in neighboring(rng, bits, int(rng.integers(stop, 60)))]
        queries = [[max(0, walk.query(node)) for node in nodes] for nodes in paths]
        queries = [q + [0] * (bits + 1 - len(q)) for q in queries]
        for level in range(bits + 1):
            nodes = [nodes[level] if level < len(nodes) else None for nodes in paths]
            if None in nodes:
                assert max(q for pair in queries for q in pair[level:]) <= 1 or nodes == [None, None]
                break
            if nodes[0].prefix != nodes[1].prefix:
                parted += 1
                before = [q[level - 1] for q in queries]
                assert abs(before[0] - before[1]) <= 1
                if max(p[level - 1].weight for p in paths) > 2 * stop:
                    assert min(before) >= stop - 2
                else:
                    assert max(q for pair in queries for q in pair[level:]) <= 1
                break
            assert abs(queries[0][level] - queries[1][level]) <= 1
    assert parted > 100


@pytest.mark.parametrize("bits", [16, 64])
def test_a_walk_keeps_the_margins_of_its_proof(bits):
    walk = HeavyPathWalk.calibrated("any", 0.5, 1e-7, bits)
    error = walk.error(bits + 1, 1e-7)
    assert walk.threshold - error > 2
    assert walk.stop - 2 > walk.threshold + error
    assert 1 / walk.threshold_scale + 2 / walk.query_scale == pytest.approx(0.5)
    assert walk.cost.epsilon == pytest.approx(0.5)
    assert walk.missed(error + 2, bits + 1) < walk.cost.delta <= 1e-7
    for nearer in (
        replace(walk, stop=walk.stop - 10),
        replace(walk, threshold=walk.threshold - 10),
        replace(walk, query_scale=2 * walk.query_scale),
    ):
        assert nearer.cost.delta > 1.1 * walk.cost.delta
    earlier = replace(walk, stop=2 + walk.threshold + error - 1)
    assert earlier.cost.delta == walk.missed(error - 1, bits + 1) > walk.cost.delta


def test_a_walk_releases_points_between_records():
    walk = HeavyPathWalk.calibrated("any", 1.0, 1e-3, 20)
    need = walk.depth_needed(0.01)
    points = sorted([3] * (need + walk.stop) + [2**19 + 7] * (need + walk.stop))
    for seed in range(20):
        found = walk.point(points, 20, SeededNoise(seed))
        assert found is None or points[0] <= found < points[-1]
    assert walk.point(points, 20, SeededNoise(0, factor=1e-9)) == 2**19 - 1
    assert walk.point([5] * (need + walk.stop), 20, SeededNoise(0, factor=1e-9)) == 5
    assert walk.point([], 20, SeededNoise(0)) is None


@pytest.mark.parametrize("bits", [1, 2, 20])
def test_delta_counts_every_query_of_a_walk(bits, monkeypatch):
    """One of the root and one of each level. So in a tree of one level, one query fewer is half of them."""
    walk = HeavyPathWalk.calibrated("any", 1.0, 1e-3, bits)
    asked = []
    monkeypatch.setattr(HeavyPathWalk, "sampled", lambda _, queries, *more: asked.append(len(queries)))
    walk.point([0] * 10 + [2**bits - 1] * 10, bits, SeededNoise(0))
    margin = min(walk.threshold - 3, walk.stop - 2 - walk.threshold)
    assert asked == [bits + 1]
    assert walk.cost.delta == walk.missed(margin, asked[0]) > walk.missed(margin, asked[0] - 1)


def test_few_records_ask_for_0_and_show_no_point_whatever_the_noise(monkeypatch):
    walk, asked = HeavyPathWalk.calibrated("any", 1.0, 1e-3, 20), []
    monkeypatch.setattr(HeavyPathWalk, "sampled", lambda _, queries, *more: asked.append(queries) or 0)
    assert walk.point([3] * (walk.stop - 1), 20, SeededNoise(0)) is None
    assert asked == [[0] * 21]
