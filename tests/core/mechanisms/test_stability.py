"""Stability histograms: privacy by exact summation, and the code against those exact distributions."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from core.mechanisms.stability import StabilityHistogram
from core.neighbors import Neighbors
from core.secure_noise import SecureNoise
from tests.core.exact import excess, fits
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")


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
def test_it_is_private_exactly(neighbors):
    epsilon, delta = 1.0, 0.01
    draw = StabilityHistogram.of("any", epsilon, delta, neighbors)
    scale, threshold, cost = draw.scale, draw.threshold, draw.cost
    assert scale == neighbors.changes / epsilon
    assert cost.epsilon == pytest.approx(epsilon)
    assert cost.delta <= delta < replace(draw, threshold=threshold - 1).cost.delta
    worst = largest_histogram_excess(neighbors, scale, threshold, epsilon)
    assert worst == pytest.approx(cost.delta, rel=1e-6)
    assert largest_histogram_excess(neighbors, scale, threshold - 1, epsilon) > delta
    assert largest_histogram_excess(neighbors, scale / 2, threshold, epsilon) > delta


def test_thresholds_of_the_theory():
    assert StabilityHistogram.of("any", 1.0, 1e-5, ADD).threshold == 13
    assert StabilityHistogram.of("any", 0.5, 1e-6, ADD).threshold == 28


def test_the_fullest_has_that_distribution():
    """3,000 draws; power over 0.999 against halved noise, seen in the last line."""
    counts, keys = np.array([5, 0, 7, 6]), np.array([3, 1, 2**70, 0], dtype=object)
    draw = StabilityHistogram(what="any", scale=2.0, threshold=6, l1=1)
    expected = histogram_distribution(counts, 2.0, 6)[[0, 2, 3, 4]]

    def observed(noise):
        drawn = [draw.fullest(keys, counts, noise) for _ in range(3000)]
        places = [4 if d is None else keys.tolist().index(d) for d in drawn]
        return np.bincount(places, minlength=5)[[0, 2, 3, 4]]

    assert fits(observed(SecureNoise()), expected)
    assert fits(observed(SeededNoise(2)), expected)
    assert not fits(observed(SeededNoise(2, factor=0.5)), expected)
    empty = np.array([], dtype=np.int64)
    assert draw.fullest(empty, empty, SecureNoise()) is None


def test_it_finds_what_it_needs():
    """At failure 0.2, more than 260 of 1,000 trials fail with probability below 1e-6 (binomial)."""
    draw = StabilityHistogram(what="any", scale=3.0, threshold=9, l1=1)
    counts, noise = np.append(np.ones(9, dtype=np.int64), draw.needs(10, 0.2)), SeededNoise(5)
    assert sum(draw.fullest(np.arange(10), counts, noise) is None for _ in range(1000)) <= 260


@pytest.mark.parametrize("cells", [1, 10, 1000])
@pytest.mark.parametrize("failure", [0.3, 0.01, 1e-9])
def test_what_it_needs_lets_no_noise_of_any_cell_hide_the_fullest(cells, failure):
    """Exactly: the noise of every cell is within the margin; four records less would not do."""
    draw = StabilityHistogram(what="any", scale=3.0, threshold=9, l1=1)
    margin = draw.needs(cells, failure) - draw.threshold
    a = math.exp(-1 / draw.scale)

    def some(beyond):
        return -math.expm1(cells * math.log1p(-2 * a ** (beyond + 1) / (1 + a)))

    assert some(margin) <= failure < some(margin - 4)
