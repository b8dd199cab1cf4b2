import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decimals import first_from, last_up_to
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


@pytest.mark.parametrize("extents", [(1,), (2,), (3,), (3, 3), (5, 5), (1, 2, 3), (7, 7, 7), (101,) * 9])
def test_bounding_radius_holds_the_corners_of_odd_and_even_extents(extents):
    """And is hardly larger, exactly: the corners are the points that are farthest away."""
    grid = Grid((0.0,) * len(extents), tuple(map(float, extents)), 1.0)
    away = zip(grid.bounding_center, extents, strict=True)
    farthest = sum(max(middle, extent - middle) ** 2 for middle, extent in away)
    assert (grid.bounding_radius - 1) ** 2 <= farthest <= grid.bounding_radius**2


def test_range_that_is_no_multiple_of_the_step_stays_inside():
    grid = Grid((0.0,), (1.0,), 0.3)
    assert grid.extents == (3,)
    assert grid.quantize(np.array([[1.0]])).tolist() == [[3]]


@pytest.mark.parametrize(
    ("lower", "step"),
    [(0.1, 0.1), (1_000_000.1, 0.1), (-5_000_000.7, 0.1), (123_456_789.01, 0.01), (2.0, 1 / 3)],
)
def test_an_end_at_a_grid_point_is_that_point_also_far_from_0(lower: float, step: float) -> None:
    for k in range(2, 400, 3):
        value = float(Fraction(str(lower)) + k * Fraction(str(step)))  # as people write it
        assert Grid((lower,), (value,), step).extents == (k,)
        assert first_from(value, lower, step, 400) == k == last_up_to(value, lower, step, 400)
        assert last_up_to(value + step / 2, lower, step, 400) == k
        assert first_from(value + step / 2, lower, step, 400) == k + 1


def test_ends_beyond_the_grid() -> None:
    assert (first_from(-1e308, 1e308, 1.0, 9), last_up_to(-1e308, 1e308, 1.0, 9)) == (0, -1)
    assert (first_from(1e308, -1e308, 1.0, 9), last_up_to(1e308, -1e308, 1.0, 9)) == (10, 9)


