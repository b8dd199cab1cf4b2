"""AboveThreshold: privacy by exact summation, and the code against those exact distributions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from core.budget import Cost
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.tails import some_exceeds
from core.neighbors import Neighbors
from core.secure_noise import SecureNoise
from tests.core.exact import at_least, fits, laplace_mass
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")


def at(threshold_scale, query_scale):
    return AboveThreshold(what="any", threshold_scale=threshold_scale, query_scale=query_scale)


def threshold_distribution(values, threshold, draw, repeat=1):
    """Probability that AboveThreshold releases each index, and at last that it releases none.

    All values but the last are asked `repeat` times; their entries hold the first time only.
    """
    support, mass = laplace_mass(draw.threshold_scale, int(60 * draw.threshold_scale))
    passed, out = np.ones(len(support)), []
    for index, value in enumerate(values):
        reaches = at_least(threshold + support - value, draw.query_scale)
        out.append((mass * passed * reaches).sum())
        passed = passed * (1 - reaches) ** (repeat if index < len(values) - 1 else 1)
    return np.array([*out, (mass * passed).sum()])


def largest_loss(draw, sensitivity, *, one_way):
    """Largest log ratio of output probabilities over lists of many equal values and a last one."""
    moves, losses = range(0 if one_way else -sensitivity, sensitivity + 1), []
    for before in itertools.product((-20, -10, 0), (-40, 0, 3)):
        for move in itertools.product(moves, repeat=2):
            after = np.add(before, move)
            p, q = (threshold_distribution(v, 3, draw, repeat=1000) for v in (before, after))
            losses.append(np.abs(np.log(p / q)).max())
    return max(losses)


@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize(("neighbors", "counts"), [(ADD, True), (ADD, False), (REPLACE, True)])
def test_it_spends_what_it_says(neighbors, counts, sensitivity):
    draw = AboveThreshold.of("any", 1.0, neighbors, counts=counts, sensitivity=sensitivity)
    one_way = counts and neighbors == ADD
    assert draw.cost == Cost(pytest.approx(1.0))
    assert 0.9 < largest_loss(draw, sensitivity, one_way=one_way) <= 1 + 1e-9
    halved = replace(draw, threshold_scale=draw.threshold_scale / 2, query_scale=draw.query_scale / 2)
    assert largest_loss(halved, sensitivity, one_way=one_way) > 1.5
    assert halved.cost == Cost(pytest.approx(2.0))
    assert largest_loss(draw, 2 * sensitivity, one_way=one_way) > 1.5


def test_the_monotone_scales_do_not_serve_a_replacement():
    draw = AboveThreshold.of("any", 1.0, ADD, counts=True)
    assert largest_loss(draw, 1, one_way=False) > 1.4
    assert replace(draw, monotone=False).cost.epsilon > 1.4


def test_it_has_the_smallest_variance():
    for counts, s in ((True, 1), (False, 2)):
        draw = AboveThreshold.of("any", 1.0, ADD, counts=counts)
        best = min(1 / e**2 + (s / (1 - e)) ** 2 for e in np.linspace(0.01, 0.99, 9801))
        assert draw.threshold_scale**2 + draw.query_scale**2 == pytest.approx(best, rel=1e-6)


def test_it_draws_that_distribution():
    """3,000 draws; power over 0.999 against halved noise, seen in the last line."""
    values, draw = (0, 2, 4), at(2.0, 4.0)
    expected = threshold_distribution(values, 3, draw)

    def observed(noise):
        drawn = [draw.first(values, 3, noise) for _ in range(3000)]
        return np.bincount([3 if d is None else d for d in drawn], minlength=4)

    assert fits(observed(SecureNoise()), expected)
    assert fits(observed(SeededNoise(1)), expected)
    assert not fits(observed(SeededNoise(1, factor=0.5)), expected)


def test_it_reads_no_further_than_it_must():
    read = iter((0, 100, 7))
    assert at(1.0, 1.0).first(read, 50, SeededNoise(0, factor=0)) == 1
    assert list(read) == [7]
    assert at(1.0, 1.0).first([], 50, SeededNoise(0)) is None


def test_the_error_bounds_every_value():
    """At failure 0.2, more than 260 of 1,000 trials fail with probability below 1e-6 (binomial)."""
    draw, noise, failed = at(3.0, 5.0), SeededNoise(5), 0
    error, values = draw.error(20, 0.2), np.arange(-10, 10) * 12
    for _ in range(1000):
        first = draw.first(values.tolist(), 0, noise)
        last = len(values) if first is None else first
        above = bool((values[:last] > error).any())
        failed += above or (first is not None and values[first] < -error)
    assert failed <= 260


@pytest.mark.parametrize("scales", [(2.0, 4.0), (9.0, 1.0), (1.0, 9.0)])
@pytest.mark.parametrize("queries", [1, 7, 300])
def test_what_is_missed_is_the_least_bound(scales, queries):
    """Over all integers, for every error; and no more than the failure that an error is made for."""
    draw = at(*scales)
    for error in range(0, 200, 7):
        z = np.arange(error + 1)
        bounds = np.exp(-z / scales[0]) + queries * np.exp(-(error - z) / scales[1])
        assert draw.missed(error, queries) == pytest.approx(min(1.0, bounds.min()))
    for failure in (0.3, 1e-3, 1e-9):
        assert draw.missed(draw.error(queries, failure), queries) <= failure
    assert draw.missed(-1, queries) == 1


def test_what_is_missed_covers_the_noise():
    """Exactly: the noise of threshold and one of three values together exceed 20 no more often."""
    draw = at(2.0, 3.0)
    (t, t_mass), (q, q_mass) = laplace_mass(2.0, 200), laplace_mass(3.0, 200)
    within = np.array([q_mass[np.abs(q) <= 20 - abs(z)].sum() for z in t])
    exact = 1 - (t_mass * within**3).sum()
    assert exact <= draw.missed(20, 3) < 20 * exact


@pytest.mark.parametrize("queries", [1, 60, 1000])
def test_the_shortfall_is_the_least_that_the_tail_allows(queries):
    draw = AboveThreshold(what="x", threshold_scale=8.0, query_scale=8.0, monotone=True)
    least = draw.shortfall(queries, 0.03)
    assert some_exceeds(queries, 8.0, least, 8.0) <= 0.03 < some_exceeds(queries, 8.0, least - 1, 8.0)
    assert least < draw.error(queries, 0.03)
