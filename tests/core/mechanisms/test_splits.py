"""Splits of an axis: exact privacy of every outcome, few cells on any data, and what becomes a cell."""

import itertools
import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from core.aggregate import Counts
from core.gaps import Order
from core.mechanisms.splits import Splits
from core.noise import Noise
from tests.core.exact import at_least
from tests.core.seeded import SeededNoise


class Scripted(Noise):
    """Splits as the script says, and keeps the logarithm of the probability of that."""

    def __init__(self, script, threshold):
        self.script, self.threshold, self.asked, self.log = script, threshold, 0, 0.0

    def laplace(self, values, scale):
        split = np.array([self._next() for _ in values])
        p = at_least(self.threshold + 1 - np.asarray(values), scale)
        self.log += float(np.log(np.where(split, p, 1 - p)).sum())
        return np.where(split, self.threshold + 1, self.threshold)

    def _next(self):
        self.asked += 1
        if self.asked > len(self.script):
            self.script.append(False)
        return self.script[self.asked - 1]


def outcomes(draw, values, size, threshold, most=10**6):
    """Return every set of edges and its probability, by all sequences of decisions."""
    order, found, script = Order.of(values), defaultdict(float), []
    while True:
        noise = Scripted(script, threshold)
        edges = draw.edges(order.ranks_at, size, threshold, most, noise)
        found[tuple(edges.tolist())] += math.exp(noise.log)
        script = noise.script[: noise.asked]
        while script and script[-1]:
            script.pop()
        if not script:
            return found
        script[-1] = True


@pytest.mark.parametrize(("scale", "decay"), [(2.0, 2), (1.0, 1), (3.5, 3), (0.3, 1)])
@pytest.mark.parametrize("size", [8, 11])
def test_outcomes_of_neighbors_are_as_likely_as_charged(scale, decay, size):
    """Records at one point, as many as make every b possible; and the charge is nearly reached."""
    draw = Splits(what="cells", scale=scale, decay=decay)
    epsilon, threshold, worst = draw.cost.epsilon, 3, 0.0
    for n in range(3 * decay + 8):
        here = outcomes(draw, [2] * n, size, threshold)
        assert sum(here.values()) == pytest.approx(1)
        for point in (2, 3, size - 1):
            there = outcomes(draw, [2] * n + [point], size, threshold)
            assert here.keys() == there.keys()
            worst = max(worst, *(abs(math.log(there[edges] / p)) for edges, p in here.items()))
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= 0.9 * epsilon


def test_outcomes_of_a_limited_number_of_cells_are_as_likely_as_charged():
    draw = Splits.of("cells", 1.5)
    for most in (1, 2, 3, 5):
        here, there = (outcomes(draw, values, 8, 2, most) for values in ([1] * 6, [1] * 7))
        assert max(len(edges) - 1 for edges in here) == most
        assert max(abs(math.log(there[edges] / p)) for edges, p in here.items()) <= 1.5


@pytest.mark.parametrize(("scale", "decay"), [(2.0, 2), (1.0, 1), (3.5, 3), (0.3, 1)])
def test_outcomes_of_a_replacement_are_as_likely_as_charged(scale, decay):
    """U + 1 / scale, and not less: the record moves between two points whose paths part at the root."""
    size, threshold, worst = 8, 3, 0.0
    draw = Splits(what="cells", scale=scale, decay=decay, replaced=True, changes=2)
    for n, m in itertools.product(range(threshold + 3 * decay), (0, threshold, threshold + 3 * decay)):
        here, there = (outcomes(draw, [1] * n + [6] * m + [at], size, threshold) for at in (1, 6))
        worst = max(worst, *(abs(math.log(there[edges] / p)) for edges, p in here.items()))
    assert worst <= draw.cost.epsilon * (1 + 1e-9)
    assert worst >= 0.8 * draw.cost.epsilon
    one = Splits(what="cells", scale=scale, decay=decay).cost.epsilon
    assert draw.cost.epsilon == pytest.approx(one + 1 / scale)
    added = Splits(what="cells", scale=scale, decay=decay, changes=2)
    assert added.cost.epsilon == pytest.approx(2 * one)  # two additions, as of a unit with two rows
    assert replace(draw, rate=0.5).cost == replace(added, rate=0.5).cost  # the proof knows no sample


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("epsilon", [*10.0 ** np.linspace(-6, 3, 91)])
def test_what_is_asked_for_is_not_overspent(epsilon, changes):
    draw = Splits.of("cells", epsilon, changes)
    assert draw.cost.epsilon <= epsilon
    if epsilon < 0.1:
        assert draw.cost.epsilon >= 0.97 * epsilon


SIZE = 1 << 40
SHAPES = {
    "empty": np.empty(0, dtype=np.int64),
    "even": np.random.default_rng(0).integers(0, SIZE, 100_000),
    "one value": np.full(100_000, 12_345),
    "clump": SIZE // 3 + np.arange(100_000),
    "powers": 1 << np.random.default_rng(0).integers(0, 40, 100_000),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_cells_are_few_and_none_of_several_points_is_large(shape):
    """A node of 40 decays and 40 scales above the threshold stays whole with probability e^-40."""
    order, draw = Order.of_counts(Counts.of(SHAPES[shape])), Splits.of("cells", 0.1)
    for seed in range(5):
        edges = draw.edges(order.ranks_at, SIZE, 10_000, 10**6, SeededNoise(seed))
        assert (edges[0], edges[-1]) == (0, SIZE) and (np.diff(edges) > 0).all()
        counts, widths = np.diff(order.ranks_at(edges)), np.diff(edges)
        assert counts[widths > 1].max(initial=0) <= 10_000 + 40 * (draw.decay + draw.scale)
        assert len(counts) <= 200


def test_one_value_becomes_a_cell():
    """Its count is 40 decays and 40 scales above the threshold."""
    draw = Splits.of("cells", 1.0)
    order = Order.of([SIZE // 7] * (100 + math.ceil(80 * (draw.decay + draw.scale))))
    edges = draw.edges(order.ranks_at, SIZE, 100, 10**6, SeededNoise(0)).tolist()
    assert {SIZE // 7, SIZE // 7 + 1} <= set(edges)
