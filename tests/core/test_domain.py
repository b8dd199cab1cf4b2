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
    assert grid.bounding_radius <= 3.0 / 0.25 + math.sqrt(3) + 2


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


@pytest.mark.parametrize("d", [1, 2, 3, 5, 9, 33])
def test_no_row_moves_another(d: int) -> None:
    """The ball's norm is summed in one order whatever else is in the block, down to the last bit."""
    rng = np.random.default_rng(d)
    grid = Grid((0.0,) * d, (100.0,) * d, 2.0**-18, Ball((50.0,) * d, 10.0))
    rows = np.asfortranarray(rng.uniform(0, 100, (2000, d)))
    together = grid.quantize(rows)
    alone = np.concatenate([grid.quantize(np.asfortranarray(row[None, :])) for row in rows])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("d", [1, 2, 7, 16])
def test_squares_of_the_widest_distances_do_not_wrap(d: int) -> None:
    side = float(math.isqrt((2**62 - 1) // d)) if d > 1 else 2.0**31 - 1
    grid = Grid((0.0,) * d, (side,) * d, 1.0, Ball((0.0,) * d, 1e12))
    assert grid.diameter**2 < 2**62
    assert (grid.bounding_radius + 1) ** 2 < 2**63


def test_a_row_on_the_edge_of_rounding_stays_where_it_was() -> None:
    """Two rows whose norms einsum, for one row and for two, sums in different orders."""
    texts = [
        ("0x1.809cc9eea9e71p+5", "0x1.2a88e53ec7086p+3", "0x1.b565de806fb12p+5"),
        ("0x1.70922c0f8c8cbp+6", "0x1.c256705aec352p+5", "0x1.299067bd5478bp+6"),
    ]
    first, other = ([float.fromhex(x) for x in row] for row in texts)
    grid = Grid((0.0,) * 3, (100.0,) * 3, float.fromhex("0x1.985716d4a1f3ap-2"), Ball((50.0,) * 3, 10.0))
    alone = grid.quantize(np.asfortranarray([first]))
    together = grid.quantize(np.asfortranarray([first, other]))
    np.testing.assert_array_equal(alone[0], together[0])


def test_a_row_on_the_ball_is_within_its_bound_far_from_the_origin() -> None:
    """At 1.7e9 float64 tells 2^-22 apart; the way over the center's coordinates must not add to the norm."""
    center = 1.7e9 + 25.6
    grid = Grid((1.7e9,) * 4, (1.7e9 + 51.2,) * 4, 2.0**-20, Ball((center,) * 4, 2.57e-4))
    rows = center + np.random.default_rng(0).uniform(-20, 20, (3000, 4))
    away = grid.quantize(rows) - np.array(grid.bounding_center)
    assert (np.square(away).sum(axis=1) <= grid.bounding_radius**2).all()


def test_a_step_that_float64_cannot_tell_is_refused() -> None:
    with pytest.raises(ValueError, match="finer than float64"):
        Grid((1.7e18,), (1.7e18 + 51200,), 1.0)
