"""Thresholds: sensitivity by enumeration, the mechanism's distribution, and the promise."""

import itertools
import math

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.ordered.threshold import FoundThreshold, LearnThreshold, Threshold, plan_threshold
from core.rounds import Block, run_in_memory
from tests.core.exact import fits
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
SIZE = 5


def errors_of(examples, size=SIZE):
    return np.array([sum((x >= t) != bool(y) for x, y in examples) for t in range(size + 1)])


def scores_of(examples, size=SIZE):
    """Score of every threshold, as the mechanism sees it."""
    noise = RecordingNoise(SeededNoise(0))
    step = LearnThreshold(size, 1, 1.0)
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
        step, noise = LearnThreshold(SIZE, 1, scale), SeededNoise(1)
        return np.bincount([step.release(keys, None, noise).step for _ in range(6000)], minlength=SIZE + 1)

    expected = np.exp(-errors_of(examples) / 1.5)
    assert fits(drawn(1.5), expected)
    assert not fits(drawn(0.75), expected)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.1, 1e-6)])
def test_the_noise_is_as_charged(neighbors, budget):
    plan = plan_threshold(Grid((0.0, 0.0), (9.0, 1.0), 1.0), Threshold(), budget, neighbors, b"")
    noise = RecordingNoise(SeededNoise(0))
    plan.rounds[0].release(Counts.of(np.array([2, 5, 7])), None, noise)
    [(_, _, scale)] = noise.calls
    assert neighbors.moves / scale == pytest.approx(plan.mechanisms[0].epsilon)
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon


def examples_at(rng, grid, n, flipped):
    size = grid.extents[0] + 1
    threshold = rng.integers(0, size + 1)
    values = rng.integers(0, size, n)
    labels = (values >= threshold) ^ (rng.random(n) < flipped)
    return np.stack([values, labels * grid.extents[1]], axis=1)


@pytest.mark.parametrize("flipped", [0.0, 0.1])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_errors_are_within_alpha_at_the_promised_n(flipped, neighbors):
    """100 trials, each failing with probability at most 0.05: 20 failures have probability below 1e-6."""
    grid = Grid((0.0, 0.0), (2.0**30, 1.0), 1.0)
    params = Threshold(alpha=0.05)
    plan = plan_threshold(grid, params, Budget(1.0, 1e-6), neighbors, b"")
    n, rng, broken = plan.promises["records_needed"], np.random.default_rng(3), 0
    assert n <= math.ceil(neighbors.moves * math.log(2**31 / 0.05) / 0.05)
    for seed in range(100):
        points = examples_at(rng, grid, n, flipped)
        block = Block(points, np.arange(n, dtype=np.uint64))
        found = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(seed)).step
        candidates = np.append(points[:, 0], grid.extents[0] + 1)
        positive, negative = (np.sort(points[points[:, 1] == y, 0]) for y in (grid.extents[1], 0))

        def errors(t, positive=positive, negative=negative):
            wrong = len(negative) - np.searchsorted(negative, t)
            return np.searchsorted(positive, t) + wrong

        broken += bool(errors(found) - errors(candidates).min() > params.alpha * n)
    assert broken <= 19


@pytest.mark.parametrize("step", [1.0, 0.25])
def test_labels_are_read_on_any_grid(step):
    grid = Grid((0.0, 0.0), (10.0, 1.0), step)
    plan = plan_threshold(grid, Threshold(), Budget(5.0, 0.0), ADD, b"")
    values = np.arange(1000) % 11
    points = grid.quantize(np.stack([values, values >= 4], axis=1).astype(float))
    found = plan.rounds[0].release(
        plan.rounds[0].summarize(Block(points, np.arange(1000)), None), None, SeededNoise(0)
    )
    assert 3 < found.result(grid)["threshold"] <= 4


def test_extreme_databases_have_an_answer():
    step = LearnThreshold(SIZE, 1, 0.01)
    assert 0 <= step.release(Counts.of(np.array([], dtype=np.int64)), None, SeededNoise(0)).step <= SIZE
    assert step.release(Counts.of(np.full(9, 2 * 4)), None, SeededNoise(0)).step == SIZE
    assert step.release(Counts.of(np.full(9, 1)), None, SeededNoise(0)).step == 0
    assert FoundThreshold(SIZE).result(Grid((1.0, 0.0), (3.0, 1.0), 0.5)) == {"threshold": 3.5}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": 0.0}, r"params\.alpha is 0\.0"),
        ({"method": "best"}, r"params\.method is 'best'"),
        ({"failure": 1.5}, r"params\.failure is 1\.5"),
    ],
)
def test_bad_parameters_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        Threshold(**values)


@pytest.mark.parametrize(("upper", "message"), [((9.0,), "two columns"), ((9.0, 2.0), "must be 0 and 1")])
def test_columns_that_are_no_value_and_label_are_refused(upper, message):
    with pytest.raises(ValueError, match=message):
        plan_threshold(Grid((0.0,) * len(upper), upper, 1.0), Threshold(), Budget(1.0, 0.0), ADD, b"")
