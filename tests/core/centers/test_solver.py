"""The solver of weighted points against the best centers of few points of a line, which are found exactly."""

import itertools

import numpy as np
import pytest

from core.centers.solver import Solver


def cost(points, weights, centers, power):
    return float(weights @ np.abs(points[:, None] - centers).min(axis=1) ** power)


def least(points, weights, power):
    """Return the least cost of one center: the mean, or that of the points which is the median."""
    tried = points if power == 1 else [np.average(points, weights=weights)]
    return min(cost(points, weights, center, power) for center in tried)


@pytest.mark.parametrize("power", [1, 2])
def test_the_cost_is_that_of_the_best_centers(power):
    """The best groups on a line are neighbors, so all ways to cut it are tried."""
    rng = np.random.default_rng(7)
    for _ in range(10):
        points, weights = np.sort(rng.uniform(0, 1000, 12)), rng.choice([1.0, 1000.0], 12)
        best = min(
            sum(
                least(*group, power)
                for group in zip(np.split(points, cut), np.split(weights, cut), strict=True)
            )
            for cut in itertools.combinations(range(1, 12), 2)
        )
        found = Solver(power).centers(points[:, None], weights, 3)[:, 0]
        assert best * (1 - 1e-9) <= cost(points, weights, found, power) <= 1.001 * best
