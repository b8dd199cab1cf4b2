"""From a level to a point: four leaves about a node."""

import math

import pytest

from core.interior_point.level_up import LevelUp
from tests.core.seeded import SeededNoise


def test_four_leaves_about_a_node():
    up = LevelUp.of(1.0, 1.0, 1e-3, 1)
    points = [8] * 100 + [11] * 100
    quiet = SeededNoise(0, factor=1e-9)
    assert up.find(points, points, 4, 2, quiet) in range(8, 12)
    assert up.find([8] * 200, [8] * 200, 4, 4, quiet) == 8
    assert up.find([8] * 200, [8] * 200, 4, 9, quiet) == 8
    assert up.find([1], [1], 4, 2, quiet) is None


@pytest.mark.parametrize("at", [8, 9, 10, 11])
def test_records_at_any_of_the_four_leaves_have_it(at):
    """No other leaf is an interior point of records that are all equal."""
    up = LevelUp.of(1.0, 1.0, 1e-3, 1)
    assert up.find([at] * 200, [at] * 200, 4, 2, SeededNoise(0, factor=1e-9)) == at


def test_both_draws_spend_what_they_are_given():
    up = LevelUp.of(0.4, 0.7, 1e-5, 3)
    node, leaf = up.node.cost, up.leaf.cost
    assert node.epsilon == pytest.approx(0.4) and node.delta <= 1e-5
    assert (leaf.epsilon, leaf.delta) == (pytest.approx(0.7), 0)


@pytest.mark.parametrize(("node", "leaf"), [(0.5, 0.5), (50.0, 0.01), (0.01, 50.0)])
@pytest.mark.parametrize("failure", [0.3, 1e-4])
def test_a_node_and_a_leaf_that_are_deep_enough_fail_with_half_of_the_failure_each(node, leaf, failure):
    """One heavy node against nothing, and one leaf so deep against three of depth 0."""
    up = LevelUp.of(node, leaf, 1e-6, 1)
    depth = up.depth_needed(failure)
    assert 3 * math.exp(-depth / up.leaf.scale) <= failure / 2
    assert math.exp(-(depth - up.node.nothing) / up.node.scale) <= failure / 2
