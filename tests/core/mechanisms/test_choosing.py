"""The choosing mechanism: privacy by exact summation, and the code against those exact distributions."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from core.mechanisms.choosing import Choosing
from core.secure_noise import SecureNoise
from tests.core.exact import excess, fits
from tests.core.seeded import SeededNoise


def choice_distribution(scores, nothing, epsilon):
    """Probability of each key in order, and at last of nothing."""
    weights = np.exp(epsilon * np.array(scores, dtype=float)) * (np.array(scores) > 0)
    weights = np.append(weights, math.exp(epsilon * nothing))
    return weights / weights.sum()


def largest_choice_excess(nothing, epsilon, k, keys=4):
    """Largest delta over all small databases and records touching at most k of the keys."""
    worst = 0.0
    for before in itertools.product(range(4), repeat=keys):
        p = choice_distribution(before, nothing, epsilon)
        for touched in itertools.product((0, 1), repeat=keys):
            if sum(touched) <= k:
                q = choice_distribution(np.add(before, touched), nothing, epsilon)
                worst = max(worst, excess(p, q, epsilon), excess(q, p, epsilon))
    return worst


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("nothing", [-2, 1, 2, 5])
def test_it_reaches_its_delta_and_no_more(epsilon, k, nothing):
    cost = Choosing(what="any", scale=1 / epsilon, nothing=nothing, keys=k).cost
    assert cost.epsilon == pytest.approx(epsilon)
    assert largest_choice_excess(nothing, epsilon, k) == pytest.approx(cost.delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_replacement_by_group_privacy(epsilon):
    nothing, k = 4, 2
    cost = Choosing(what="any", scale=1 / epsilon, nothing=nothing, keys=k, changes=2).cost
    assert cost.epsilon == pytest.approx(2 * epsilon)
    for common in itertools.product(range(3), repeat=4):
        for leaving, coming in itertools.product([(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1)], repeat=2):
            p, q = (choice_distribution(np.add(common, r), nothing, epsilon) for r in (leaving, coming))
            assert excess(p, q, cost.epsilon) <= cost.delta


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("k", [1, 64])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.4])
def test_nothing_has_the_smallest_score_that_serves(epsilon, k, delta):
    draw = Choosing.of("any", epsilon, delta, k)
    assert draw.cost.delta <= delta * (1 + 1e-9)
    assert replace(draw, nothing=draw.nothing - 1).cost.delta > delta


def test_nothing_scores_no_less_for_a_delta_above_a_half():
    assert Choosing.of("any", 1.0, 0.999, 1) == Choosing.of("any", 1.0, 0.5, 1)


@pytest.mark.parametrize("cuts", [[], [0, 2, 2, 5, 7]], ids=["one part", "parts"])
def test_it_draws_that_distribution(cuts):
    """Keys of one score, too, also in several parts. 3,000 draws; power over 0.999 against halved noise and
    against a first or last key that stands for its score, seen in the last lines."""
    scores, nothing, epsilon = np.array([0, 3, 1, -5, 4, 3, 1, 3]), 3, 0.7
    keys = np.array([10**30, 5, 6, 7, 10**20, 8, 9, -1], dtype=object)
    expected = choice_distribution(scores, nothing, epsilon)
    draw = Choosing(what="any", scale=1 / epsilon, nothing=nothing, keys=1)
    seen = np.append(scores > 0, True)

    def observed(noise):
        parts = list(zip(np.split(keys, cuts), np.split(scores, cuts), strict=True))
        drawn = [draw.choose(lambda: parts, noise) for _ in range(3000)]
        return np.bincount([8 if d is None else keys.tolist().index(d) for d in drawn], minlength=9)

    for noise in (SecureNoise(), SeededNoise(1)):
        counts = observed(noise)
        assert not counts[~seen].any()
        assert fits(counts[seen], expected[seen])
    assert not fits(observed(SeededNoise(1, factor=0.5))[seen], expected[seen])
    for place in (lambda bound: 0, lambda bound: bound - 1):
        stubborn = SeededNoise(1)
        stubborn.below = place
        assert not fits(observed(stubborn)[seen], expected[seen])
    assert draw.choose(lambda: [], SecureNoise()) is None
