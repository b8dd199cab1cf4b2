"""The exponential mechanism over grid points: what a record changes, what is drawn, and how many it needs."""

import itertools

import numpy as np
import pytest

from core.budget import Budget
from core.gaps import Order, Runs
from core.interior_point.exponential import ExponentialFinder, depth
from core.mechanisms.exponential import Exponential
from core.secure_noise import SecureNoise
from tests.core.exact import fits
from tests.core.interior_point.universe import ADD, BUDGET, REPLACE, planned
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

SIZE = 6


def depths_of(points):
    """Depth of every point of the universe."""
    runs = Runs.between(Order.of(points), 0, SIZE)
    out = np.zeros(SIZE, dtype=np.int64)
    for start, length, score in zip(runs.starts, runs.lengths, depth(runs, len(points)), strict=True):
        out[start : start + length] = score
    return out


def test_depth_moves_by_at_most_one_in_one_direction_and_is_positive_inside():
    for n in range(5):
        for points in itertools.combinations_with_replacement(range(SIZE), n):
            before = depths_of(points)
            inside = [bool(points) and min(points) <= v <= max(points) for v in range(SIZE)]
            assert ((before > 0) == inside).all()
            for extra in range(SIZE):
                assert set((depths_of((*points, extra)) - before).tolist()) <= {0, 1}


@pytest.mark.parametrize("far", [0, 1, 2, 3])
def test_scores_that_end_move_in_one_direction(far):
    """By at most one in all; a replacement moves each by at most one."""
    finder = ExponentialFinder(SIZE, Exponential(what="point", scale=1.0, spread=1), far)

    def scores_of(points):
        runs = Runs.between(Order.of(points), 0, SIZE)
        scores = finder.scores(runs, len(points))
        return np.repeat(scores[np.argsort(runs.starts)], runs.lengths[np.argsort(runs.starts)])

    moved = 0
    for n in range(5):
        for points in itertools.combinations_with_replacement(range(SIZE), n):
            after = {extra: scores_of((*points, extra)) for extra in range(SIZE)}
            for extra, scores in after.items():
                change = scores - scores_of(points)
                assert np.ptp(change) <= 1
                moved = max(moved, np.ptp(change))
                for other in range(extra):
                    assert np.abs(scores - after[other]).max() <= 1
    assert moved == 1


@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(1)])
def test_exponential_draws_its_distribution(noise):
    """5,000 draws, chi-square at 1e-6; half the scale is rejected with power above 1 - 1e-6."""
    points = [1, 2, 2, 4]

    def drawn(scale):
        finder = ExponentialFinder(SIZE, Exponential(what="point", scale=scale, spread=1))
        found = [finder.find(Order.of(points), noise) for _ in range(5000)]
        return np.bincount(found, minlength=SIZE)

    expected = np.exp(depths_of(points) / 1.0)
    assert fits(drawn(1.0), expected)
    assert not fits(drawn(0.5), expected)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [BUDGET, Budget(0.3, 0.0)])
def test_exponential_spends_what_it_says(neighbors, budget):
    plan = planned("exponential", 1 << 40, budget, neighbors)
    noise = RecordingNoise(SeededNoise(0))
    plan.rounds[0].finder.find(Order.of([5, 6, 7]), noise)
    [(_, _, scale)] = noise.calls
    assert neighbors.changes / scale == pytest.approx(plan.mechanisms[0].epsilon)
    assert plan.mechanisms[0].epsilon == pytest.approx(budget.epsilon, rel=1e-3)


def test_the_exponential_mechanism_needs_that_many_on_spread_records():
    """A tenth of the promised records in a tiny window of a huge universe: most of 30 runs fail."""
    plan = planned("exponential", 1 << 64, neighbors=ADD)
    finder, needed = plan.rounds[0].finder, plan.promises["records_needed"]
    assert 88 <= needed <= 96
    few = needed // 10
    misses = sum(finder.find(Order.of([7] * few), SeededNoise(s)) != 7 for s in range(30))
    assert misses >= 29
