"""The answer of the k-centers: the largest group first, and coordinates without digits that mean nothing."""

import numpy as np

from core.centers.found import Centers
from core.centers.space import Space
from core.domain import Grid


def test_the_largest_group_is_first_and_coordinates_are_rounded():
    grid = Grid((0.0, 0.0), (100.0, 100.0), 0.05)
    space = Space(grid)
    steps = np.array([[1287, 40], [20, 1001], [3, 3]])
    positions = (steps - space.middle) << space.bits
    result = Centers(space, positions, np.ones(3), np.array([5, 70, -2])).result(grid)
    assert result.counts == (70, 5, 0)
    assert result.centers == ((1.0, 50.05), (64.35, 2.0), (0.15, 0.15))


def test_a_center_between_grid_points_keeps_finer_digits():
    grid = Grid((0.0,), (1e6,), 100.0)
    space = Space(grid)
    between = ((np.array([[3]]) - space.middle) << space.bits) + (1 << space.bits) // 4
    result = Centers(space, between, np.ones(1), np.array([1])).result(grid)
    assert result.centers == ((325.0,),)
