"""The answer of the k-centers: the largest group first, and coordinates without digits that mean nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.centers.center_averages import CenterAverages
from core.centers.found import Centers
from core.centers.space import Space
from core.domain import Grid
from core.draws import Gaussian
from tests.core.centers.test_coreset import block
from tests.core.seeded import SeededNoise


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


def test_the_noise_of_a_coordinate_is_in_data_units_and_in_the_order_of_the_centers():
    grid = Grid((0.0,), (100.0,), 0.5)
    space = Space(grid)
    noise = np.array([2.0, np.inf]) * (1 << space.bits)  # of 2 steps
    centers = Centers(space, np.zeros((2, 1), dtype=np.int64), np.ones(2), np.array([1, 5]), noise)
    assert centers.result(grid).noise == (math.inf, 1.0)


def test_the_estimated_noise_is_that_of_the_center():
    """Repeated averages of the same rows spread as they say. A sample deviation of 400 is off by a fifth
    with probability below 1e-7 (chi-squared with 399 degrees of freedom)."""
    grid = Grid((0.0, 0.0), (100.0, 100.0), 0.01)
    space = Space(grid)
    rng = np.random.default_rng(3)
    rows = grid.quantize(rng.normal(40.0, 5.0, (2000, 2)))
    gaussian = Gaussian.of("sums", 0.02, 1)
    step = CenterAverages(
        space, 1, 2, gaussian, Gaussian.of("c", 10.0, 1), Gaussian.of("w", 10.0, 1), "average"
    )
    middle = (rows.mean(axis=0).astype(np.int64) - space.middle) << space.bits
    state = Centers(space, middle[None, :], np.array([700.0 * (1 << space.bits)]), np.array([2000]))
    total = step.summarize(block(rows), state)
    found = [step.release(total, state, SeededNoise(seed)) for seed in range(400)]
    spread = np.std([each.positions[0, 0] for each in found])
    assert spread == pytest.approx(float(np.mean([each.noise[0] for each in found])), rel=0.2)


def averaging() -> tuple[CenterAverages, Centers, np.ndarray]:
    """Return an average of one center, a state at the middle of its rows, and the rows."""
    grid = Grid((0.0, 0.0), (100.0, 100.0), 0.01)
    space = Space(grid)
    rows = grid.quantize(np.random.default_rng(3).normal(40.0, 5.0, (2000, 2)))
    step = CenterAverages(
        space,
        1,
        2,
        Gaussian.of("sums", 0.02, 1),
        Gaussian.of("c", 10.0, 1),
        Gaussian.of("w", 10.0, 1),
        "average",
    )
    middle = (rows.mean(axis=0).astype(np.int64) - space.middle) << space.bits
    state = Centers(space, middle[None, :], np.array([700.0 * (1 << space.bits)]), np.array([2000]))
    return step, state, rows


def test_two_noisy_means_of_one_center_are_averaged_and_say_so():
    """Two averages in turn err 0.78 times as much as one, by 3,000 runs. Sample deviations of 400 runs are
    within 8% with a probability of 0.97; seeds are fixed."""
    step, state, rows = averaging()
    total = step.summarize(block(rows), state)
    first = [step.release(total, state, SeededNoise(seed)) for seed in range(400)]
    second = [
        step.release(step.summarize(block(rows), one), one, SeededNoise(10**6 + seed))
        for seed, one in enumerate(first)
    ]
    one, two = (
        np.std([each.positions[0] - state.positions[0] for each in found]) for found in (first, second)
    )
    assert two < 0.95 * one
    told = float(np.mean([each.noise[0] for each in second]))
    assert 0.75 * told < two < 1.05 * told  # half of the first error is assumed to come back


def test_a_center_far_off_is_not_averaged_with_where_it_was():
    """It says that it is a mean with little noise, but is twenty deviations away."""
    step, state, rows = averaging()
    told = float(step.release(step.summarize(block(rows), state), state, SeededNoise(0)).noise[0])
    off = state.positions + np.array([[math.ceil(20 * told), 0]])
    started = Centers(state.space, off, state.spread, state.counts, np.array([told]))
    moved = step.release(step.summarize(block(rows), started), started, SeededNoise(1, factor=0.0))
    assert abs(moved.positions[0, 0] - state.positions[0, 0]) < 2 * told


def test_the_noise_that_is_told_is_about_right_where_groups_touch():
    """Four centers share a square evenly. Sample deviations of 100 runs in two coordinates are within 20% but
    for a probability of 1e-4 each; seeds are fixed."""
    step, _, _ = averaging()
    step = replace(step, k=4)
    space, side = step.space, 1 << step.space.bits
    rows = space.grid.quantize(np.random.default_rng(5).uniform(20.0, 80.0, (6000, 2)))
    quarters = np.array([[35.0, 35.0], [35.0, 65.0], [65.0, 35.0], [65.0, 65.0]])
    positions = (space.grid.quantize(quarters) - space.middle) * side
    start = Centers(space, positions.astype(np.int64), np.full(4, 1200.0 * side), np.full(4, 1500))
    ended, told = [], []
    for seed in range(100):
        state = start
        for turn in range(2):
            state = step.release(step.summarize(block(rows), state), state, SeededNoise(10 * seed + turn))
        ended.append(state.positions)
        told.append(state.noise)
    spread = np.sqrt(np.var(ended, axis=0).mean(axis=1))
    ratio = spread / np.sqrt(np.mean(np.square(told), axis=0))
    assert ratio.min() > 0.6 and ratio.max() < 1.35
