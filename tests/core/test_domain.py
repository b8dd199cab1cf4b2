import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain import Ball, Grid

GRID = Grid((-90.0, -180.0), (90.0, 180.0), 0.001)


def test_quantize_clamps_and_rounds():
    values = np.array([[0.0, 0.0], [1000.0, -1000.0], [0.0004, 0.0006]])
    assert GRID.quantize(values).tolist() == [[90_000, 180_000], [180_000, 0], [90_000, 180_001]]


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_restore_is_within_half_a_step(lat, lon):
    point = np.array([[lat, lon]])
    assert np.abs(GRID.restore(GRID.quantize(point)) - point).max() <= 0.0005 + 1e-9


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3))
def test_ball_bounds_every_point(values):
    grid = Grid((-10.0,) * 3, (10.0,) * 3, 0.25, Ball((1.0, 0.0, -1.0), 3.0))
    steps = grid.quantize(np.array([values]))[0]
    assert np.linalg.norm(steps - np.array(grid.bounding_center)) <= grid.bounding_radius
    assert grid.bounding_radius <= 3.0 / 0.25 + math.sqrt(3) + 1


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_bounding_radius_holds_the_box(lat, lon):
    steps = GRID.quantize(np.array([[lat, lon]]))[0]
    assert np.linalg.norm(steps - np.array(GRID.bounding_center)) <= GRID.bounding_radius


def test_range_that_is_no_multiple_of_the_step_stays_inside():
    grid = Grid((0.0,), (1.0,), 0.3)
    assert grid.extents == (3,)
    assert grid.quantize(np.array([[1.0]])).tolist() == [[3]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (((1.0,), (0.0,), 0.1), "must be below domain.upper"),
        (((0.0,), (float("nan"),), 0.1), "finite"),
        (((0.0,), (1.0,), 2.0), "larger than the range"),
        (((0.0,), (1.0,), 0.0), "domain.step is 0.0"),
        (((0.0,), (1.0,), float("inf")), "domain.step is inf"),
        (((0.0,), (1e6,), 1e-6), "too large"),
        (((0.0,) * 8, (1.0,) * 8, 2.0**-30), "too large"),
        (((0.0, 0.0), (1.0,), 0.1), "one value per column"),
        (((), (), 0.1), "one value per column"),
        (((0.0,), (1.0,), 0.1, Ball((2.0,), 0.5)), "between domain.lower and domain.upper"),
        (((0.0,), (1.0,), 0.1, Ball((0.5,), 0.0)), "domain.ball.radius is 0.0"),
        (((0.0,), (1.0,), 0.1, Ball((0.5, 0.5), 0.2)), "domain.ball.center needs 1"),
    ],
)
def test_bad_domains_say_so_in_one_sentence(arguments, says):
    with pytest.raises(ValueError, match=says) as caught:
        Grid(*arguments)
    assert "\n" not in str(caught.value)
