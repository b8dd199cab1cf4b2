"""Quantiles by counts down a tree."""

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from core.quantiles.descent import levels_of
from tests.core.quantiles.planned import ADD, NINE, REPLACE, plan_for, release
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_noise_of_the_tree_is_as_charged(neighbors, delta):
    plan = plan_for(NINE, "tree", Budget(1.0, delta), neighbors)
    step = plan.rounds[0]
    noise = RecordingNoise(SeededNoise(0))
    points = np.random.default_rng(1).integers(0, 1000, 5000)
    release(plan, points, noise)
    assert {kind for kind, _, _ in noise.calls} == {"laplace"}
    assert len(plan.mechanisms) == levels_of(1000, step.shape.fan_out)
    assert noise.calls[0][1].sum() == len(points)
    for mechanism, (_, _, scale) in zip(plan.mechanisms, noise.calls, strict=True):
        assert neighbors.changes / scale == pytest.approx(mechanism.epsilon)


@pytest.mark.parametrize("seed", range(5))
def test_a_record_is_counted_once_on_each_level_of_the_tree(seed):
    """All nodes counted on a level together hold each record at most once."""
    plan = plan_for(NINE, "tree", Budget(1.0, 0.0), grid=Grid((0.0,), (2.0**20,), 1.0))
    step = plan.rounds[0]
    points = np.random.default_rng(seed).integers(0, 2**20, 300)
    before, after = RecordingNoise(SeededNoise(seed)), RecordingNoise(SeededNoise(seed))
    release(plan, points, before)
    levels = levels_of(2**20 + 1, step.shape.fan_out)
    assert len(before.calls) == levels
    assert all(values.sum() <= len(points) for _, values, _ in before.calls)
    release(plan, np.empty(0), after)
    assert sum(int(values.sum()) for _, values, _ in after.calls) == 0


@pytest.mark.parametrize("probabilities", [NINE, (0.01,), (0.99,)])
def test_a_number_of_records_that_is_not_known_makes_rank_errors_larger(probabilities):
    """Of the same noise: a rank is then a part of a noisy number, which errs as well."""
    public = plan_for(probabilities, "tree", Budget(2.0, 0.0), REPLACE)
    noisy = plan_for(probabilities, "tree", Budget(1.0, 0.0), ADD)
    (one,), (other,) = public.rounds, noisy.rounds
    assert one.shape == other.shape
    assert [draw.scale for draw in one.counts] == pytest.approx([draw.scale for draw in other.counts])
    assert other.error > 1.05 * one.error
