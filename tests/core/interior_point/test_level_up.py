"""From a level to a point: four leaves about a node."""

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
