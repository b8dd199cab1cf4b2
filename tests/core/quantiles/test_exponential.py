"""One value by the exponential mechanism on ranks: exact privacy, its aim, and its promise on any data."""

import itertools
import math

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.gaps import Order, Runs
from core.noise import Noise
from core.quantiles.aim import UNIT, Aim
from core.quantiles.exponential import far_from, per_weight
from core.quantiles.params import Median, Minimum, Quantiles
from core.quantiles.task import MEDIAN, MINIMUM, QUANTILES
from tests.core.exact import excess
from tests.core.quantiles.values import LARGE, PURE, RELATIONS, SMALL, block, released, value
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

ADD, REPLACE = RELATIONS
WIDEST = Grid((0.0,), (2.0**31 - 1,), 1.0)


class Masses(Noise):
    """Keeps the exact probability of every point of a small universe; the first run wins."""

    def select_run(self, scores, lengths, scale):
        self.weights = np.exp(np.asarray(scores) / scale)
        return 0

    def below(self, bound):
        return 0


def masses(aim, values, size, draw):
    order, noise = Order.of(values), Masses()
    aim.point(order, size, draw, noise)
    runs, p = Runs.between(order, 0, size), np.zeros(size)
    for start, length, weight in zip(runs.starts, runs.lengths, noise.weights, strict=True):
        p[start : start + length] = weight
    return p / p.sum()


@pytest.mark.parametrize("far", [None, 1, 2])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(
    ("p", "inside"),
    [(0.5, 0), (0.3, 0), (0.01, 0), (0.99, 0), *itertools.product((0.0, 1.0), (1, 2, 3, 100))],
)
def test_neighbors_are_as_likely_as_charged(relation, p, inside, far):
    """All databases of up to 5 records on 4 points, all neighbors: exact output masses within e^epsilon.

    Also where scores end at a distance, as they do in wide domains.
    """
    epsilon, size = 0.7, 4
    aim = Aim(p, relation.name == "replace_one", inside, far=far)
    draw = per_weight("value", epsilon, relation)
    assert draw.cost.epsilon == pytest.approx(epsilon)
    worst = 0.0
    for n in range(1, 6):
        for values in itertools.combinations_with_replacement(range(size), n):
            here = masses(aim, values, size, draw)
            others = [values[1:]] if relation == ADD else [(*values[1:], y) for y in range(size)]
            for other in others:
                there = masses(aim, other, size, draw)
                assert max(excess(here, there, epsilon), excess(there, here, epsilon)) <= 1e-12
                worst = max(worst, float(np.abs(np.log(here / there)).max()))
    assert worst > 0.3 * epsilon


@pytest.mark.parametrize("records", [0, 3, 2**20, 2**33, 2**40])
@pytest.mark.parametrize("inside", [1, 10**6, 2**36])
@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("public", [False, True])
def test_extremes_of_any_number_of_records_do_not_wrap(records, inside, p, public):
    """No score is positive; where n is private, a record more moves none by more than the larger weight."""
    scores = []
    for more in (0, 1):
        order = Order(np.array([10]), np.array([0, records + more]))
        noise = RecordingNoise(SeededNoise(0))
        Aim(p, public, inside).point(order, 1000, per_weight("value", 1.0, ADD), noise)
        scores.append(noise.calls[0][1])
    assert max(s.max() for s in scores) <= 0
    if records and not public:
        assert np.abs(scores[1] - scores[0]).max() <= UNIT


@pytest.mark.parametrize("method", ["smooth", "exponential"])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("budget", [PURE, Budget(0.1, 1e-9), Budget(3.0, 1e-5)])
def test_the_budget_is_spent_and_no_more(method, relation, grid, budget):
    plan = MEDIAN.plan(grid, Median(method=method, scale_share=0.2), budget, relation, bytes(16))
    assert 0.995 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    assert [step.name for step in plan.rounds] == ["release"]


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(("quantile", "weight"), [(0.5, 0.5), (0.9, 0.9), (0.0, 1.0), (1.0, 1.0)])
def test_draws_are_scaled_as_charged(relation, quantile, weight):
    """With n private a score moves by `weight`; with n public by 1/2 for each of two moves.

    Unless it is an extreme, a twentieth of epsilon pays for the pivot of an interval.
    """
    plan = MEDIAN.plan(LARGE, Median(quantile), Budget(0.7, 0.0), relation, bytes(16))
    noise = RecordingNoise(SeededNoise(0))
    (step,) = plan.rounds
    step.release(step.summarize(block(np.arange(1000) * 1000), None), None, noise)
    change, parts = 2 * weight if relation == ADD else 2, (1.0,) if quantile in (0, 1) else (0.05, 0.95)
    for (kind, _, scale), part in zip(noise.calls, parts, strict=True):
        assert kind == "select_run"
        assert change * UNIT / scale == pytest.approx(0.7 * part, rel=1e-3)


