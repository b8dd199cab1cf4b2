"""The threshold task: the promise of every method, what auto takes, and what is refused."""

import math
import re

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from core.errors import InvalidValue
from core.neighbors import Neighbors
from core.policy import Full, KnownCount, Policy
from core.rounds import Block, run_in_memory
from core.threshold.examples import Examples, labeled
from core.threshold.params import Threshold
from core.threshold.task import THRESHOLD
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")


def examples_at(rng, grid, n, flipped):
    size = grid.extents[0] + 1
    threshold = rng.integers(0, size + 1)
    values = rng.integers(0, size, n)
    labels = (values >= threshold) ^ (rng.random(n) < flipped)
    return np.stack([values, labels * grid.extents[1]], axis=1)


def promise_breaks(method, flipped, neighbors, trials):
    grid = Grid((0.0, 0.0), (2.0**19, 1.0), 1.0)
    params = Threshold(alpha=0.05, method=method)
    plan = THRESHOLD.plan(grid, params, Budget(1.0, 1e-6), neighbors, bytes(16))
    n, rng, broken = plan.promises["records_needed"], np.random.default_rng(3), 0
    for seed in range(trials):
        points = examples_at(rng, grid, n, flipped)
        block = Block(points, np.arange(n, dtype=np.uint64))
        found = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(seed)).step
        examples = Examples.of_counts(labeled(points, 1))
        best = examples.errors(np.append(points[:, 0], grid.extents[0] + 1)).min()
        broken += bool(examples.errors(np.array([found]))[0] - best > params.alpha * n)
    return broken


@pytest.mark.parametrize("flipped", [0.0, 0.1])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("method", ["exponential", "interior_point"])
def test_errors_are_within_alpha_at_the_promised_n(method, flipped, neighbors):
    """30 trials, each failing with probability at most 0.05: 12 failures have probability below 1e-7."""
    assert promise_breaks(method, flipped, neighbors, 30) < 12


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("method", ["exponential", "interior_point"])
def test_the_promised_errors_are_within_alpha_of_the_examples_that_are_needed(method, neighbors):
    """Also where `alpha` divides no number of errors."""
    for alpha in (0.03, 0.07, 0.11):
        params = Threshold(alpha=alpha, method=method)
        promises = THRESHOLD.plan(
            Grid((0, 0), (2**19, 1), 1), params, Budget(1, 0), neighbors, bytes(16)
        ).promises
        assert promises["errors"] <= alpha * promises["records_needed"]


@pytest.mark.audit
@pytest.mark.parametrize("flipped", [0.0, 0.1])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("method", ["exponential", "interior_point"])
def test_promise_holds(method, flipped, neighbors):
    """300 runs at failure 0.05: broken in at most that part and 3 standard deviations; 95 of 100 are kept."""
    assert promise_breaks(method, flipped, neighbors, 300) <= 15 + 3 * math.sqrt(300 * 0.05 * 0.95)
    assert promise_breaks(method, flipped, neighbors, 100) <= 5


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_what_the_promised_errors_allow_for_is_said_in_numbers(neighbors):
    """Of `interior_point`, what the choice of a rank loses beside the window; the choice has 2^18 ranks."""
    grid = Grid((0.0, 0.0), (999.0, 1.0), 1.0)
    params = Threshold(method="interior_point")
    plan = THRESHOLD.plan(grid, params, Budget(1.0, 0.0), neighbors, bytes(16))
    learner, said = plan.rounds[0].learner, plan.tightness["errors"].says.replace(",", "")
    errors, rank, ranks, window = (int(number) for number in re.findall(r"\d+", said))
    assert (errors, ranks, window) == (plan.promises["errors"], 1 << 18, learner.window)
    assert rank == round(learner.rank.scale * math.log(ranks)) < errors - window


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_the_usual_errors_on_spread_values_are_said_in_numbers(neighbors):
    """Of `exponential`: the mean of 400 runs, whose standard error is 5%; the seeds are fixed."""
    grid = Grid((0.0, 0.0), (1999.0, 1.0), 1.0)
    plan = THRESHOLD.plan(grid, Threshold(method="exponential"), Budget(0.5, 0.0), neighbors, bytes(16))
    (step,), values = plan.rounds, np.arange(2000)
    counts = labeled(np.stack([values, values >= 900], axis=1), 1)
    mean = np.mean([abs(step.release(counts, None, SeededNoise(seed)).step - 900) for seed in range(400)])
    said = float(re.search(r"about ([\d.]+) more", plan.tightness["errors"].says).group(1))
    assert 0.75 * mean <= said <= 1.25 * mean


def test_auto_takes_the_method_that_needs_fewer_examples():
    plan = THRESHOLD.plan(Grid((0.0, 0.0), (9.0, 1.0), 1.0), Threshold(), Budget(1.0, 0.0), ADD, bytes(16))
    assert plan.method == "exponential"
    [other] = plan.alternatives.values()
    assert plan.promises["records_needed"] < other["records_needed"]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ((0.0,), (9.0,), "^columns has one column: threshold takes two, the value and the label"),
        ((0.0, 0.0, 0.0), (9.0, 1.0, 1.0), "^columns has 3 columns"),
        ((0.0, 0.5), (9.0, 1.0), r"^lower is 0\.5 for the label: labels are 0 or 1, so it must be 0"),
        ((0.0, 0.0), (9.0, 2.0), r"^upper is 2\.0 for the label: labels are 0 or 1, so it must be 1"),
    ],
)
def test_columns_that_are_no_value_and_label_are_refused(lower, upper, message):
    with pytest.raises(InvalidValue, match=message):
        THRESHOLD.plan(Grid(lower, upper, 0.5), Threshold(), Budget(1.0, 0.0), ADD, bytes(16))


def test_known_counts_are_refused():
    known = Neighbors("replace_one", Policy(Full(), (KnownCount((0, 0), (4, 1), 7),)))
    with pytest.raises(InvalidValue, match="constraints is set: threshold does not support them"):
        THRESHOLD.plan(Grid((0.0, 0.0), (9.0, 1.0), 1.0), Threshold(), Budget(1.0, 0.0), known, bytes(16))


def test_a_label_below_a_half_is_0():
    """Where the step is a third, labels may be rounded to it."""
    plan = THRESHOLD.plan(Grid((0.0, 0.0), (9.0, 1.0), 1 / 3), Threshold(), Budget(1.0, 0.0), ADD, bytes(16))
    counts = plan.rounds[0].summarize(Block(np.array([[5, k] for k in range(4)]), np.arange(4)), None)
    assert counts.keys.tolist() == [10, 11] and counts.counts.tolist() == [2, 2]
