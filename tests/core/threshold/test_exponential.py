"""The exponential mechanism over thresholds: scores by enumeration, its distribution, and its charge."""

import itertools

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.threshold.exponential import ExponentialLearner
from core.threshold.learner import LearnThreshold
from core.threshold.params import Threshold
from core.threshold.task import THRESHOLD
from tests.core.exact import fits
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise
from tests.core.threshold.scores import SIZE, among

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")


def errors_of(examples, size=SIZE):
    return np.array([sum((x >= t) != bool(y) for x, y in examples) for t in range(size + 1)])


def scores_of(examples, size=SIZE):
    """Score of every threshold, as the mechanism sees it."""
    noise = RecordingNoise(SeededNoise(0))
    step = LearnThreshold(1, ExponentialLearner(size, among(1.0)))
    keys = np.array([2 * x + y for x, y in examples], dtype=np.int64)
    step.release(Counts.of(keys), None, noise)
    [(_, scores, _)] = noise.calls
    out, starts = np.zeros(size + 1, dtype=np.int64), runs_of(examples, size)
    for (start, length), score in zip(starts, scores, strict=True):
        out[start : start + length] = score
    return out


def runs_of(examples, size):
    """Points of the examples one by one, then the gaps between them."""
    values = sorted({x for x, _ in examples})
    edges = [-1, *values, size + 1]
    gaps = [(a + 1, b - a - 1) for a, b in itertools.pairwise(edges) if b - a > 1]
    return [(v, 1) for v in values] + gaps


def test_scores_are_minus_the_errors_and_move_by_at_most_one_in_one_direction():
    labeled = list(itertools.product(range(SIZE), (0, 1)))
    for n in range(4):
        for examples in itertools.combinations_with_replacement(labeled, n):
            scores = scores_of(examples)
            assert np.array_equal(scores, -errors_of(examples))
    for extra in labeled:
        moves = scores_of([(1, 0), (3, 1), extra]) - scores_of([(1, 0), (3, 1)])
        assert set(moves.tolist()) <= {0, -1}


def test_thresholds_are_chosen_by_the_exponential_mechanism():
    """6,000 draws, chi-square at 1e-6; half the scale is rejected with power above 1 - 1e-6."""
    examples = [(0, 0), (1, 0), (2, 1), (3, 0), (4, 1), (4, 1)]
    keys = Counts.of(np.array([2 * x + y for x, y in examples]))

    def drawn(scale):
        step, noise = LearnThreshold(1, ExponentialLearner(SIZE, among(scale))), SeededNoise(1)
        return np.bincount([step.release(keys, None, noise).step for _ in range(6000)], minlength=SIZE + 1)

    expected = np.exp(-errors_of(examples) / 1.5)
    assert fits(drawn(1.5), expected)
    assert not fits(drawn(0.75), expected)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.1, 1e-6)])
def test_the_noise_is_as_charged(neighbors, budget):
    params = Threshold(method="exponential")
    plan = THRESHOLD.plan(Grid((0.0, 0.0), (9.0, 1.0), 1.0), params, budget, neighbors, bytes(16))
    noise = RecordingNoise(SeededNoise(0))
    plan.rounds[0].release(Counts.of(np.array([2, 5, 7])), None, noise)
    [(_, _, scale)] = noise.calls
    assert neighbors.changes / scale == pytest.approx(plan.mechanisms[0].epsilon)
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon


@pytest.mark.parametrize("size", [1, 2, 7, 400])
@pytest.mark.parametrize("scale", [0.4, 1.0, 7.3, 20.0])
@pytest.mark.parametrize("failure", [0.01, 0.05, 0.3])
def test_the_promised_errors_hold_and_no_fewer_could_be_promised(size, scale, failure):
    """All thresholds but one make as many errors, and their exact probability is compared with `failure`."""
    promised = ExponentialLearner(size, among(scale)).errors(failure)

    def chance_of_the_others(errors):
        value = size // 2
        examples = errors * [(value - 1, 0)] if value else []
        weights = np.exp(-errors_of([*examples, *errors * [(value, 1)]], size) / scale)
        others = np.delete(weights, value).sum() if value else weights[1:].sum()
        return others / weights.sum()

    assert chance_of_the_others(promised + 1) <= failure
    assert promised == 0 or chance_of_the_others(promised) > failure


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_on_the_hardest_examples_the_promise_is_what_is_measured(neighbors):
    """4,000 runs on a domain of 2^20 values: 5% of them break a smaller promise, and no more break this one.

    A share of the runs has a standard deviation of 0.35%, so both bounds fail with probability below 1e-6.
    """
    grid = Grid((0.0, 0.0), (2.0**20 - 1, 1.0), 1.0)
    plan = THRESHOLD.plan(grid, Threshold(method="exponential"), Budget(0.5, 0.0), neighbors, bytes(16))
    (step,), promised = plan.rounds, plan.promises["errors"]

    def broken(errors):
        keys = np.repeat(np.array([2 * 999, 2 * 1000 + 1]), errors)
        noise = SeededNoise(errors)
        return np.mean([step.release(Counts.of(keys), None, noise).step != 1000 for _ in range(4000)])

    assert broken(promised + 1) < 0.05 + 0.018
    assert broken(promised) > 0.05 - 0.018
