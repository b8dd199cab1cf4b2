"""Privacy of selection by exact summation, and the code against those exact distributions."""

import itertools
import math

import numpy as np
import pytest

from core.neighbors import Neighbors
from core.noise import SecureNoise
from core.selection import (
    ThresholdScales,
    above_threshold,
    above_threshold_error,
    bar_for,
    choose,
    doubling_scale,
    select_in_runs,
    stability_histogram,
    stability_threshold,
)
from tests.core.exact import at_least, excess, fits, laplace_mass
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")


def threshold_distribution(values, threshold, scales, repeat=1):
    """Probability that AboveThreshold releases each index, and at last that it releases none.

    All values but the last are asked `repeat` times; their entries hold the first time only.
    """
    support, mass = laplace_mass(scales.threshold, int(60 * scales.threshold))
    passed, out = np.ones(len(support)), []
    for index, value in enumerate(values):
        reaches = at_least(threshold + support - value, scales.query)
        out.append((mass * passed * reaches).sum())
        passed = passed * (1 - reaches) ** (repeat if index < len(values) - 1 else 1)
    return np.array([*out, (mass * passed).sum()])


def largest_loss(scales, sensitivity, *, one_way):
    """Largest log ratio of output probabilities over lists of many equal values and a last one."""
    moves, losses = range(0 if one_way else -sensitivity, sensitivity + 1), []
    for before in itertools.product((-20, -10, 0), (-40, 0, 3)):
        for move in itertools.product(moves, repeat=2):
            after = np.add(before, move)
            p, q = (threshold_distribution(v, 3, scales, repeat=1000) for v in (before, after))
            losses.append(np.abs(np.log(p / q)).max())
    return max(losses)


@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize(("neighbors", "monotone"), [(ADD, True), (ADD, False), (REPLACE, True)])
def test_above_threshold_spends_what_it_says(neighbors, monotone, sensitivity):
    scales = ThresholdScales.of(1.0, neighbors, monotone=monotone, sensitivity=sensitivity)
    one_way = monotone and neighbors == ADD
    assert 0.9 < largest_loss(scales, sensitivity, one_way=one_way) <= 1 + 1e-9
    halved = ThresholdScales(scales.threshold / 2, scales.query / 2)
    assert largest_loss(halved, sensitivity, one_way=one_way) > 1.5
    assert largest_loss(scales, 2 * sensitivity, one_way=one_way) > 1.5


def test_the_monotone_scales_do_not_serve_a_replacement():
    scales = ThresholdScales.of(1.0, ADD, monotone=True)
    assert largest_loss(scales, 1, one_way=False) > 1.4


def test_above_threshold_has_the_smallest_variance():
    for monotone, s in ((True, 1), (False, 2)):
        scales = ThresholdScales.of(1.0, ADD, monotone=monotone)
        best = min(1 / e**2 + (s / (1 - e)) ** 2 for e in np.linspace(0.01, 0.99, 9801))
        assert scales.threshold**2 + scales.query**2 == pytest.approx(best, rel=1e-6)


def test_above_threshold_draws_that_distribution():
    """3,000 draws; power over 0.999 against halved noise, seen in the last line."""
    values, scales = (0, 2, 4), ThresholdScales(2.0, 4.0)
    expected = threshold_distribution(values, 3, scales)

    def observed(noise):
        drawn = [above_threshold(values, 3, scales.threshold, scales.query, noise) for _ in range(3000)]
        return np.bincount([3 if d is None else d for d in drawn], minlength=4)

    assert fits(observed(SecureNoise()), expected)
    assert fits(observed(SeededNoise(1)), expected)
    assert not fits(observed(SeededNoise(1, factor=0.5)), expected)


def test_above_threshold_reads_no_further_than_it_must():
    read = iter((0, 100, 7))
    assert above_threshold(read, 50, 1.0, 1.0, SeededNoise(0, factor=0)) == 1
    assert list(read) == [7]
    assert above_threshold([], 50, 1.0, 1.0, SeededNoise(0)) is None


