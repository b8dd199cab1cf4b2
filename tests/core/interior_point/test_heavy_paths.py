"""TreeLog and HeavyPaths: the lemmas that privacy rests on, on random neighbors, and the noise drawn."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from core.budget import Budget
from core.gaps import Order
from core.interior_point.heavy_paths import HeavyPaths, bits_of, heavy_paths
from core.interior_point.plan import candidate
from core.interior_point.tree_log import LevelUp, depth_of, tree_log
from core.mechanisms.heavy_path import HeavyPathWalk
from core.mechanisms.random_path import RandomPath
from core.mechanisms.tree_paths import embed, heavier, path, path_to
from core.neighbors import Neighbors
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

REPLACE = Neighbors("replace_one")


def neighbors(rng, bits, n):
    """A database around a random center, from uniform to concentrated, and one with a record replaced."""
    center, size = int(rng.integers(1 << bits)), 1 << bits
    points = [center ^ (int(rng.integers(size)) >> int(rng.integers(bits + 1))) for _ in range(n)]
    other = list(points)
    other[int(rng.integers(n))] = int(rng.integers(size)) if rng.random() < 0.5 else center
    return sorted(points), sorted(other)


def moved(a, b):
    """How many records of `a` are missing in `b`."""
    counts = np.bincount(a, minlength=64) - np.bincount(b, minlength=64)
    return int(np.maximum(counts, 0).sum())


def test_heavy_paths_of_neighbors_embed_as_neighbors_below_theta():
    """8,000 random neighbors: Lemma 4.3 below theta = trim - 2, and Lemma 4.5 always."""
    rng, below = np.random.default_rng(0), 0
    for _ in range(8_000):
        bits, trim = int(rng.integers(3, 7)), int(rng.integers(3, 8))
        pair = neighbors(rng, bits, int(rng.integers(3 * trim + 1, 45)))
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
        pair = neighbors(rng, bits, int(rng.integers(3 * trim + 1, 45)))
        trees = [embed(path(p, bits, trim, heavier), len(p) - trim) for p in pair]
        apart += int(np.bincount(trees[0]).max()) >= trim and moved(*trees) > 1
    assert apart > 0


def test_walks_of_neighbors_are_as_the_proof_says():
    """5,000 random neighbors: sensitivity 1 while paths agree; a parting is passed over or does no harm."""
    rng, parted = np.random.default_rng(1), 0
    for _ in range(5_000):
        bits, stop = int(rng.integers(3, 7)), int(rng.integers(3, 9))
        walk = HeavyPathWalk(
            what="any", threshold_scale=1, query_scale=1, threshold=0, stop=stop, levels=bits
        )
        paths = [path(p, bits, stop, heavier) for p in neighbors(rng, bits, int(rng.integers(stop, 60)))]
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


def test_heavy_paths_keeps_its_margins():
    method = heavy_paths(4096, 1.0, 1e-6, 0.1)
    assert method.trees > 1
    stopping = method.stopping
    assert stopping.large == method.trim - 2
    error = stopping.error(method.trees - 1, 1e-6 / (method.trees + 1))
    assert stopping.large - 1 - error >= stopping.threshold
    assert stopping.cost.delta <= 1e-6 / (method.trees + 1)
    assert replace(stopping, large=stopping.large - 10).cost.delta > stopping.cost.delta
    assert method.trim >= method.walk.stop + method.walk.depth_needed(0.1 / 3)
    assert bits_of(4096, method.trees)[-1] <= 13


@pytest.mark.parametrize("name", ["heavy_paths", "tree_log"])
def test_the_noise_is_as_charged(name):
    """Scales that are drawn give back the epsilons of the plan: half the noise would not."""
    chosen = candidate(name, 1 << 256, 0.1, Budget(1.0, 1e-6), REPLACE, bytes(16))
    noise = RecordingNoise(SeededNoise(1))
    # Every level of the first tree loses as many records, so that the second is needed.
    points = [1 << (i % 256) for i in range(chosen.records_needed)]
    assert chosen.finder.find(Order.of(points), noise) is not None
    drawn = {
        kind: sorted({scale for k, _, scale in noise.calls if k == kind}) for kind in ("laplace", "select")
    }
    method = chosen.finder.finder
    charged = {m.mechanism: m.epsilon for m in chosen.mechanisms}
    if name == "heavy_paths":
        for draw in (method.stopping, method.walk):
            assert {draw.threshold_scale, draw.query_scale} <= set(drawn["laplace"])
            loss = 1 / draw.threshold_scale + 2 / draw.query_scale
            assert loss == pytest.approx(charged[f"{draw.kind}: {draw.what}"])
    else:
        assert 1 / method.path.path_rate == pytest.approx(max(drawn["select"]))
        paths = [m for m in chosen.mechanisms if "path" in m.mechanism]
        assert {m.epsilon for m in paths} == {method.path.cost.epsilon}
        assert {m.delta for m in paths} == {method.path.cost.delta}
        assert len(paths) == depth_of(256)
    up = method.level_up
    assert {up.node.scale, up.leaf.scale} <= {scale for _, _, scale in noise.calls}
    assert charged["choosing mechanism: node of a level"] == pytest.approx(2 / up.node.scale)
    assert charged["exponential mechanism: leaf about a node"] == pytest.approx(2 / up.leaf.scale)
    trees = depth_of(256) if name == "tree_log" else method.trees - 1
    assert sum(m.mechanism.startswith("choosing") for m in chosen.mechanisms) == trees
    # (epsilon, delta') of the choice for one change, and group privacy
    single = 1 / (1 + math.exp((up.node.nothing - 1) / up.node.scale))
    [delta] = {m.delta for m in chosen.mechanisms if m.mechanism.startswith("choosing")}
    assert delta == pytest.approx(single * (1 + math.exp(1 / up.node.scale)))


def path_probabilities(points, bits, trim, rate):
    """Every path of TreeLog and its probability."""
    out = {}

    def go(prefix, level, low, high, p):
        if level == bits or high - low <= trim:
            out[(level, prefix)] = p
            return
        cut = int(np.searchsorted(points, (2 * prefix + 1) << (bits - level - 1)))
        left, right = cut - low, high - cut
        chance = 1.0 if not left else 0.0 if not right else 1 / (1 + math.exp(rate * (left - right)))
        if chance < 1:
            go(2 * prefix, level + 1, low, cut, p * (1 - chance))
        if chance > 0:
            go(2 * prefix + 1, level + 1, cut, high, p * chance)

    go(0, 0, 0, len(points), 1.0)
    return out


def test_random_paths_cost_what_is_charged_and_more_than_their_rate():
    """Exact probabilities on neighbors: the bound holds, and a cost of twice the rate is exceeded (F6)."""
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(1500):
        bits, trim = int(rng.integers(3, 7)), int(rng.integers(5, 9))
        pair = neighbors(rng, bits, int(rng.integers(2 * trim, 200)))
        n = len(pair[0])
        rate = 2 * math.log(n) / trim
        cost = RandomPath(what="any", path_rate=rate, records=n, trim=trim).cost
        a, b = (path_probabilities(p, bits, trim, rate) for p in pair)
        excess = 0.0
        for (level, prefix), p in a.items():
            q = sum(
                value
                for (other, end), value in b.items()
                if end >> max(0, other - level) == prefix >> max(0, level - other)
            )
            excess += max(0.0, p - math.exp(cost.epsilon) * q)
            if q > 0 and p > 1e-6:
                worst = max(worst, math.log(p / q) / rate)
        assert excess <= cost.delta + 1e-12
    assert worst > 1.5


def test_four_leaves_about_a_node():
    up = LevelUp.of(1.0, 1.0, 1e-3, 1)
    points = [8] * 100 + [11] * 100
    quiet = SeededNoise(0, factor=1e-9)
    assert up.find(points, points, 4, 2, quiet) in range(8, 12)
    assert up.find([8] * 200, [8] * 200, 4, 4, quiet) == 8
    assert up.find([8] * 200, [8] * 200, 4, 9, quiet) == 8
    assert up.find([1], [1], 4, 2, quiet) is None


def test_of_more_records_the_smallest_are_used():
    """An interior point of them is one of all, and the noise is made for no more."""
    method, noise = tree_log(16, 1.0, 1e-6, 0.1), RecordingNoise(SeededNoise(0))
    most = method.path.records
    assert method.find(Order.of([7] * most + [9000] * 10**5), noise) == 7
    assert max(int(values.sum()) for _, values, _ in noise.calls) <= 2 * most
    assert method.find(Order.of([7] * (3 * method.path.trim)), noise) is None


def test_a_path_that_stops_too_late_for_its_proof_is_not_free():
    path_ = RandomPath(what="any", path_rate=0.1, records=1000, trim=138)
    assert 2 * math.log(1000) / 0.1 > 138
    assert path_.cost.epsilon == math.inf
    assert replace(path_, trim=139).cost.epsilon < 2.0


def test_universes_shrink_to_their_logarithm():
    assert [depth_of(bits) for bits in (3, 4, 16, 64, 256, 4096)] == [0, 1, 2, 2, 3, 3]
    assert bits_of(4096, 4) == [4096, 13, 4, 3]
    needs = [HeavyPaths.of(64, trees, 1.0, 1e-6, (0.3, 0.4), 0.1).records_needed(0.1) for trees in (1, 2)]
    assert needs[1] < needs[0]


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
