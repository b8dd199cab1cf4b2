"""Fine centers: what they cost, how they are merged, totality, and what merging gains."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.centers.fine_averages import FineAverages, number
from core.centers.found import Centers
from core.centers.params import MAX_K, KMeans, KMedian
from core.centers.solver import squared_distances
from core.centers.task import K_MEANS, K_MEDIAN
from core.rounds import run_in_memory
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


def rounds_of(d, k, relation=ONE, **params):
    """The round of fine centers, and the plan."""
    plan = K_MEANS.plan(cube(d), KMeans(k, method="coreset", **params), BUDGET, relation, SALT)
    return next(step for step in plan.rounds if isinstance(step, FineAverages)), plan


def centers_at(space, values, spread, counts, noise=None):
    """Fine centers at `values`, shape (m, d), in data units; so are the spreads."""
    unit = (1 << space.bits) / space.grid.step
    positions = space.inside(np.asarray(values, dtype=np.float64) * unit)
    deviation = None if noise is None else np.asarray(noise) * unit
    return Centers(space, positions, np.asarray(spread) * unit, np.asarray(counts), deviation)


@pytest.mark.parametrize("relation", RELATIONS)
def test_fine_averages_cost_what_the_plan_charges(relation):
    """Sums, counts and weights each meet their charge at their own worst records, and never exceed it."""
    d, m = 4, number(3)
    step, plan = rounds_of(d, 3, relation)
    middles = np.zeros((m, d))
    middles[:, 0] = np.linspace(-0.8, 0.8, m)
    state = centers_at(step.average.space, middles, np.full(m, 0.02), np.full(m, 10_000))
    away = np.eye(d)[1] * 0.2
    grid = step.average.space.grid
    ends = grid.quantize(np.concatenate([middles, middles + away, middles - away]))
    database = np.repeat(grid.quantize(middles), 30, axis=0)
    worst = np.zeros(3)
    for before in ends:
        for after in ends:
            worst = np.maximum(worst, losses(step, *neighbor(database, relation, before, after), state))
    charge = charged(plan, step.name)
    assert (worst <= charge * (1 + 1e-9)).all()
    assert (worst >= 0.95 * charge).all()


def test_only_means_in_many_columns_have_fine_centers():
    assert number(1) == 1
    assert number(128) == 382
    assert number(129) == 129
    assert number(MAX_K) == MAX_K
    assert rounds_of(4, 5)[0].average.k == 13
    assert rounds_of(4, 5, iterations=2)[0].average.k == 13
    others = (KMeans(5), 3), (KMeans(1), 4), (KMeans(5, iterations=1, method="coreset"), 4), (KMedian(5), 4)
    for params, d in others:
        task = K_MEANS if isinstance(params, KMeans) else K_MEDIAN
        plan = task.plan(cube(d), params, BUDGET, ONE, SALT)
        assert not any(isinstance(step, FineAverages) for step in plan.rounds)


def test_merged_centers_are_means_of_their_fine_centers():
    step, _ = rounds_of(4, 2)
    values = np.array([[0.5, 0, 0, 0], [0.5, 0.1, 0, 0], [-0.5, 0, 0, 0], [-0.5, 0, 0.1, 0]])
    fine = centers_at(step.average.space, values, [0.01] * 4, [300, 100, 50, 50], [1e-3, 2e-3, 1e-3, 1e-3])
    merged = step.merged(fine)
    order = np.argsort(-merged.counts)
    assert merged.counts[order].tolist() == [400, 100]
    restored = merged.space.restore(merged.positions[order])
    assert restored == pytest.approx(np.array([[0.5, 0.025, 0, 0], [-0.5, 0, 0.05, 0]]), abs=1e-5)
    unit = (1 << merged.space.bits) / merged.space.grid.step
    between = [(300 * 0.025**2 + 100 * 0.075**2) / 400, 0.05**2]
    assert merged.spread[order] / unit == pytest.approx(np.sqrt(np.array(between) + 0.01**2), rel=1e-3)
    blurred = [math.hypot(300e-3, 200e-3) / 400, math.hypot(50e-3, 50e-3) / 100]
    assert merged.noise[order] / unit == pytest.approx(blurred, rel=1e-3)


@pytest.mark.parametrize("known", [0, 1, 2, 4])
def test_fine_centers_that_may_be_noise_fill_the_places_left(known):
    """Those of the largest counts, as they are. They never draw a known center."""
    step, _ = rounds_of(4, 2)
    values = np.array([[0.5, 0, 0, 0], [-0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, -0.5, 0, 0]])
    noise = np.where(np.arange(4) < known, 1e-3, np.inf)
    fine = centers_at(step.average.space, values, np.arange(1, 5) / 100, [500, 400, 1, 30], noise)
    merged = step.merged(fine)
    assert merged.positions.shape == (2, 4)
    assert np.isfinite(merged.noise).sum() == min(known, 2)
    if known < 4:
        assert np.array_equal(merged.positions, fine.positions[:2])
        assert np.array_equal(merged.counts, fine.counts[:2])
        assert merged.spread == pytest.approx(fine.spread[:2])


def test_equal_fine_centers_are_merged():
    step, _ = rounds_of(4, 3)
    fine = centers_at(step.average.space, np.zeros((7, 4)), np.full(7, 0.1), np.full(7, 90), np.full(7, 1e-3))
    merged = step.merged(fine)
    assert merged.counts.max() == 630
    assert np.isfinite(merged.spread).all()
    assert not merged.positions.any()


def test_fine_centers_cost_less_than_one_more_average():
    """Fifteen overlapping groups of unlike sizes: by medians of five runs with fixed seeds, 2% less."""
    rng = np.random.default_rng(20)
    middles, parts = rng.normal(0, 0.2, (15, 20)), rng.dirichlet(np.ones(15)) * 0.8 + 0.2 / 15
    group = rng.choice(15, 30_000, p=parts / parts.sum())
    widths = rng.uniform(0.1, 0.26, 15)
    values = np.clip(middles[group] + rng.normal(size=(30_000, 20)) * widths[group, None], -1, 1)
    step, plan = rounds_of(20, 15)
    points = block(cube(20).quantize(values))
    moments, tree, _, *others = plan.rounds
    plain = (moments, replace(tree, k=15), replace(step.average, k=15), others[0], *others)
    costs = []
    for rounds in (plan.rounds, plain):
        ended = [run_in_memory(rounds, [points], plan.start, SeededNoise(seed)) for seed in range(5)]
        found = [np.array(each.result(cube(20)).centers) for each in ended]
        costs.append(np.median([squared_distances(values, each).min(axis=1).sum() for each in found]))
    assert costs[0] < 0.99 * costs[1]
