"""TreeLog: how far universes shrink, which records are used, what may fail, and what trees embed."""

import math

import numpy as np
import pytest

from core.gaps import Order
from core.interior_point.heavy_paths import HeavyPaths
from core.interior_point.tree_log import SMALL, TreeLog, depth_of
from core.mechanisms.tree_paths import embed
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


def test_of_more_records_the_smallest_are_used():
    """An interior point of them is one of all, and the noise is made for no more."""
    method, noise = TreeLog.calibrated(16, 1.0, 1e-6, 0.1), RecordingNoise(SeededNoise(0))
    most = method.path.records
    assert method.find(Order.of([7] * most + [9000] * 10**5), noise) == 7
    assert max(int(values.sum()) for _, values, _ in noise.calls) <= 2 * most
    assert method.find(Order.of([7] * (3 * method.path.trim)), noise) is None


def test_universes_shrink_to_their_logarithm():
    assert [depth_of(bits) for bits in (3, 4, 16, 64, 256, 4096)] == [0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("failure", [0.3, 1e-6])
@pytest.mark.parametrize("bits", [2, 16, 4096])
def test_every_level_and_the_base_fail_with_a_part_of_the_failure(bits, failure):
    """Of the records that are left for the base, a point outside has none, and some point has half."""
    method, levels = TreeLog.calibrated(bits, 1.0, 1e-6, failure), depth_of(bits)
    part, left = failure / (levels + 1), method.path.records - 3 * method.path.trim * levels
    assert 2**SMALL * math.exp(-left / 2 / method.base.scale) <= part * (1 + 1e-9)
    assert method.path.trim >= method.level_up.depth_needed(part) or not levels
    costs = [draw.cost for draw in method.draws()]
    assert sum(cost.epsilon for cost in costs[1:]) * levels + costs[0].epsilon <= 1 + 1e-9
    assert sum(cost.delta for cost in costs[1:]) * levels <= 1e-6 * (1 + 1e-9)
    assert 2 / method.base.scale == pytest.approx(costs[0].epsilon)


@pytest.mark.parametrize("bits", [6, 256])
@pytest.mark.parametrize("kind", [TreeLog, HeavyPaths])
def test_nothing_is_drawn_where_trees_would_be_left_without_records(kind, bits):
    method, noise = kind.calibrated(bits, 1.0, 1e-6, 0.1), RecordingNoise(SeededNoise(0))
    few = 3 * (method.path.trim if kind is TreeLog else method.trim * method.trees)
    assert method.find(Order.of([7] * few), noise) is None and not noise.calls


@pytest.mark.parametrize("kind", [TreeLog, HeavyPaths])
def test_levels_are_those_of_all_records_but_extremes_and_as_many_as_a_path_stops_at(kind, monkeypatch):
    """Only so many of them are levels of neighbors wherever two paths stop."""
    embedded = []

    def noted(nodes, size):
        embedded.append((nodes[0].weight, size))
        return embed(nodes, size)

    monkeypatch.setattr(f"{kind.__module__}.embed", noted)
    method = kind.calibrated(256, 1.0, 1e-6, 0.1)
    trim = method.path.trim if kind is TreeLog else method.trim
    records = method.records_needed(0.1)
    points = np.sort(np.random.default_rng(0).integers(0, 1 << 62, records))
    method.find(Order.of(points.tolist()), SeededNoise(0))
    number = depth_of(256) if kind is TreeLog else method.trees - 1
    assert embedded == [(records - (3 * i + 2) * trim, records - 3 * (i + 1) * trim) for i in range(number)]
