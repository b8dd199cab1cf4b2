"""HeavyPaths: the margins of its proof, and the noise that it and TreeLog draw."""

import math
from dataclasses import replace

import pytest

from core.gaps import Order
from core.interior_point.heavy_paths import HeavyPaths, bits_of
from core.interior_point.tree_log import depth_of
from tests.core.interior_point.universe import planned
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


def test_heavy_paths_keeps_its_margins():
    method = HeavyPaths.calibrated(4096, 1.0, 1e-6, 0.1)
    assert method.trees > 1
    stopping = method.stopping
    assert stopping.large == method.trim - 2
    error = stopping.error(method.trees - 1, 1e-6 / (method.trees + 1))
    assert stopping.large - 1 - error >= stopping.threshold
    assert stopping.cost.delta <= 1e-6 / (method.trees + 1)
    assert replace(stopping, large=stopping.large - 10).cost.delta > stopping.cost.delta
    assert method.trim >= method.walk.stop + method.walk.depth_needed(0.1 / 3)
    assert bits_of(4096, method.trees)[-1] <= 13


@pytest.mark.parametrize("shares", [(0.2, 0.3), (0.4, 0.5)])
def test_every_part_of_a_way_has_its_share_of_failure_and_budget(shares):
    """Also where little of epsilon is left for the way back up. The walk may be down the first tree, too."""
    method, failure, delta = HeavyPaths.of(64, 2, 1.0, 1e-6, shares, 0.1), 0.1, 1e-6
    assert method.walk.levels == 64
    assert method.trim >= method.level_up.depth_needed(failure / 3)
    assert method.trim >= method.walk.stop + method.walk.depth_needed(failure / 3)
    costs = [draw.cost for draw in method.draws()]
    assert sum(cost.epsilon for cost in costs) <= 1 + 1e-9
    assert sum(cost.delta for cost in costs) <= delta


@pytest.mark.parametrize("bits", [3, 20, 4096])
def test_some_level_is_as_frequent_as_the_walk_needs(bits):
    """However the records that are left are spread over all levels of the last tree."""
    method = HeavyPaths.calibrated(bits, 1.0, 1e-6, 0.1)
    left = method.records_needed(0.1) - 3 * method.trim * method.trees
    levels = bits_of(bits, method.trees)[-1] + 1
    assert -(-left // levels) >= method.walk.depth_needed(0.1 / 3)


@pytest.mark.parametrize("name", ["heavy_paths", "tree_log"])
def test_the_noise_is_as_charged(name):
    """Scales that are drawn give back the epsilons of the plan: half the noise would not."""
    plan = planned(name, 1 << 256)
    method = plan.rounds[0].finder
    noise = RecordingNoise(SeededNoise(1))
    # Every level of the first tree loses as many records, so that the second is needed.
    points = [1 << (i % 256) for i in range(plan.promises["records_needed"])]
    assert method.find(Order.of(points), noise) is not None
    drawn = {
        kind: sorted({scale for k, _, scale in noise.calls if k == kind}) for kind in ("laplace", "select")
    }
    charged = {m.mechanism: m.epsilon for m in plan.mechanisms}
    if name == "heavy_paths":
        for draw in (method.stopping, method.walk):
            assert {draw.threshold_scale, draw.query_scale} <= set(drawn["laplace"])
            loss = 1 / draw.threshold_scale + 2 / draw.query_scale
            assert loss == pytest.approx(charged[f"{draw.kind}: {draw.what}"])
    else:
        assert 1 / method.path.path_rate == pytest.approx(max(drawn["select"]))
        paths = [m for m in plan.mechanisms if "path" in m.mechanism]
        assert {m.epsilon for m in paths} == {method.path.cost.epsilon}
        assert {m.delta for m in paths} == {method.path.cost.delta}
        assert len(paths) == depth_of(256)
    up = method.level_up
    assert {up.node.scale, up.leaf.scale} <= {scale for _, _, scale in noise.calls}
    assert charged["choosing mechanism: node of a level"] == pytest.approx(2 / up.node.scale)
    assert charged["exponential mechanism: leaf about a node"] == pytest.approx(2 / up.leaf.scale)
    trees = depth_of(256) if name == "tree_log" else method.trees - 1
    assert sum(m.mechanism.startswith("choosing") for m in plan.mechanisms) == trees
    # (epsilon, delta') of the choice for one change, and group privacy
    single = 1 / (1 + math.exp((up.node.nothing - 1) / up.node.scale))
    [delta] = {m.delta for m in plan.mechanisms if m.mechanism.startswith("choosing")}
    assert delta == pytest.approx(single * (1 + math.exp(1 / up.node.scale)))


def test_a_second_tree_saves_records():
    assert bits_of(4096, 4) == [4096, 13, 4, 3]
    needs = [HeavyPaths.of(64, trees, 1.0, 1e-6, (0.3, 0.4), 0.1).records_needed(0.1) for trees in (1, 2)]
    assert needs[1] < needs[0]
