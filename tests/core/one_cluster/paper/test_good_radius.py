"""GoodRadius as published: its averages and its quality against the definition."""

import itertools
import math

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.one_cluster.found import NotFound
from core.one_cluster.paper.good_radius import (
    GoodRadius,
    Radius,
    RadiusScales,
    ball_averages,
    radius_quality,
)
from core.one_cluster.paper.weighted import Weighted
from tests.core.seeded import SeededNoise

BUDGET = Budget(1.0, 1e-6)
REPLACE = Neighbors("replace_one")
SALT = bytes(range(16))


def unit_cube(d, bits):
    return Grid((0.0,) * d, (1.0,) * d, 2.0**-bits)


def average_by_definition(points, radius_squared, t):
    """L(r) of the paper: the largest sum over t distinct records of their capped ball counts, over t."""
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    capped = np.minimum((squares <= radius_squared).sum(axis=1), t)
    return max(sum(chosen) for chosen in itertools.combinations(capped.tolist(), t)) / t


@pytest.mark.parametrize("seed", range(20))
def test_ball_averages_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, size=(8, int(rng.integers(1, 3))))
    t = int(rng.integers(1, 9))
    averages = ball_averages(Weighted.of(points), t)
    for square in range(30):
        got = averages.at(np.array([min(square, averages.last)]))[0]
        assert got == math.floor(average_by_definition(points, square, t))


def test_ball_averages_are_exact_for_huge_multiplicities():
    data = Weighted(np.array([[0], [3], [5]]), np.array([10**14 + 1, 10**14 + 3, 7]))
    t = 10**14 + 10
    averages = ball_averages(data, t)
    by_hand = [(10**14 + 3) ** 2 + 7 * (10**14 + 1), (10**14 + 3) * t + 7 * t, t * t, t * t]
    # Within 2 the points 3 and 5 see 10^14 + 10 records each: capped at t, and so is everything wider.
    assert averages.values.tolist() == [by_hand[0] // t, by_hand[1] // t]
    assert averages.starts.tolist() == [0, 4]


@pytest.mark.parametrize("seed", range(60))
def test_the_average_has_sensitivity_two_and_grows_with_the_database(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 12)), int(rng.integers(1, 3))
    t = int(rng.integers(1, n + 1))
    points = rng.integers(0, 5, size=(n, d))
    replaced = points.copy()
    replaced[0] = rng.integers(0, 5, size=d)
    more = np.concatenate([points, rng.integers(0, 5, size=(1, d))])
    squares = np.arange(0, 50)

    def values(database):
        averages = ball_averages(Weighted.of(database), t)
        return averages.at(np.minimum(squares, averages.last))

    assert np.abs(values(points) - values(replaced)).max() <= 2
    assert ((values(more) >= values(points)) & (values(more) <= values(points) + 2)).all()
    qualities = [
        radius_quality(ball_averages(Weighted.of(p), t), t, gamma=1, last=30).at(np.arange(31))
        for p in (points, replaced)
    ]
    assert np.abs(qualities[0] - qualities[1]).max() <= 1
    top = int(np.argmax(qualities[0]))
    assert (np.diff(qualities[0][: top + 1]) >= 0).all()
    assert (np.diff(qualities[0][top:]) <= 0).all()


def test_sensitivity_two_is_reached():
    """All t records at one point; the replaced one leaves: t to (t - 1)^2 / t, nearly 2 less."""
    t = 50
    together = np.zeros((t, 1), dtype=np.int64)
    apart = together.copy()
    apart[0] = 9
    before, after = (ball_averages(Weighted.of(p), t).values[0] for p in (together, apart))
    assert (before, after) == (50, 48)


def test_radius_quality_is_that_of_the_definition():
    rng = np.random.default_rng(4)
    points, t, gamma = rng.integers(0, 6, size=(12, 2)), 7, 2
    averages = ball_averages(Weighted.of(points), t)
    quality = radius_quality(averages, t, gamma, last=40)
    for i in range(41):
        whole, half = (averages.at(np.array([min(s, averages.last)]))[0] for s in (i * i // 4, i * i // 16))
        assert quality.at(np.array([i]))[0] == math.floor(min(t - half, whole - t + 4 * gamma) / 2)


def test_gamma_is_the_papers():
    grid, (epsilon, delta, beta) = unit_cube(2, 16), (0.5, 5e-7, 0.01)
    scales = RadiusScales(grid, epsilon, delta, beta)
    assert scales.solutions == pytest.approx(2 * (2**16 + 1) * math.sqrt(2))
    printed = 8**5 * 144 * 5 / epsilon * math.log(24 * 5 / (beta * delta))
    assert scales.gamma == math.ceil(printed)
    assert scales.last >= 2 * 2**16 * math.sqrt(2)


def test_the_first_round_wants_the_public_number_of_records():
    step = GoodRadius(10, RadiusScales(unit_cube(1, 8), 0.5, 1e-7, 0.1))
    data = Weighted(np.array([[3]]), np.array([9]))
    assert isinstance(step.release(data, None, SeededNoise(0)), NotFound)
    assert step.release(Weighted(np.array([[3]]), np.array([10])), None, SeededNoise(0)) == Radius(0)


def test_noise_of_the_count_at_a_point_is_for_sensitivity_two():
    assert RadiusScales(unit_cube(1, 8), 0.5, 1e-7, 0.1).zero.scale == pytest.approx(2 / 0.25)


def test_a_point_that_lacks_few_of_the_target_has_radius_0():
    """Where gamma records lie elsewhere, L(0) is below the target by less than twice as many."""
    scales = RadiusScales(unit_cube(1, 8), 0.5, 1e-7, 0.1)
    target = 100 * scales.gamma
    data = Weighted(np.array([[3], [200]]), np.array([target - scales.gamma // 2, scales.gamma]))
    assert GoodRadius(target, scales).release(data, None, SeededNoise(0)) == Radius(0)
