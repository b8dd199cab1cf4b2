"""Which points balls hold, exactly, and balls that come back from a release."""

import math
from dataclasses import asdict

import numpy as np
import pytest

from core.balls import Balls
from core.domain import Ball, Grid
from core.k_cover.found import Cover
from core.one_cluster.found import Found


def unit_cube(d, step=2.0**-10):
    return Grid((0.0,) * d, (1.0,) * d, step)


def test_balls_hold_what_is_at_most_their_radius_away():
    rng = np.random.default_rng(0)
    points, centers = rng.integers(0, 50, (3000, 3)), rng.integers(0, 50, (4, 3))
    radii = np.array([0, 7, 13, 20])
    held = Balls(centers, radii).hold(points)
    brute = [
        any(sum((int(a) - int(b)) ** 2 for a, b in zip(p, c, strict=True)) <= int(r) ** 2
            for c, r in zip(centers, radii, strict=True))
        for p in points
    ]  # fmt: skip
    assert held.tolist() == brute
    assert 0 < held.sum() < len(points)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_largest_domain_does_not_wrap(d):
    side = float(math.isqrt((2**62 - 1) // d)) if d > 1 else 2.0**31 - 1
    grid = Grid((0.0,) * d, (side,) * d, 1.0)
    corners = np.array([[0] * d, grid.extents])
    ball = {"center": [0.0] * d, "radius": float(grid.diameter + 1)}
    assert Balls.of(grid, [ball]).hold(corners).all()
    assert Balls.of(grid, [ball | {"radius": 1.0}]).hold(corners).tolist() == [True, False]


@pytest.mark.parametrize(
    "grid", [unit_cube(3), Grid((-90.0, -180.0), (90.0, 180.0), 1e-3, Ball((0.0, 0.0), 10.0))]
)
def test_released_balls_come_back_exactly(grid):
    """Also centers outside the domain's ball: it moves records, not centers."""
    rng = np.random.default_rng(1)
    found = [
        Found(rng.integers(0, np.asarray(grid.extents) + 1), int(rng.integers(0, grid.diameter)), 5)
        for _ in range(100)
    ]
    back = Balls.of(grid, asdict(Cover(tuple(found)).result(grid))["balls"])
    assert back.centers.tolist() == [ball.center.tolist() for ball in found]
    assert back.radii.tolist() == [ball.radius for ball in found]


@pytest.mark.parametrize(
    "balls",
    [
        [],
        [{"center": [0.5], "radius": 0.1}],
        [{"center": [0.5, 2.0], "radius": 0.1}],
        [{"center": [0.5, math.nan], "radius": 0.1}],
        [{"center": [0.5, 0.5], "radius": -1.0}],
        [{"center": [0.5, 0.5], "radius": 99.0}],
    ],
)
def test_balls_of_another_grid_are_refused(balls):
    with pytest.raises(ValueError, match="balls: each"):
        Balls.of(unit_cube(2), balls)