@pytest.mark.parametrize("method", ["smooth", "exponential"])
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_dense_data_are_answered_well(method, grid, relation):
    """20,000 values about the median: nearly always within 1% of the spread."""
    extent = grid.extents[0]
    values = np.clip(np.random.default_rng(1).normal(0.6, 0.05, 20_001) * extent, 0, extent).astype(np.int64)
    truth = float(grid.restore(np.array([np.median(values)]))[0])
    plan = MEDIAN.plan(grid, Median(method=method), PURE, relation, bytes(16))
    errors = [abs(value(plan, grid, values, seed) - truth) for seed in range(20)]
    assert np.median(errors) <= max(grid.step, 0.001 * extent * grid.step)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("method", ["smooth", "exponential"])
def test_minimum_and_maximum(largest, method):
    values = np.concatenate([np.full(500, 2), np.full(500, 198)])  # near the bounds, which others may take
    plan = MINIMUM.plan(SMALL, Minimum(largest=largest, method=method), PURE, ADD, bytes(16))
    answers = [value(plan, SMALL, values, seed) for seed in range(20)]
    assert abs(np.median(answers) - (99.0 if largest else 1.0)) <= 1.5


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_an_extreme_is_not_beyond_all_records(largest, grid, relation):
    """Flake rate: 200 runs with failure 1e-8 each. Aimed at the extreme itself, nearly all would fail."""
    extent = grid.extents[0]
    values = np.random.default_rng(3).integers(extent // 4, 3 * extent // 4, 2000)
    plan = MINIMUM.plan(grid, Minimum(largest=largest, failure=1e-8), PURE, relation, bytes(16))
    inward = np.sort(values)[::-1] if largest else np.sort(values)
    last = inward[plan.promises["rank_error"]]
    for seed in range(25):
        assert min(inward[0], last) <= released(plan, values, seed).step <= max(inward[0], last)
    same = np.full(2000, extent // 3)
    assert all(released(plan, same, seed).step == extent // 3 for seed in range(5))


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("public", [False, True])
def test_an_extreme_of_few_records_is_sought_in_their_middle(p, public):
    draw = per_weight("value", 1.0, ADD)
    few = Order.of([10, 20, 30, 40])
    points = {Aim(p, public, inside=50).point(few, 100, draw, SeededNoise(s, 1e-3)) for s in range(20)}
    assert min(points) >= 20 and max(points) <= 30


def rank_error(values, step, p):
    """Distance of p n from the ranks of a point, in records."""
    below, upto = (int(np.searchsorted(values, step, side)) for side in ("left", "right"))
    return max(0.0, below - p * len(values), p * len(values) - upto)


def heavy(rng, n):
    return np.minimum(WIDEST.extents[0], np.exp(rng.normal(11, 3, n)).astype(np.int64))


def even(rng, n):
    return rng.integers(0, 2**31, n)


def clump(rng, n):
    return 2**30 + np.arange(n)


def tied(rng, n):
    return np.full(n, 2**30)


CASES = [
    ("minimum of 10,000", MINIMUM, Minimum(), even, 10_000),
    ("maximum of 3,000", MINIMUM, Minimum(largest=True), even, 3000),
    ("median of 500 heavy-tailed", MEDIAN, Median(), heavy, 500),
    ("minimum of a clump", MINIMUM, Minimum(), clump, 3000),
    ("minimum of one value", MINIMUM, Minimum(), tied, 3000),
    ("median of a clump", MEDIAN, Median(), clump, 500),
    ("upper tail", MEDIAN, Median(0.99), heavy, 3000),
    ("few", MINIMUM, Minimum(), even, 30),
]


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(("task", "params", "shape", "n"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_promise_holds_on_the_widest_domain(task, params, shape, n, relation):
    """200 runs on 2^31 values, failure 0.1: the promise may break in 20, and in 44 with probability 1e-6.

    Nor is the value beyond the extreme of enough records. Where all records have one value, the bound is
    tight: the promise breaks nearly as often as it may.
    """
    plan = task.plan(WIDEST, params, PURE, relation, bytes(16))
    rng, broken = np.random.default_rng(5), 0
    (step,) = plan.rounds
    for seed in range(200):
        if seed % 10 == 0:
            values = np.sort(shape(rng, n))
            counts = Counts.of(values)
        at = step.release(counts, None, SeededNoise(seed)).step
        extreme = params.quantile in (0, 1) and n >= 2 * step.aim.inside
        beyond = extreme and not values[0] <= at <= values[-1]
        broken += beyond or rank_error(values, at, params.quantile) > plan.promises["rank_error"]
    assert broken <= 44
    if shape is tied:
        assert broken >= 3


COLUMNS = {
    "even": lambda rng: rng.integers(0, 10**6, 3000),
    "heavy tail": lambda rng: np.minimum(10**6 - 1, np.exp(rng.normal(8, 2, 3000)).astype(np.int64)),
    "ties": lambda rng: np.minimum(10**6 - 1, rng.geometric(0.02, 3000) * 100),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_worse_than_quantiles_with_that_one_probability(column, epsilon):
    """The median makes the very same draws. An extreme has the error of the quantile at its aim.

    That one's scale is smaller by max(p, 1 - p) where the number of records is private, some 10% here. 200
    runs: the difference of two means is within 6 of its standard deviations but for 2e-9.
    """
    grid = Grid((0.0,), (1e6 - 1,), 1.0)
    values = np.sort(COLUMNS[column](np.random.default_rng(2)))
    counts, budget = Counts.of(values), Budget(epsilon, 0.0)

    def errors(plan, p, wanted):
        (step,) = plan.rounds
        for seed in range(200):
            found = step.release(counts, None, SeededNoise(seed))
            yield rank_error(values, found.step if hasattr(found, "step") else found.steps[0], wanted)

    median = MEDIAN.plan(grid, Median(), budget, ADD, bytes(16))
    alone = QUANTILES.plan(grid, Quantiles((0.5,), "recursive"), budget, ADD, bytes(16))
    assert list(errors(median, 0.5, 0.5)) == list(errors(alone, 0.5, 0.5))
    assert median.promises == alone.promises
    minimum = MINIMUM.plan(grid, Minimum(), budget, ADD, bytes(16))
    p = minimum.rounds[0].aim.inside / len(values)
    alone = QUANTILES.plan(grid, Quantiles((p,), "recursive"), budget, ADD, bytes(16))
    ours, theirs = (np.array(list(errors(plan, p, 0.0))) for plan in (minimum, alone))
    slack = 6 * math.sqrt((ours.var() + theirs.var()) / 200)
    assert ours.mean() <= 1.02 * theirs.mean() + slack


@pytest.mark.parametrize("method", ["smooth", "exponential"])
@pytest.mark.parametrize("grid", [SMALL, LARGE])
@pytest.mark.parametrize("values", [[], [0], [200], [200] * 50])
def test_releases_are_total(method, grid, values):
    plan = MEDIAN.plan(grid, Median(method=method, scale_share=0.1), PURE, ADD, bytes(16))
    result = released(plan, values).result(grid)
    assert grid.lower[0] <= result.value <= grid.upper[0]
    assert (result.scale is None) == (method == "exponential")


def test_summaries_are_free_of_order():
    (last,) = MEDIAN.plan(SMALL, Median(), PURE, ADD, bytes(16)).rounds
    values = np.random.default_rng(0).integers(0, 201, 500)
    parts = [last.summarize(block(part), None) for part in np.array_split(values, 7)]
    forward, backward = (sum(p[1:], p[0]) for p in (parts, parts[::-1]))
    assert forward == backward == last.summarize(block(values), None)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("quantile", [0.5, 0.9])
@pytest.mark.parametrize("points", [100, 1 << 20])
def test_the_promise_is_reached_where_all_rows_have_the_highest_value(relation, quantile, points):
    """1,000 runs: a promise smaller by one is broken in about 10% of the runs, and this one in no more.

    A share has a standard deviation of 1%.
    """
    grid = Grid((0.0,), (points - 1.0,), 1.0)
    params = Median(quantile=quantile, method="exponential", interval_share=0.0)
    plan = MEDIAN.plan(grid, params, Budget(0.5, 0.0), relation, bytes(16))
    (step,), promise = plan.rounds, plan.promises["rank_error"]

    def broken(error):
        """Share of the runs that release a value which is so far from the wanted rank."""
        counts = Counts.of(np.full(round(error / quantile), points - 1))
        found = [step.release(counts, plan.start, SeededNoise(seed)).step for seed in range(1000)]
        return np.mean(np.array(found) != points - 1)

    assert broken(promise + 1) < plan.failure + 0.03
    assert broken(promise - 1) > plan.failure - 0.03


@pytest.mark.parametrize("share", [1e-12, 1e-9, 1 - 1e-9])
def test_any_part_of_epsilon_may_pay_for_an_interval(share):
    params = Median(method="exponential", interval_share=share)
    plan = MEDIAN.plan(WIDEST, params, PURE, ADD, bytes(16))
    assert 0 < plan.promises["typical_rank_error"] < math.inf


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_the_typical_error_of_a_median_says_what_its_interval_costs(share):
    """By more than its part of epsilon: see `widened`, which `test_task` holds against runs."""
    grid = Grid((0.0,), (10_000.0,), 1.0)
    plans = [
        MEDIAN.plan(grid, Median(method="exponential", interval_share=part), PURE, ADD, bytes(16))
        for part in (0.0, share)
    ]
    without, with_it = (plan.promises["typical_rank_error"] for plan in plans)
    assert 1.15 < with_it * (1 - share) / without < 1.45
    said = f"The standard error of the rank is {with_it / without:.3g} times that without it."
    assert any(said in note for note in plans[1].notes)


@pytest.mark.parametrize("public", [True, False])
def test_points_at_which_scores_end_are_chosen_with_a_ten_billionth_of_the_failure(public):
    """All of them together, beside a point of the wanted rank; a record nearer they would be chosen more."""
    size, aim = 1 << 30, Aim(0.25, public)
    draw = per_weight("value", 0.5, REPLACE if public else ADD)
    far = far_from(aim, size, draw, 0.1)
    chances = [size * math.exp(-(far - nearer) / (aim.weight * draw.scale)) for nearer in (0, 1)]
    assert chances[0] <= 0.1e-10 * (1 + 1e-9) and chances[1] > 0.1e-10
    assert far_from(aim, 1000, draw, 0.1) is None