def test_above_threshold_error_bounds_every_value():
    """At failure 0.2, more than 260 of 1,000 trials fail with probability below 1e-6 (binomial)."""
    error, noise, failed = above_threshold_error(3.0, 5.0, 20, 0.2), SeededNoise(5), 0
    values = np.arange(-10, 10) * 12
    for _ in range(1000):
        first = above_threshold(values.tolist(), 0, 3.0, 5.0, noise)
        last = len(values) if first is None else first
        above = bool((values[:last] > error).any())
        failed += above or (first is not None and values[first] < -error)
    assert failed <= 260


def choice_distribution(scores, bar, epsilon):
    """Probability of each key in order, and at last of nothing."""
    weights = np.exp(epsilon * np.array(scores, dtype=float)) * (np.array(scores) > 0)
    weights = np.append(weights, math.exp(epsilon * bar))
    return weights / weights.sum()


def largest_choice_excess(bar, epsilon, k, keys=4):
    """Largest delta over all small databases and records touching at most k of the keys."""
    worst = 0.0
    for before in itertools.product(range(4), repeat=keys):
        p = choice_distribution(before, bar, epsilon)
        for touched in itertools.product((0, 1), repeat=keys):
            if sum(touched) <= k:
                q = choice_distribution(np.add(before, touched), bar, epsilon)
                worst = max(worst, excess(p, q, epsilon), excess(q, p, epsilon))
    return worst


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("bar", [-2, 1, 2, 5])
def test_choose_reaches_its_delta_and_no_more(epsilon, k, bar):
    delta = k / (k + math.exp(epsilon * (bar - 1)))
    assert largest_choice_excess(bar, epsilon, k) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_choose_under_replacement_by_group_privacy(epsilon):
    bar, k = 4, 2
    delta = k / (k + math.exp(epsilon * (bar - 1)))
    for common in itertools.product(range(3), repeat=4):
        for leaving, coming in itertools.product([(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1)], repeat=2):
            p, q = (choice_distribution(np.add(common, r), bar, epsilon) for r in (leaving, coming))
            assert excess(p, q, 2 * epsilon) <= (1 + math.exp(epsilon)) * delta


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("k", [1, 64])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.4])
def test_bar_is_the_smallest_that_serves(epsilon, k, delta):
    bar = bar_for(k, epsilon, delta)
    reached = [k / (k + math.exp(epsilon * (b - 1))) for b in (bar, bar - 1)]
    assert reached[0] <= delta * (1 + 1e-9)
    assert reached[1] > delta


def test_choose_draws_that_distribution():
    """3,000 draws; power over 0.999 against halved noise, seen in the last line."""
    scores, bar, epsilon = np.array([0, 3, 1, -5, 4]), 3, 0.7
    expected = choice_distribution(scores, bar, epsilon)

    def observed(noise):
        drawn = [choose(scores, bar, 1 / epsilon, noise) for _ in range(3000)]
        return np.bincount([5 if d is None else d for d in drawn], minlength=6)

    for noise in (SecureNoise(), SeededNoise(1)):
        counts = observed(noise)
        assert counts[0] == counts[3] == 0
        assert fits(counts[[1, 2, 4, 5]], expected[[1, 2, 4, 5]])
    assert not fits(observed(SeededNoise(1, factor=0.5))[[1, 2, 4, 5]], expected[[1, 2, 4, 5]])
    assert choose(np.array([], dtype=np.int64), 3, 1.0, SecureNoise()) is None


def histogram_distribution(counts, scale, threshold):
    """Probability that each cell is released, and at last that none is (ties to the first)."""
    noisy = np.arange(-60, 120)
    below, masses = [], []
    for count in counts:
        a = math.exp(-1 / scale)
        mass = (1 - a) / (1 + a) * a ** np.abs(noisy - count) if count else np.where(noisy == -60, 1.0, 0)
        masses.append(mass)
        below.append(np.concatenate([[0], np.cumsum(mass)]))
    out = []
    for cell, mass in enumerate(masses):
        others = np.ones(len(noisy))
        for other, cumulative in enumerate(below):
            if other != cell:
                others = others * (cumulative[:-1] if other < cell else cumulative[1:])
        out.append((mass * others)[noisy >= threshold].sum())
    return np.array([*out, 1 - sum(out)])


