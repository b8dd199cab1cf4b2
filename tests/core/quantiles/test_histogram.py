"""Quantiles by counts of every grid point."""

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from tests.core.quantiles.planned import ADD, NINE, REPLACE, plan_for, release
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("size", [5, 121, 5001])
def test_noise_of_the_histogram_is_as_charged(neighbors, size):
    """Every draw counts every record once, at the scale that its charge allows."""
    plan = plan_for(NINE, "histogram", Budget(0.7, 0.0), neighbors, Grid((0.0,), (size - 1.0,), 1.0))
    noise, points = RecordingNoise(SeededNoise(0)), np.random.default_rng(1).integers(0, size, 5000)
    release(plan, points, noise)
    assert len(noise.calls) == len(plan.mechanisms) == (1 if size == 5 else 2)
    for mechanism, (kind, values, scale) in zip(plan.mechanisms, noise.calls, strict=True):
        assert kind == "laplace" and values.sum() == len(points)
        assert neighbors.changes / scale == pytest.approx(mechanism.epsilon)
    assert sum(neighbors.changes / scale for _, _, scale in noise.calls) == pytest.approx(0.7, rel=1e-3)


def test_the_histogram_is_for_few_points():
    grid = Grid((0.0,), (float(1 << 13),), 1.0)
    with pytest.raises(ValueError, match=r"method is histogram: the domain has 8,193 grid points"):
        plan_for(method="histogram", grid=grid)
    assert set(plan_for(grid=grid).alternatives) == {"tree"}
