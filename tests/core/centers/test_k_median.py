"""k_median: cost against the non-private twin, and medians where means go wrong."""

import numpy as np
import pytest

from core.centers.params import KMedian
from core.centers.plan import plan_k_median
from core.centers.solver import Solver
from tests.core.centers.test_coreset import BUDGET, ONE, RELATIONS, SALT, cube
from tests.core.centers.test_k_means import groups, run
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 6])
def test_cost_is_near_the_best(relation, d):
    """Sum of distances within 5% of the best known, on 2 seeds."""
    grid, solver = cube(d), Solver(1, starts=3)
    plan = plan_k_median(grid, KMedian(5), BUDGET, relation, SALT)
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
    plan = plan_k_median(grid, KMedian(1, iterations=8), BUDGET, ONE, SALT)
    centers, _ = run(plan, grid, grid.quantize(values), SeededNoise(0))
    assert np.linalg.norm(centers[0]) < 0.02 * np.sqrt(2)
    assert np.linalg.norm(values.mean(axis=0)) > 0.3
