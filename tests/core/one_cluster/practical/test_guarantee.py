"""What the practical method promises, and what a release certifies."""

import math

import numpy as np
import pytest

from core.budget import Budget
from core.one_cluster.found import Found
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.locate import Located, certified_factor
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import run_in_memory
from tests.core.one_cluster.practical.test_method import (
    BUDGET,
    ONE,
    SALT,
    block,
    plan_for,
    planted,
    unit_cube,
)
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize(("d", "t", "runs"), [(2, 3000, 100), (2, 500, 100), (5, 3000, 10), (2, 10_000, 10)])
def test_promise_holds(d, t, runs):
    """A promise at failure 0.1 is broken in at most 0.1 + 3 standard deviations of the runs.

    The targets are one with a promised radius, one without, one in many dimensions, and one with samples.
    Whatever is certified of a radius holds too, with the same probability.
    """
    grid, n, r = unit_cube(d), t + 3000, 0.003 * d
    params = OneCluster(target=t, failure=0.1)
    plan = ONE_CLUSTER.plan(grid, params, BUDGET, ONE, SALT)
    promises = plan.promises
    assert promises["missing"] < t / 2
    assert (promises["radius_factor"] is None) == (t == 500)
    broken, uncertain = 0, 0
    for seed in range(runs):
        points, _ = planted(grid, n, t, r, seed)
        if t > 8000:  # samples are chosen by the salt
            plan = ONE_CLUSTER.plan(grid, params, BUDGET, ONE, seed.to_bytes(16, "little"))
        found = run_in_memory(plan.rounds, [block(points)], plan.start, SeededNoise(seed))
        if not isinstance(found, Found):
            broken += 1
            continue
        inside = int((np.linalg.norm(points - found.center, axis=1) <= found.radius).sum())
        wide = t != 500 and found.radius * grid.step > max(
            promises["radius_factor"] * r, promises["resolution"]
        )
        off = abs(found.count - inside) > promises["count_error"]
        broken += inside < t - promises["missing"] or wide or off
        assert found.radius_factor is not None
        uncertain += found.radius * grid.step > found.radius_factor * r
    assert max(broken, uncertain) <= runs * 0.1 + 3 * math.sqrt(runs * 0.09)


def test_a_certified_radius_is_that_of_the_next_finer_level():
    """No ball of the target is smaller than what a region of the next finer level is sure to hold."""
    regions = plan_for(unit_cube(2), ONE).rounds[0].regions
    for level in regions.levels[1:]:
        factor = certified_factor(regions, level, regions.radius(level))
        assert factor == pytest.approx(regions.radius(level) / regions.holds(level - 1))
        assert factor <= regions.factor or regions.radius(level) <= regions.resolution
    assert certified_factor(regions, regions.bottom, 5) is None
    assert certified_factor(None, 5, 5) is None
    assert certified_factor(plan_for(unit_cube(9), ONE).rounds[0].regions, 5, 5) is None
    assert certified_factor(regions, 10, 1) == 1


def test_no_radius_is_certified_where_the_level_may_be_too_coarse():
    """At a tiny budget the choice of the level is hardly better than a guess."""
    for d, place in ((2, "regions"), (3, "certifies")):
        poor = ONE_CLUSTER.plan(unit_cube(d), OneCluster(50), Budget(0.1, 1e-6), ONE, SALT).rounds[-1]
        assert not getattr(poor, place)
        good = plan_for(unit_cube(d), ONE, target=500 if d == 3 else 200).rounds[-1]
        assert getattr(good, place)


@pytest.mark.parametrize("d", [2, 5])
def test_what_a_target_is_promised_a_larger_one_is_too(d):
    """So the smallest workable target can be found by bisection. From some target on a radius is promised."""
    targets = [*range(360, 500, 35), 800, 1200, 7900, 8100, 20_000, 1_000_000]
    plans = [ONE_CLUSTER.plan(unit_cube(d), OneCluster(t), BUDGET, ONE, SALT) for t in targets]
    workable = [
        p.promises["missing"] is not None and p.promises["missing"] <= t / 2
        for p, t in zip(plans, targets, strict=True)
    ]
    assert workable == sorted(workable)
    assert {p.smallest_target for p in plans} == {plans[0].smallest_target}
    smallest = plans[0].smallest_target
    assert smallest is not None
    assert workable == [t >= smallest for t in targets]
    radius = [p.promises["radius_factor"] is not None for p in plans]
    for able, bounded, plan in zip(workable, radius, plans, strict=True):
        says = any(note.startswith("No radius is promised") for note in plan.notes)
        assert says == (not bounded) or not able
    assert radius == sorted(radius)
    assert radius[targets.index(1200)]
    for p, t in zip(plans, targets, strict=True):
        if p.promises["radius_factor"] is not None:
            assert p.promises["missing"] <= t / 3


@pytest.mark.parametrize("d", [2, 3])
def test_a_fit_that_widens_tries_balls_up_to_the_whole_domain(d):
    """And one that does not stays about the chosen region."""
    grid = unit_cube(d, 2.0**-10)
    for target, widens in ((500, True), (3000, False)):
        fit = plan_for(grid, ONE, target=target).rounds[-1]
        assert fit.widens == widens
        level = fit.regions.levels[5]
        corner = np.full(d, 500)
        center, radius = fit.regions.ball(level, corner)
        points = np.concatenate([np.tile(center, (100, 1)), np.tile([0] * d, (5000, 1))])
        state = Located(center, radius, level, corner)
        found = fit.release(fit.summarize(block(points), state), state, SeededNoise(0, factor=0))
        assert (found.radius == radius and found.count == 100) if not widens else found.count == 5100
