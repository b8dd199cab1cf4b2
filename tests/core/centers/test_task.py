"""k_means and k_median by a coreset: averages against what the plan charges, cost, totality."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.budget import Budget
from core.centers.center_averages import CenterAverages
from core.centers.found import Centers
from core.centers.params import MAX_K, KMeans, KMedian
from core.centers.solver import Solver, squared_distances
from core.centers.task import K_MEANS, K_MEDIAN
from core.domain import Ball, Grid
from core.rounds import run_in_memory
from core.secure_noise import SecureNoise
from tests.core.centers.test_coreset import (
    BUDGET,
    ONE,
    RELATIONS,
    SALT,
    block,
    charged,
    cube,
    losses,
    neighbor,
)
from tests.core.seeded import SeededNoise


def run(plan, grid, points, noise):
    state = run_in_memory(plan.rounds, [block(points[: len(points) // 3]), block(points[len(points) // 3 :])],
                          plan.start, noise)  # fmt: skip
    answer = state.result(grid)
    return np.array(answer.centers), np.array(answer.counts)


def groups(d, k=5, n=20_000, seed=0):
    rng = np.random.default_rng([seed, d])
    middles = rng.uniform(-0.7, 0.7, (k, d))
    return middles[rng.integers(k, size=n)] + rng.normal(0, 0.04 / math.sqrt(d), (n, d))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("d", [1, 2, 30])
def test_averages_cost_what_the_plan_charges(relation, power, d):
    """Sums, counts and weights each meet their charge at their own worst records, and never exceed it."""
    grid = cube(d)
    plan = K_MEANS.plan(grid, KMeans(3), BUDGET, relation, SALT)
    if power == 1:
        plan = K_MEDIAN.plan(grid, KMedian(3), BUDGET, relation, SALT)
    step = plan.rounds[-2]
    assert isinstance(step, CenterAverages)
    assert step.power == power
    space, far = step.space, np.zeros(d)
    far[0] = 0.8
    middles = np.stack([-far, 0 * far, far])
    positions = space.inside((grid.quantize(middles) - space.middle).astype(float) * (1 << space.bits))
    spread = np.full(3, 0.02 * 2**20)  # units are 2^-20 of the data's
    state = Centers(space, positions, spread, np.full(3, 10_000))
    away = np.zeros(d)
    away[0] = 0.2
    ends = grid.quantize(np.concatenate([middles, middles + away, middles - away]))
    database = np.repeat(grid.quantize(middles), 30, axis=0)
    worst = np.zeros(3)
    for before in ends:
        for after in ends:
            worst = np.maximum(worst, losses(step, *neighbor(database, relation, before, after), state))
    charge = charged(plan, step.name)
    assert (worst <= charge * (1 + 1e-9)).all()
    assert (worst >= 0.95 * charge).all()


@pytest.mark.parametrize("relation", RELATIONS)
def test_random_records_never_cost_more_than_charged(relation):
    grid, rng = cube(3, 2.0**-6), np.random.default_rng(0)
    for task, params in ((K_MEANS, KMeans(4)), (K_MEDIAN, KMedian(4))):
        plan = task.plan(grid, params, BUDGET, relation, SALT)
        step = plan.rounds[-2]
        charge = charged(plan, step.name)
        for _ in range(100):
            database = rng.integers(0, 129, (12, 3))
            positions = step.space.inside(rng.uniform(-1, 1, (4, 3)) * step.space.reach)
            spread = rng.uniform(1, 0.5 * step.space.reach, 4)
            state = Centers(step.space, positions, spread, rng.integers(-5, 500, 4))
            before, after = rng.integers(0, 129, (2, 3))
            by_draw = losses(step, *neighbor(database, relation, before, after), state)
            assert (by_draw <= charge * (1 + 1e-9)).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 4, 784])
@pytest.mark.parametrize("budget", [BUDGET, Budget(0.1, 1e-9), Budget(5.0, 1e-5)])
def test_the_budget_is_spent_and_not_overspent(relation, d, budget):
    grid = cube(d, 2.0**-8)
    for plan in (
        K_MEANS.plan(grid, KMeans(10), budget, relation, SALT),
        K_MEDIAN.plan(grid, KMedian(10, iterations=1), budget, relation, SALT),
    ):
        assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
        for draw in plan.mechanisms:
            assert draw.rho == pytest.approx(draw.sensitivity**2 / (2 * draw.scale**2))


@pytest.mark.parametrize("d", [1, 2, 6, 40])
def test_separate_groups_are_found(d):
    """Cost within 5% of the best known, on 3 seeds."""
    grid = cube(d)
    plan = K_MEANS.plan(grid, KMeans(5), BUDGET, ONE, SALT)
    for seed in range(3):
        values = np.clip(groups(d, seed=seed), -1, 1)
        best = Solver(2, starts=5).centers(values[:2000], np.ones(2000), 5)
        centers, counts = run(plan, grid, grid.quantize(values), SeededNoise(seed))
        cost, least = (squared_distances(values, c).min(axis=1).sum() for c in (centers, best))
        assert cost <= 1.05 * least
        nearest = squared_distances(values, centers).argmin(axis=1)
        true = np.bincount(nearest, minlength=5)
        assert np.abs(counts - true).max() <= plan.promises["count_error"] + 0.001 * len(values)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("task", "params", "delta"),
    [
        (K_MEANS, KMeans(4, method="coreset", iterations=1), 1e-6),
        (K_MEANS, KMeans(4, method="lloyd", iterations=1), 1e-6),
        (K_MEANS, KMeans(4, method="lloyd", iterations=1), 0.0),
        (K_MEDIAN, KMedian(4, iterations=1), 1e-6),
    ],
)
def test_counts_are_of_the_released_centers(task, params, delta, relation):
    """On even data the last move changes which center is nearest to a record. Without noise all is exact."""
    grid = cube(2)
    points = np.random.default_rng(0).integers(0, np.asarray(grid.extents) + 1, (4000, 2))
    plan = task.plan(grid, params, Budget(1.0, delta), relation, SALT)
    centers, counts = run(plan, grid, points, SeededNoise(0, factor=0))
    true = np.bincount(squared_distances(grid.restore(points), centers).argmin(axis=1), minlength=4)
    assert np.abs(counts - true).max() <= 1  # a center's coordinates are rounded in the result
    noisy = [run(plan, grid, points, SeededNoise(seed)) for seed in range(20)]
    off = [
        np.abs(
            counts - np.bincount(squared_distances(grid.restore(points), c).argmin(axis=1), minlength=4)
        ).max()
        for c, counts in noisy
    ]
    assert np.quantile(off, 0.8) <= plan.promises["count_error"] <= 6 * np.quantile(off, 0.9)
    assert plan.promises["count_error"] == plan.rounds[-1].error(plan.failure)


def extremes(d):
    corner = np.full(d, 2048)
    return {
        "empty": np.empty((0, d)),
        "one": np.zeros((1, d)),
        "all equal": np.tile(corner, (5000, 1)),
        "two points": np.concatenate([np.zeros((3000, d)), np.tile(corner, (3000, 1))]),
    }


@pytest.mark.parametrize("k", [1, 2, 7, 300])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_extreme_databases_end_in_an_answer(d, k):
    grid = cube(d)
    plans = [
        K_MEANS.plan(grid, KMeans(k), BUDGET, ONE, SALT),
        K_MEDIAN.plan(grid, KMedian(k), BUDGET, ONE, SALT),
    ]
    for name, points in extremes(d).items():
        for number, plan in enumerate(plans):
            centers, counts = run(plan, grid, points.astype(np.int64), SeededNoise(number))
            assert centers.shape == (k, d)
            assert counts.shape == (k,)
            assert (counts >= 0).all()
            assert np.isfinite(centers).all()
            assert (np.abs(centers) <= 1).all()
            if name == "all equal":
                assert np.linalg.norm(centers - 1.0, axis=1).min() < 0.1 * math.sqrt(d)


def test_centers_lie_in_the_universe_under_noise_without_bound():
    grid = Grid((0.0, 0.0, 0.0, 0.0), (10.0, 20.0, 20.0, 20.0), 0.5, Ball((0.0, 10.0, 10.0, 10.0), 8.0))
    plan = K_MEANS.plan(grid, KMeans(6), BUDGET, ONE, SALT)
    for seed in range(5):
        centers, _ = run(plan, grid, grid.quantize(np.zeros((300, 4))), SeededNoise(seed, factor=1000.0))
        assert (centers >= 0).all()
        assert (centers <= 20).all()
        assert (np.linalg.norm(centers - [0, 10, 10, 10], axis=1) <= 8 + 2).all()


def test_real_noise_runs():
    grid = cube(4, 2.0**-8)
    plan = K_MEANS.plan(grid, KMeans(2), BUDGET, ONE, SALT)
    centers, _ = run(plan, grid, grid.quantize(groups(4, 2, 2000)), SecureNoise())
    assert centers.shape == (2, 4)


def test_centers_lie_between_grid_points():
    """Half the records at 3, half at 4 of a grid of step 1: the center of all is at 3.5."""
    grid = Grid((0.0,), (7.0,), 1.0)
    plan = K_MEANS.plan(grid, KMeans(1), BUDGET, ONE, SALT)
    points = np.repeat([[3], [4]], 20_000, axis=0)
    centers, _ = run(plan, grid, points, SeededNoise(1))
    assert centers[0, 0] == pytest.approx(3.5, abs=0.02)


def test_means_are_not_shortened_where_noise_is_small():
    plan = K_MEANS.plan(cube(2), KMeans(1), BUDGET, ONE, SALT)
    step = plan.rounds[-2]
    wide = Centers(step.space, np.zeros((1, 2), np.int64), np.array([1000.0]), np.array([10**6]))
    assert step.radii(wide)[0] == 4000
    assert step.radii(replace(wide, counts=np.array([10])))[0] == 1500


def test_wrong_parameters_are_refused():
    for wrong, message in [
        ({"k": 0}, r"k is 0"),
        ({"k": MAX_K + 1}, r"k is"),
        ({"k": 2, "iterations": 0}, r"iterations"),
        ({"k": 2, "failure": 1.0}, r"failure"),
        ({"k": 2, "shares": {"coreset": -1.0}}, r"shares\.coreset"),
    ]:
        for params in (KMeans, KMedian):
            with pytest.raises(ValueError, match=message):
                params(**wrong)
    with pytest.raises(ValueError, match=r"shares has 'nothing'"):
        K_MEANS.plan(cube(2), KMeans(2, shares={"nothing": 1.0}), BUDGET, ONE, SALT)
    for task, params in ((K_MEANS, KMeans(2, method="coreset")), (K_MEDIAN, KMedian(2))):
        with pytest.raises(ValueError, match=r"delta is 0: the Gaussian noise of coreset needs"):
            task.plan(cube(2), params, Budget(1.0, 0.0), ONE, SALT)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 6])
def test_the_cost_of_medians_is_near_the_best(relation, d):
    """Sum of distances within 5% of the best known, on 2 seeds."""
    grid, solver = cube(d), Solver(1, starts=3)
    plan = K_MEDIAN.plan(grid, KMedian(5), BUDGET, relation, SALT)
    for seed in range(2):
        values = np.clip(groups(d, seed=seed), -1, 1)
        everyone = np.ones(len(values))
        best = solver.centers(values[:2000], np.ones(2000), 5)
        centers, _ = run(plan, grid, grid.quantize(values), SeededNoise(seed))
        assert solver.cost(values, everyone, centers) <= 1.05 * solver.cost(values, everyone, best)


def test_a_far_minority_does_not_pull_the_median():
    """30% of the records far away move the mean by 0.24 on each axis, the median by about 0.02 at most."""
    grid = cube(2)
    values = np.concatenate([np.random.default_rng(0).normal(0, 0.02, (14_000, 2)), np.full((6_000, 2), 0.8)])
    plan = K_MEDIAN.plan(grid, KMedian(1, iterations=8), BUDGET, ONE, SALT)
    centers, _ = run(plan, grid, grid.quantize(values), SeededNoise(0))
    assert np.linalg.norm(centers[0]) < 0.02 * np.sqrt(2)
    assert np.linalg.norm(values.mean(axis=0)) > 0.3