@pytest.mark.parametrize("lower", [0, -7, 2**52, 2**52 + 3, -(2**52)])
@pytest.mark.parametrize("step", [1, 5, 10, 1000])
def test_points_that_are_whole_numbers_are_compared_exactly(lower, step):
    """Float64 rounds what lies between such points far from 0, and none of the points."""
    points = [lower + k * step for k in range(8)]
    for value in range(lower - 3, points[-1] + 4, max(1, step // 7)):
        axis = float(value), float(lower), float(step), 7
        assert first_from(*axis) == next((k for k, point in enumerate(points) if point >= value), 8)
        assert last_up_to(*axis) == max((k for k, point in enumerate(points) if point <= value), default=-1)
    ends = float(lower), float(step), 7
    assert (first_from(-math.inf, *ends), last_up_to(math.inf, *ends)) == (0, 7)
    assert (first_from(math.inf, *ends), last_up_to(-math.inf, *ends)) == (8, -1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (((1.0,), (0.0,), 0.1), "lower must be below upper"),
        (((0.0,), (float("nan"),), 0.1), "finite"),
        (((0.0,), (1.0,), 2.0), "larger than the range"),
        (((0.0,), (1.0,), 0.0), "step is 0.0"),
        (((0.0,), (1.0,), float("inf")), "step is inf"),
        (((0.0,), (1e6,), 1e-6), "too large"),
        (((0.0,) * 8, (1.0,) * 8, 2.0**-30), "too large"),
        (((0.0, 0.0), (1.0,), 0.1), "one value per axis"),
        (((), (), 0.1), "one value per axis"),
        (((0.0,), (1.0,), 0.1, Ball((2.0,), 0.5)), "between lower and upper"),
        (((0.0,), (1.0,), 0.1, Ball((0.5,), 0.0)), "ball.radius is 0.0"),
        (((0.0,), (1.0,), 0.1, Ball((0.5, 0.5), 0.2)), "ball.center is .* it needs 1"),
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


LEAST, MOST, MOST_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1


def on_grid(grid: Grid, value: int) -> int:
    """The step of a value, in Python's integers."""
    low, high = int(grid.lower[0]), int(grid.upper[0])
    return min(round(Fraction(min(max(value, low), high) - low, int(grid.step))), grid.extents[0])


@st.composite
def wide_grids(draw: st.DrawFn) -> Grid:
    bounds = st.integers(LEAST, MOST) if draw(st.booleans()) else st.integers(0, MOST_UNSIGNED)
    near = st.sampled_from([LEAST, MOST, 0, 2**60 + 1, 2**63])
    low, high = sorted(draw(st.tuples(bounds | near, bounds | near)))
    least = max(1, -(-(high - low) // (2**62 - 1)))
    step = draw(st.integers(least, 2 * least + 5) | st.integers(least, least + 2**40) | st.just(2**63))
    try:
        grid = Grid((low,), (high,), step)
    except ValueError:
        grid = Grid((2**60 + 1,), (2**60 + 1 + 2**62,), 3)
    return grid if grid.wide else Grid((2**60 + 1,), (2**61,), 7)


@given(wide_grids(), st.data())
def test_integers_are_quantized_as_python_does(grid: Grid, data: st.DataObject) -> None:
    low, high, step = int(grid.lower[0]), int(grid.upper[0]), int(grid.step)
    for kind, least, most in ((np.int64, LEAST, MOST), (np.uint64, 0, MOST_UNSIGNED)):
        corners = [low, high, low - 1, high + 1, low + step // 2, low + step + step // 2, high - step, 0]
        chosen = data.draw(st.lists(st.integers(least, most), max_size=20))
        values = [v for v in [*chosen, *corners, least, most] if least <= v <= most]
        steps = grid.quantize(np.array(values, dtype=kind)[:, None])
        assert steps.dtype == np.int64
        assert steps[:, 0].tolist() == [on_grid(grid, value) for value in values]
        assert grid.restore(steps)[:, 0].tolist() == [low + s * step for s in steps[:, 0].tolist()]


@pytest.mark.parametrize(
    ("low", "high", "step", "kind"),
    [
        (LEAST, MOST, 4 + 1, np.int64),
        (0, MOST_UNSIGNED, 5, np.uint64),
        (2**63 + 1, 2**63 + 2**62, 1, np.uint64),
        (LEAST, LEAST + 2**62 - 1, 1, np.int64),
        (2**60 + 1, 2**60 + 2**62, 1, np.int64),
        (2**60 + 1, 2**60 + 1 + 2**40, 2**20, np.int64),
    ],
)
def test_the_ends_of_the_widest_axes_come_back(low: int, high: int, step: int, kind: type) -> None:
    grid = Grid((low,), (high,), step)
    assert grid.wide
    assert grid.extents == ((high - low) // step,)
    steps = grid.quantize(np.array([[low], [high]], dtype=kind))
    assert steps.tolist() == [[0], [grid.extents[0]]]
    assert grid.restore(steps).ravel().tolist() == [low, low + grid.extents[0] * step]


@given(st.lists(st.floats(-1e17, 1e17), min_size=1, max_size=20))
def test_floats_on_a_wide_axis_are_rounded_as_on_any(values: list[float]) -> None:
    grid = Grid((-(2.0**40),), (2.0**52,), 1.0)
    assert grid.wide
    assert grid.serves_floats(0)
    expected = [min(max(round(v), -(2**40)), 2**52) + 2**40 for v in values]
    assert grid.quantize(np.array(values)[:, None])[:, 0].tolist() == expected


def test_floats_do_not_serve_where_they_do_not_hold_a_distance() -> None:
    grid = Grid((-(2**53),), (2**53,), 1)
    assert not grid.serves_floats(0)
    assert grid.quantize(np.array([[2**53 - 1]])).tolist() == [[2**54 - 1]]


def test_what_fits_is_kept_as_floats() -> None:
    grid = Grid((0,), (1000,), 1)
    assert not grid.wide
    assert [type(x) for x in (grid.lower[0], grid.upper[0], grid.step)] == [float] * 3
    assert grid.restore(np.array([[3]])).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (((0,), (2**62,), 1), "int64 keys, which also hold a label, allow 2.62"),
        (((-1,), (2**63,), 4), "neither into int64 nor into uint64"),
        (((0,), (2**64,), 8), "must fit into int64 or uint64"),
        (((0,), (10**400,), 1), "must fit into int64 or uint64"),
        (((0.0,), (2.0**60,), 1.0), "finer than float64"),
        (((0, 0.5), (2**40, 1.0), 0.5), "more than 2.31 steps"),
        (((0,), (2**40,), 1, Ball((0.0,), 5.0)), "more than 2.31 steps"),
    ],
)
def test_what_is_too_wide_is_refused_in_one_sentence(arguments, says):
    with pytest.raises(ValueError, match=says) as caught:
        Grid(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (((0,), (2**40,), 1), "more than 2.31 steps of axis 0, too large for exact int64"),
        (((0, 0), (2**31 - 1, 2**31 - 1), 1), "squared diameter of 2.62 steps or more"),
        (((2**60 + 1,), (2**60 + 100,), 1), "finer than float64 can tell"),
        (((2**60 + 1,), (2**61,), 2**40), "not exact in float64: use 1152921504606846976"),
    ],
)
def test_wide_universes_have_no_distances(arguments, says):
    with pytest.raises(ValueError, match=says):
        Grid(*arguments).check_distances()


def test_a_ball_of_any_radius_is_bounded_by_the_universe():
    for radius in (1e9, 1e300, 1.7e308):
        grid = Grid((-5.5,), (7.25,), 0.125, Ball((5e-324,), radius))
        assert grid.bounding_radius == grid.diameter + 1


def test_grid_points_have_the_decimals_of_the_grid():
    """Also beside points between them, which stay as they are."""
    grid = Grid((0.0, -1.5), (500.0, 1.5), 0.01)
    steps = np.array([[10521, 151], [11299, 0], [35, 7]])
    assert grid.restore(steps).tolist() == [[105.21, 0.01], [112.99, -1.5], [0.35, -1.43]]
    assert grid.restore(steps.astype(float)).tolist() == grid.restore(steps).tolist()
    assert grid.restore(np.array([0.25, 35.0])).tolist() == [0.0025, -1.15]
    assert grid.restore_ball(np.array([35, 0]), 35) == ((0.35, -1.5), 0.35)
    assert [grid.length(steps) for steps in (35, 0.5)] == [0.35, 0.005]
    every = np.arange(50_001)
    line = Grid((0.0,), (500.0,), 0.01)
    assert line.restore(every[:, None])[:, 0].tolist() == [float(f"{n // 100}.{n % 100:02}") for n in every]


@pytest.mark.parametrize(
    "low, high, step", [(1 / 3, 1e6, 0.1), (0.0, 1e8, 1 / 3), (0.0, 1.0, 2.0**-30), (-1e300, 1e300, 1e295)]
)
def test_grid_points_without_decimals_are_as_float64_has_them(low, high, step):
    grid = Grid((low,), (high,), step)
    steps = np.array([[0], [7], [grid.extents[0]]])
    assert grid.restore(steps).tolist() == grid.place(steps).tolist()
    assert (grid.quantize(grid.restore(steps)) == steps).all()