def histogram_pairs(neighbors, threshold):
    """Neighboring histograms of three cells, with counts near 0 and near the threshold."""
    for counts in itertools.product((0, 1, 2, threshold), repeat=3):
        for came in range(3):
            with_new = np.add(counts, np.eye(3, dtype=int)[came])
            if neighbors == ADD:
                yield counts, with_new
            for left in range(3):
                if neighbors == REPLACE and with_new[left] > 0:
                    yield counts, with_new - np.eye(3, dtype=int)[left]


def largest_histogram_excess(neighbors, scale, threshold, epsilon):
    """Largest delta over `histogram_pairs`, both ways."""
    worst = 0.0
    for before, after in histogram_pairs(neighbors, threshold):
        p, q = (histogram_distribution(c, scale, threshold) for c in (before, after))
        worst = max(worst, excess(p, q, epsilon), excess(q, p, epsilon))
    return worst


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_stability_histogram_is_private_exactly(neighbors):
    epsilon, delta = 1.0, 0.01
    scale, threshold = neighbors.moves / epsilon, stability_threshold(epsilon, delta, neighbors)
    a = math.exp(-1 / scale)
    assert a ** (threshold - 1) / (1 + a) <= delta < a ** (threshold - 2) / (1 + a)
    worst = largest_histogram_excess(neighbors, scale, threshold, epsilon)
    assert worst == pytest.approx(a ** (threshold - 1) / (1 + a), rel=1e-6)
    assert largest_histogram_excess(neighbors, scale, threshold - 1, epsilon) > delta
    assert largest_histogram_excess(neighbors, scale / 2, threshold, epsilon) > delta


def test_stability_thresholds_of_the_theory():
    assert stability_threshold(1.0, 1e-5, ADD) == 13
    assert stability_threshold(0.5, 1e-6, ADD) == 28


def test_stability_histogram_draws_that_distribution():
    """3,000 draws; power over 0.999 against halved noise, seen in the last line."""
    counts, scale, threshold = np.array([5, 0, 7, 6]), 2.0, 6
    expected = histogram_distribution(counts, scale, threshold)[[0, 2, 3, 4]]

    def observed(noise):
        drawn = [stability_histogram(counts, scale, threshold, noise) for _ in range(3000)]
        return np.bincount([4 if d is None else d for d in drawn], minlength=5)[[0, 2, 3, 4]]

    assert fits(observed(SecureNoise()), expected)
    assert fits(observed(SeededNoise(2)), expected)
    assert not fits(observed(SeededNoise(2, factor=0.5)), expected)
    assert stability_histogram(np.array([], dtype=np.int64), 1.0, 3, SecureNoise()) is None


def test_select_in_runs_weighs_every_candidate_alike():
    """4,000 draws over 22 candidates; power over 0.999 against halved noise, seen in the last line."""
    scores, lengths = np.array([2, 4, 1]), np.array([11, 1, 10])
    scale, per_doubling = doubling_scale(1.1)
    assert scale * math.log(2) == pytest.approx(per_doubling, rel=1e-12)
    assert scale >= 2 / 1.1
    expected = np.exp(np.repeat(scores, lengths) / scale)

    def observed(noise):
        start = np.append(0, np.cumsum(lengths))
        drawn = [select_in_runs(scores, lengths, 1.1, noise) for _ in range(4000)]
        return np.bincount([start[run] + offset for run, offset in drawn], minlength=22)

    assert fits(observed(SecureNoise()), expected)
    assert fits(observed(SeededNoise(3)), expected)
    assert not fits(observed(SeededNoise(3, factor=0.5)), expected)
