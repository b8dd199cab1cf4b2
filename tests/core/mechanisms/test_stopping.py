"""Stopping: exact losses where values that come after a large one are anything."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from core.mechanisms.stopping import Stopping
from tests.core.exact import at_least, excess, laplace_mass
from tests.core.seeded import SeededNoise

DRAW = Stopping(what="any", threshold_scale=2.0, query_scale=4.0, threshold=10, large=41, queries=3)


def distribution(values, draw):
    """Probability of each index, and at last of none."""
    support, mass = laplace_mass(draw.threshold_scale, int(60 * draw.threshold_scale))
    passed, out = np.ones(len(support)), []
    for value in values:
        reaches = at_least(draw.threshold + support - value, draw.query_scale)
        out.append((mass * passed * reaches).sum())
        passed = passed * (1 - reaches)
    return np.array([*out, (mass * passed).sum()])


def largest_excess(draw, epsilon, large):
    """Largest delta over neighbors that are close up to the first value of at least `large`."""
    worst = 0.0
    for values in itertools.product((0, 9, 20, large - 1, large), repeat=2):
        for moves in itertools.product((-1, 0, 1), repeat=2):
            pair = [list(values), list(np.add(values, moves))]
            for i in range(2):
                if max(pair[0][i], pair[1][i]) >= large:
                    pair = [[*pair[0][: i + 1], -100, -100], [*pair[1][: i + 1], 500, 500]]
                    break
            p, q = (distribution(v[:3], draw) for v in pair)
            worst = max(worst, excess(p, q, epsilon), excess(q, p, epsilon))
    return worst


def test_it_is_as_private_as_it_says():
    cost = DRAW.cost
    assert cost.epsilon == pytest.approx(1.0)
    assert cost.delta == DRAW.missed(30, 3) < 0.03
    assert 0 < largest_excess(DRAW, cost.epsilon, DRAW.large) <= cost.delta
    assert largest_excess(DRAW, cost.epsilon, 20) > cost.delta
    assert replace(DRAW, large=20).cost.delta > largest_excess(DRAW, cost.epsilon, 20)
    assert replace(DRAW, threshold=45).cost.delta == 1


def test_it_stops_at_its_threshold():
    assert DRAW.stop([9, 10, 300], SeededNoise(0, factor=0)) == 1
    assert DRAW.stop([9, 9, 9], SeededNoise(0, factor=0)) is None
