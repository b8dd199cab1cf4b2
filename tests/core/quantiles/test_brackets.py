"""Intervals that are chosen with a value: what a record changes, how likely they fail, how wide they are."""

import itertools
import math

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.gaps import Order, Runs
from core.mechanisms.exponential import Both, Exponential
from core.quantiles.aim import UNIT, Aim
from core.quantiles.brackets import Bins, most_pairs
from core.quantiles.cell_choices import Choice
from core.quantiles.params import Median
from core.quantiles.task import MEDIAN
from tests.core.quantiles.planned import ADD, REPLACE, plan_for
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("size", [1, 2, 3, 17, 100, 2**20, 2**62])
def test_bins_are_all_points_and_their_pairs_are_counted(size):
    for pivot in {0, 1, size // 3, size // 2, size - 2, size - 1} & set(range(min(size, 2**20))) | {size - 1}:
        bins = Bins.about(pivot, 0, size)
        edges = bins.edges.tolist()
        assert edges[0] == 0 and edges[-1] == size and edges == sorted(set(edges))
        assert pivot in edges and pivot + 1 in edges
        for first, after in itertools.pairwise(edges):
            assert after - first <= max(1, min(abs(first - pivot), abs(after - 1 - pivot)))
        nothing = Order(np.zeros(0, np.int64), np.zeros(1, np.int64))
        ends = np.zeros(len(edges) - 1, np.int64), np.zeros(len(edges) - 1, np.int64)
        pairs = bins.pairs(ends, 1, None)
        assert len(set(zip(pairs.lower.tolist(), pairs.upper.tolist(), strict=True))) == len(pairs.lower)
        assert len(pairs.lower) <= most_pairs(size)
        assert bins.runs(nothing).lengths.sum() == size


def scores_of(aim, points, size, pivot, reach):
    """Scores of all values and of all pairs of bins."""
    order, bins = Order.of_counts(Counts.of(np.asarray(points, dtype=np.int64))), Bins.about(pivot, 0, size)
    runs = Runs.between(order, 0, size)
    values = np.repeat(aim.scores(runs, order.total), runs.lengths)
    at = np.concatenate([np.arange(s, s + n) for s, n in zip(runs.starts, runs.lengths, strict=True)])
    pairs = bins.pairs(aim.ends(bins.runs(order), order.total), reach * UNIT, None)
    return np.minimum(values[np.argsort(at)][:, None], -pairs.distances)


@pytest.mark.parametrize("aim", [Aim(0.5, False), Aim(0.9, False), Aim(0.2, True)])
def test_one_record_changes_all_scores_as_little_as_those_of_values(aim):
    """The range is at most twice the larger weight of a record, and twice that for one that is replaced."""
    rng, largest, moves = np.random.default_rng(0), 0.0, 2 if aim.total_is_public else 1
    for _ in range(60):
        points, added = rng.integers(0, 12, rng.integers(1, 15)), int(rng.integers(12))
        more = [*points[moves - 1 :], added]
        one, other = (scores_of(aim, each, 12, int(added + 5) % 12, 3) for each in (points, more))
        largest = max(largest, float(np.ptp(other - one)))
    assert 0.9 <= largest / (2 * moves * aim.weight * UNIT) <= 1 + 1e-6


@pytest.mark.parametrize("kind", [np.int64, object])
def test_a_point_and_a_candidate_are_chosen_by_the_smaller_score(kind):
    """40,000 draws of 15 pairs: a frequency is 6 deviations off with probability below 1e-7."""
    starts, lengths = np.array([0, 5, 7]), np.array([5, 2, 1]).astype(kind)
    scores, others = np.array([-3, 0, -1]), np.array([-2, 0, -1, -1, -9])
    noise, found = SeededNoise(0), np.zeros((8, 5))
    for _ in range(40_000):
        found[Both(starts, lengths, scores, others, 2.0, noise)()] += 1
    weights = np.exp(np.minimum(np.repeat(scores, lengths.astype(int))[:, None], others) / 2.0)
    expected = 40_000 * weights / weights.sum()
    assert (np.abs(found - expected) <= 6 * np.sqrt(expected) + 1).all()


def test_a_point_and_a_candidate_have_the_noise_of_their_draw():
    """Its loss is the range of the change of a score, spread times unit, over the scale: epsilon."""
    drawn = []

    class Noted(SeededNoise):
        def answer(self, draw, sample, unit=1.0):
            drawn.append((draw, sample.scale))
            return sample()

    draw, runs = Exponential.of("both", epsilon=0.5, spread=2), (np.array([0]), np.array([4]), np.array([0]))
    draw.both(*runs, np.array([0, -1]), Noted(0), unit=3.0)
    ((noted, scale),) = drawn
    assert noted == draw and draw.spread * 3.0 / scale == draw.cost.epsilon == 0.5


def fails(aim, draw, order, size, pivot, reach):
    """Probability that the interval holds no point of rank p n, or that the value is farther than `reach`."""
    bins, scale = Bins.about(pivot, 0, size), draw.scale * max(aim._up, UNIT - aim._up)
    runs, total = Runs.between(order, 0, size), order.total
    pairs = bins.pairs(aim.ends(bins.runs(order), total), reach * UNIT, None)
    values = -aim.scores(runs, total)
    weights = runs.lengths[:, None] * np.exp(-np.maximum(values[:, None], pairs.distances) / scale)
    low, high = np.array(
        [[-1 if e is None else e for e in pairs.interval(i)] for i in range(len(pairs.lower))]
    ).T
    wanted = aim.probability * total
    wrong = (low >= 0) & (order.ranks_at(np.maximum(low, 0)) > wanted)
    wrong |= (high >= 0) & (order.ranks_at(high + 1) < wanted)
    bad = wrong | (values > reach * UNIT)[:, None]
    return float(weights[bad].sum() / weights.sum())


def hard(reach, size):
    """Most values are below the rank by two thirds of `reach`, and the pivot is among a few just above it."""
    at, low, here = size - 6, reach, 2 * reach // 3
    values = np.repeat([0, at, size - 1], [low, here + 1, low + here - 1])
    return Order.of_counts(Counts.of(values)), at + 2


@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize("size", [100, 2**12, 2**20])
def test_an_interval_fails_as_seldom_as_stated_whatever_the_pivot(size, neighbors):
    """Exact probabilities, on records that are hard for any pivot, and on others."""
    plan = MEDIAN.plan(Grid((0.0,), (size - 1.0,), 1.0), Median(), Budget(1.0, 0.0), neighbors, bytes(16))
    (step,) = plan.rounds
    hardest, near = hard(step.reach, size)
    rng, orders = np.random.default_rng(1), [hardest]
    for n in (0, 1, 30, 500):
        for spread in (1, 30, size):
            orders.append(Order.of_counts(Counts.of(size // 3 + rng.integers(0, spread, n) * 2 // 3)))
    for order, pivot in itertools.product(orders, (0, near, size // 3, size // 3 + 9, size - 1)):
        assert fails(step.aim, step.draw, order, size, pivot, step.reach) <= 0.1 + 1e-9


@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize(("quantile", "size"), [(0.5, 100), (0.9, 2**20), (0.3, 2**31)])
def test_ends_are_sought_as_far_away_as_the_proof_needs(quantile, size, neighbors):
    """An interval that is narrower by a third has e^(reach / 3 scale) times the probability to fail."""
    grid = Grid((0.0,), (size - 1.0,), 1.0)
    (step,) = MEDIAN.plan(grid, Median(quantile), Budget(1.0, 0.0), neighbors, bytes(16)).rounds
    scale = step.draw.scale * step.aim.weight
    assert size * most_pairs(size) * math.exp(-step.reach / scale) <= 0.1
    assert size * most_pairs(size) * math.exp(-(step.reach - 1.01) / scale) > 0.1
    whole = plan_for((0.2, 0.4, 0.9), "recursive", Budget(1.0, 0.0), neighbors, grid).rounds[-1]
    whole = getattr(whole, "whole", whole)
    ends, ranks, error = np.array([0.0, 1e9]), np.array([4e8]), 10.0
    (pivots, values, sides), off = whole.choices(size, ends, ranks, error)
    assert np.abs(sides.wanted - ranks[0]) == pytest.approx(error + off)
    assert 1 / pivots.parts + 1 / values.parts == pytest.approx(1)
    fails = (size + 2) * most_pairs(size) * math.exp(-off / (values.parts * whole.inside.scale))
    assert fails == pytest.approx(0.1 / 2 / 3)


def test_a_record_changes_what_is_beyond_a_cell_as_little(width=9):
    """There is one more point on each side, with all ranks beyond; the range of the changes is 1."""
    rng, choice = np.random.default_rng(2), Choice(np.array([4.0]), 1.0, None)
    ends, unknown = np.array([2.0, 9.0]), 1 << 62
    cell = np.array([0]), np.array([width])

    def scores(points):
        order = Order.of_counts(Counts.of(np.asarray(points, dtype=np.int64)))
        runs, total = Runs.between(order, 0, width), order.total
        each = np.repeat(choice.scores(runs, total, ends)[0], runs.lengths)
        at = np.concatenate([np.arange(s, s + n) for s, n in zip(runs.starts, runs.lengths, strict=True)])
        (first,), (last,) = choice.ranges(Runs(*cell, np.array([0]), np.array([total])), total, ends)[0]
        outer = choice.score((np.array([-unknown, last]), np.array([first, unknown])))
        bins = Bins.about(4, 0, width)
        pairs = bins.pairs(choice.ranges(bins.runs(order), total, ends)[0], 2 * UNIT, None)
        return np.minimum(np.append(each[np.argsort(at)], outer)[:, None], -pairs.distances)

    for _ in range(60):
        points, added = rng.integers(0, width, rng.integers(0, 12)), int(rng.integers(width))
        change = scores([*points, added]) - scores(points)
        assert np.ptp(change) <= UNIT
        assert (scores(points).max(axis=None)) == 0  # so some outcome is right, wherever the rank is


def lognormal(rng, n):
    return np.minimum(rng.lognormal(8, 1.5, n).astype(np.int64), 2**20 - 1)


def even(rng, n):
    return rng.integers(0, 2**20, n)


@pytest.mark.parametrize("shape", [even, lognormal])
@pytest.mark.parametrize(("many", "most"), [(1, 5), (3, 2.5), (9, 1.5)])
def test_intervals_are_about_as_wide_as_what_is_promised(many, most, shape):
    """Two ends of cells, or of choices of their own: 27 to 38, 4 to 5 and 2.4 to 6 times what is promised."""
    given = tuple(i / (many + 1) for i in range(1, many + 1))
    plan = plan_for(given, "recursive", Budget(1.0, 0.0), ADD, Grid((0.0,), (2.0**20 - 1,), 1.0))
    values, widths = np.sort(shape(np.random.default_rng(0), 30_000)), []
    for seed in range(20):
        lows, highs = np.array(plan.rounds[0].release(Counts.of(values), None, SeededNoise(seed)).intervals).T
        widths += (np.searchsorted(values, highs, "left") - np.searchsorted(values, lows, "right")).tolist()
    assert np.median(widths) <= most * plan.promises["rank_error"]
