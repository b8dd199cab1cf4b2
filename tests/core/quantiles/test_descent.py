"""Searches down a tree: exact without noise, and within the bound on the hardest data."""

import math

import numpy as np
import pytest

from core.aggregate import Counts
from core.gaps import Order
from core.mechanisms.tails import some_sum_exceeds, variance
from core.quantiles.descent import Shape, descend, levels_of, shapes
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("size", [2, 3, 100, 4097, 2**20, 2**31, 2**62])
def test_trees_reach_every_point(size):
    for shape in shapes(size):
        assert shape.fan_out**shape.levels >= size > shape.fan_out ** (shape.levels - 1)
        assert shape.levels == levels_of(size, shape.fan_out)


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("window", [(0, 1000), (37, 1037), (2**40, 2**40 + 999)])
def test_without_noise_ranks_are_met(window, rooted):
    low, high = window
    points = np.sort(np.random.default_rng(0).integers(low, high, 500))
    points[100:300] = points[100]
    order, p = Order.of_counts(Counts.of(points)), np.array([0.001, 0.1, 0.3, 0.5, 0.99])
    root = 0.0, 500.0 if rooted else None
    for shape in shapes(high - low):
        steps = descend(order, window, shape, root, lambda n: p * n, lambda counts, _: counts)
        below, upto = (np.searchsorted(points, steps, side) for side in ("left", "right"))
        assert (below <= p * 500).all() and (p * 500 <= upto).all()


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("shape", [Shape(1000, 1), Shape(32, 2), Shape(4, 5)])
def test_the_bound_holds_and_is_not_far_off(shape, rooted):
    """One record at every point, 400 searches of 9 ranks, failure 0.1: 68 break with probability 1e-6."""
    order, p, scale = Order.of_counts(Counts.of(np.arange(1000))), np.arange(1, 10) / 10, 2.0
    bound, errors = shape.largest_error(scale, 0.1, 9, None if rooted else (0.1, 0.9)), []
    for seed in range(400):
        noise = SeededNoise(seed)
        root = 0.0, 1000.0 if rooted else None

        def count(counts, level, noise=noise):
            return noise.laplace(counts, scale)

        steps = descend(order, (0, 1000), shape, root, lambda n: p * n, count)
        errors.append(np.abs(np.array(steps) + 0.5 - p * 1000).max() - 0.5)
    assert (np.array(errors) > bound).sum() <= 40 + 4.75 * math.sqrt(36)
    assert bound <= 5 * np.quantile(errors, 0.9)


@pytest.mark.parametrize(
    ("searches", "trees", "between", "nodes"),
    [
        (1, 1, None, (1, 1, 1)),
        (3, 1, None, (1, 3, 3)),
        (99, 1, None, (1, 4, 16)),
        (5, 5, None, (5, 5, 5)),
        (1, 1, (0.3, 0.3), (1, 1, 1)),
        (99, 1, (0.1, 0.9), (1, 8, 32)),
    ],
)
def test_each_edge_that_paths_may_cross_is_counted(searches, trees, between, nodes):
    """Nodes of each level, for fan-out 4; at the root, variances at p = 0.1 and p = 0.9 are one set each.

    Where the number of records is not known, the root's own two ends err, too.
    """
    shape, bounds, expected = Shape(4, 3), np.array([5.0, 40.0]), []
    bridge = [3 / 4, 1.0, 3 / 4]
    roots = {
        None: [bridge],
        (0.3, 0.3): [[i * 0.4 + 0.36 for i in range(5)]],
        (0.1, 0.9): [[i * 0.8 + 0.04 for i in range(5)], [3.24 - i * 0.8 for i in range(5)]],
    }[between]
    above = {None: 1.0, (0.3, 0.3): 4 * 0.49, (0.1, 0.9): 3.24}[between]
    expected += [each for root in roots for each in root] * nodes[0]
    expected += [above + each for each in bridge] * nodes[1]
    expected += [above + 1 + each for each in bridge] * nodes[2]
    exceeding = shape.errors_exceed(3.0, bounds, searches, trees, between)
    assert exceeding == pytest.approx(some_sum_exceeds(np.array(expected) * variance(3.0), 3.0, bounds))
