"""Random paths: exact probabilities on neighbors are within what is charged."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.mechanisms.random_path import RandomPath
from tests.core.trees import neighboring


def path_probabilities(points, bits, trim, rate):
    """Every path of TreeLog and its probability."""
    out = {}

    def go(prefix, level, low, high, p):
        if level == bits or high - low <= trim:
            out[(level, prefix)] = p
            return
        cut = int(np.searchsorted(points, (2 * prefix + 1) << (bits - level - 1)))
        left, right = cut - low, high - cut
        chance = 1.0 if not left else 0.0 if not right else 1 / (1 + math.exp(rate * (left - right)))
        if chance < 1:
            go(2 * prefix, level + 1, low, cut, p * (1 - chance))
        if chance > 0:
            go(2 * prefix + 1, level + 1, cut, high, p * chance)

    go(0, 0, 0, len(points), 1.0)
    return out


def test_random_paths_cost_what_is_charged_and_more_than_their_rate():
    """Exact probabilities on neighbors: the bound holds, and a cost of twice the rate is exceeded (F6)."""
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(1500):
        bits, trim = int(rng.integers(3, 7)), int(rng.integers(5, 9))
        pair = neighboring(rng, bits, int(rng.integers(2 * trim, 200)))
        n = len(pair[0])
        rate = 2 * math.log(n) / trim
        cost = RandomPath(what="any", path_rate=rate, records=n, trim=trim).cost
        a, b = (path_probabilities(p, bits, trim, rate) for p in pair)
        excess = 0.0
        for (level, prefix), p in a.items():
            q = sum(
                value
                for (other, end), value in b.items()
                if end >> max(0, other - level) == prefix >> max(0, level - other)
            )
            excess += max(0.0, p - math.exp(cost.epsilon) * q)
            if q > 0 and p > 1e-6:
                worst = max(worst, math.log(p / q) / rate)
        assert excess <= cost.delta + 1e-12
    assert worst > 1.5


def test_a_path_that_stops_too_late_for_its_proof_is_not_free():
    path_ = RandomPath(what="any", path_rate=0.1, records=1000, trim=138)
    assert 2 * math.log(1000) / 0.1 > 138
    assert path_.cost.epsilon == math.inf
    assert replace(path_, trim=139).cost.epsilon < 2.0


def test_a_path_costs_what_its_proof_counts():
    """Three rates, e^rate, and a rate for each even step, of which log_{4/3}(5) halve the weight."""
    cost = RandomPath(what="any", path_rate=0.1, records=1000, trim=200).cost
    assert cost.epsilon == pytest.approx(0.1 * (3 + 1.1051709 + 5.5945001), rel=1e-6)
    assert cost.delta == pytest.approx(1000 * 2.5175e-9, rel=1e-4)
