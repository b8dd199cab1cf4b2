"""Thresholds: sensitivity by enumeration, the mechanism's distribution, and the promise."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.draws import Laplace
from core.interior_point.finder import AmongPoints
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise
from core.rounds import Block, run_in_memory
from core.threshold.learners import MOST_RANKS, AmongAll, AmongRanks, Examples, ranked
from core.threshold.plan import FoundThreshold, LearnThreshold, Threshold, plan_threshold
from tests.core.exact import fits, laplace_mass
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
SIZE = 5


def among(scale, spread=1, what="any"):
    return Exponential(what=what, scale=scale, spread=spread)


def errors_of(examples, size=SIZE):
    return np.array([sum((x >= t) != bool(y) for x, y in examples) for t in range(size + 1)])


def scores_of(examples, size=SIZE):
    """Score of every threshold, as the mechanism sees it."""
    noise = RecordingNoise(SeededNoise(0))
    step = LearnThreshold(1, AmongAll(size, among(1.0)))
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
        step, noise = LearnThreshold(1, AmongAll(SIZE, among(scale))), SeededNoise(1)
        return np.bincount([step.release(keys, None, noise).step for _ in range(6000)], minlength=SIZE + 1)

    expected = np.exp(-errors_of(examples) / 1.5)
    assert fits(drawn(1.5), expected)
    assert not fits(drawn(0.75), expected)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.1, 1e-6)])
def test_the_noise_is_as_charged(neighbors, budget):
    params = Threshold(method="exponential")
    plan = plan_threshold(Grid((0.0, 0.0), (9.0, 1.0), 1.0), params, budget, neighbors, b"")
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


def promise_breaks(method, flipped, neighbors, trials):
    grid = Grid((0.0, 0.0), (2.0**30, 1.0), 1.0)
    params = Threshold(alpha=0.05, method=method)
    plan = plan_threshold(grid, params, Budget(1.0, 1e-6), neighbors, b"")
    n, rng, broken = plan.promises["records_needed"], np.random.default_rng(3), 0
    for seed in range(trials):
        points = examples_at(rng, grid, n, flipped)
        block = Block(points, np.arange(n, dtype=np.uint64))
        found = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(seed)).step
        examples = Examples.of_counts(plan.rounds[0].summarize(block, None))
        best = examples.errors(np.append(points[:, 0], grid.extents[0] + 1)).min()
        broken += bool(examples.errors(np.array([found]))[0] - best > params.alpha * n)
    return broken


@pytest.mark.parametrize("flipped", [0.0, 0.1])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("method", ["exponential", "interior_point"])
def test_errors_are_within_alpha_at_the_promised_n(method, flipped, neighbors):
    """30 trials, each failing with probability at most 0.05: 12 failures have probability below 1e-7."""
    assert promise_breaks(method, flipped, neighbors, 30) < 12


@pytest.mark.audit
@pytest.mark.parametrize("flipped", [0.0, 0.1])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("method", ["exponential", "interior_point"])
def test_promise_holds(method, flipped, neighbors):
    """300 runs at failure 0.05: broken in at most that part and 3 standard deviations; 95 of 100 are kept."""
    assert promise_breaks(method, flipped, neighbors, 300) <= 15 + 3 * math.sqrt(300 * 0.05 * 0.95)
    assert promise_breaks(method, flipped, neighbors, 100) <= 5


class Script(Noise):
    """Noise that follows a list of outcomes, takes the first where it ends, and notes their probabilities.

    A noisy number of examples is 0, ..., `most`: the rest counts as the nearest.
    """

    def __init__(self, outcomes, most):
        self.outcomes, self.most = list(outcomes), most
        self.taken, self.options, self.chance = [], [], 1.0

    def take(self, chances):
        i = self.outcomes[len(self.taken)] if len(self.taken) < len(self.outcomes) else 0
        self.taken.append(i)
        self.options.append(len(chances))
        self.chance *= chances[i]
        return i

    def laplace(self, values, scale):
        support, mass = laplace_mass(scale, 2000)
        out = []
        for value in values:
            numbers = np.clip(value + support, 0, self.most)
            out.append(self.take(np.bincount(numbers, mass, minlength=self.most + 1)))
        return np.array(out)

    def select_run(self, scores, lengths, scale):
        weights = np.asarray(lengths) * np.exp(np.asarray(scores) / scale)
        return self.take(weights / weights.sum())

    def below(self, bound):
        return self.take(np.full(bound, 1 / bound))


class Heard:
    """A finder that notes what it found."""

    def __init__(self, finder):
        self.finder, self.points = finder, []

    def find(self, order, noise):
        self.points.append(self.finder.find(order, noise))
        return self.points[-1]


def transcripts(learner, examples):
    """Exact probabilities of all that is drawn on the way: the number, the rank, the point, the threshold."""
    keys = Counts.of(np.array([2 * x + y for x, y in examples], dtype=np.int64))
    out, script = {}, []
    while True:
        noise, finder = Script(script, 6), Heard(learner.finder)
        found = replace(learner, finder=finder).learn(Examples.of_counts(keys), noise)
        drawn = (*noise.taken[:2], *finder.points, found)
        out[drawn] = out.get(drawn, 0.0) + noise.chance
        script = noise.taken
        while script and script[-1] == noise.options[len(script) - 1] - 1:
            script.pop()
        if not script:
            return out
        script[-1] += 1


def largest_loss(total_scale, rank_scale, finder_scale, choice_scale):
    """The largest loss of one example more or less, of all that is drawn together."""
    learner = AmongRanks(
        size=2,
        total=Laplace(what="any", scale=total_scale, sensitivity=1),
        total_margin=0,
        rank=among(rank_scale, 2),
        step=1,
        finder=AmongPoints(2, among(finder_scale, 2)),
        window=1,
        choice=among(choice_scale),
    )
    labeled, losses = list(itertools.product(range(2), (0, 1))), []
    known = {}

    def probabilities(examples):
        key = tuple(sorted(examples))
        if key not in known:
            known[key] = transcripts(learner, key)
        return known[key]

    for n in range(3):
        for examples in itertools.combinations_with_replacement(labeled, n):
            p = probabilities(examples)
            assert sum(p.values()) == pytest.approx(1, abs=1e-6)
            for extra in labeled:
                q = probabilities((*examples, extra))
                assert set(p) == set(q)
                losses += [abs(math.log(p[drawn] / q[drawn])) for drawn in p]
    return max(losses)


def test_ranks_are_as_private_as_charged():
    """Exact losses for one example more: within the charge, even where three of its four parts are tiny."""
    for scales in [
        (2.0, 3.0, 2.0, 2.0),
        (1.0, 50.0, 50.0, 50.0),
        (50.0, 1.0, 50.0, 50.0),
        (50.0, 50.0, 1.0, 50.0),
    ]:
        total, rank, point, choice = scales
        charge = 1 / total + 2 / rank + 2 / point + 1 / choice
        assert largest_loss(*scales) <= charge + 1e-6
    # At half of a scale the charge would not do: the bound has power.
    assert largest_loss(50.0, 0.5, 50.0, 50.0) > 1 / 50 + 2 / 1 + 2 / 50 + 1 / 50
    assert largest_loss(50.0, 50.0, 0.5, 50.0) > 1 / 50 + 2 / 50 + 2 / 1 + 1 / 50


def test_cuts_err_as_thresholds_do_or_more():
    """At the ends of equal values a cut is a threshold; inside, one of the ends is no worse."""
    labeled = list(itertools.product(range(3), (0, 1)))
    for n in range(5):
        for chosen in itertools.combinations_with_replacement(labeled, n):
            examples = Examples.of_counts(Counts.of(np.array([2 * x + y for x, y in chosen], dtype=np.int64)))
            ordered = sorted(chosen, key=lambda example: (example[0], -example[1]))
            cuts = examples.errors_of_cuts(np.arange(n + 3))
            for rank, errors in enumerate(cuts):
                below, above = ordered[:rank], ordered[rank:]
                assert errors == sum(y == 1 for _, y in below) + sum(y == 0 for _, y in above)
            thresholds = examples.errors(np.arange(4))
            assert thresholds.min() == cuts.min()


def test_a_window_around_a_rank_changes_by_one_replacement():
    """Brute force, one example more or another one: cuts' errors move within a range of 2."""
    labeled = list(itertools.product(range(3), (0, 1)))

    def seen(chosen):
        examples = Examples.of_counts(Counts.of(np.array([2 * x + y for x, y in chosen], dtype=np.int64)))
        windows = []
        for rank in range(7):
            around = ranked(examples.all, rank - 1, rank + 2)
            windows.append(Counter(np.repeat(around.values, np.diff(around.ranks)).tolist()))
        return examples.errors_of_cuts(np.arange(7)), windows

    for n in range(4):
        for chosen in itertools.combinations_with_replacement(labeled, n):
            errors, windows = seen(chosen)
            more = [(*chosen, x) for x in labeled]
            other = [(*chosen[:i], x, *chosen[i + 1 :]) for i in range(n) for x in labeled]
            for neighbor in more + other:
                errors_there, windows_there = seen(neighbor)
                assert np.ptp(errors_there - errors) <= 2
                for here, there in zip(windows, windows_there, strict=True):
                    assert (here - there).total() <= 1 and (there - here).total() <= 1


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.1, 1e-6)])
def test_noise_of_ranks_and_points_is_as_charged(neighbors, budget):
    params = Threshold(method="interior_point")
    plan = plan_threshold(Grid((0.0, 0.0), (9.0, 1.0), 1.0), params, budget, neighbors, b"")
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    noise = RecordingNoise(SeededNoise(0))
    plan.rounds[0].release(Counts.of(np.arange(40_000) % 20), None, noise)
    total = [scale for kind, _, scale in noise.calls if kind == "laplace"]
    rank, point, choice = [scale for kind, _, scale in noise.calls if kind == "select_run"]
    assert len(total) == (neighbors is ADD)
    moves = neighbors.moves
    spent = sum(moves / scale for scale in total) + 2 / rank + 2 / point + moves / choice
    assert spent == pytest.approx(sum(m.epsilon for m in plan.mechanisms))


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_the_steps_between_ranks_are_within_the_promise(neighbors):
    """Errors rise and fall by thousands within a step: 20 trials, each failing with probability 0.05."""
    grid = Grid((0.0, 0.0), (2.0**40, 1.0), 1.0)
    params = Threshold(alpha=1e-5, method="interior_point")
    plan = plan_threshold(grid, params, Budget(1.0, 0.0), neighbors, b"")
    n, learner = plan.promises["records_needed"], plan.rounds[0].learner
    assert n > learner.examples_covered
    step = math.ceil((n + learner.total_margin) / MOST_RANKS)
    turn = (n // 2 // step) * step + step // 2  # the best cut is midway between two that are tried
    zeros, ones = np.arange(4000) + 10, np.arange(4000) + 10_000
    keys = np.concatenate([[0], 2 * zeros, 2 * ones + 1, [2 * 99_999 + 1]])
    counts = np.concatenate([[turn - 4000], np.ones(8000, np.int64), [n - turn - 4000]])
    examples = Examples.of_counts(Counts(keys, counts))
    assert examples.errors_of_cuts(np.array([turn]))[0] == 0
    found = np.array([learner.learn(examples, SeededNoise(seed)) for seed in range(20)])
    assert (examples.errors(found) > params.alpha * n).sum() < 10


def test_ranks_divide_ties_and_hold_every_example_once():
    examples = Examples.of_counts(Counts.of(np.array([0, 2, 2, 3, 4, 9, 9, 9])))
    whole = np.repeat(examples.all.values, np.diff(examples.all.ranks))
    for first, last in itertools.combinations_with_replacement(range(9), 2):
        block = ranked(examples.all, first, last)
        assert np.repeat(block.values, np.diff(block.ranks)).tolist() == whole[first:last].tolist()


def test_auto_takes_the_method_that_needs_fewer_examples():
    plan = plan_threshold(Grid((0.0, 0.0), (9.0, 1.0), 1.0), Threshold(), Budget(1.0, 0.0), ADD, b"")
    assert plan.method == "exponential"
    [other] = plan.alternatives.values()
    assert plan.promises["records_needed"] < other["records_needed"]


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
    step = LearnThreshold(1, AmongAll(SIZE, among(0.01)))
    assert 0 <= step.release(Counts.of(np.array([], dtype=np.int64)), None, SeededNoise(0)).step <= SIZE
    assert step.release(Counts.of(np.full(9, 2 * 4)), None, SeededNoise(0)).step == SIZE
    assert step.release(Counts.of(np.full(9, 1)), None, SeededNoise(0)).step == 0
    ranks = AmongRanks.of(SIZE, 50.0, ADD, 0.01)
    for keys in ([], [8] * 9, [1] * 9):
        learned = LearnThreshold(1, ranks).release(
            Counts.of(np.array(keys, dtype=np.int64)), None, SeededNoise(0)
        )
        assert learned.step == (SIZE if 8 in keys else learned.step) and 0 <= learned.step <= SIZE
    assert FoundThreshold(SIZE).result(Grid((1.0, 0.0), (3.0, 1.0), 0.5)) == {"threshold": 3.5}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": 0.0}, r"params\.alpha is 0\.0: it must be at least 1e-05"),
        ({"alpha": 9e-6}, r"params\.alpha is 9e-06"),
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


class AnswersRank(SeededNoise):
    """Answers one rank, and draws all else with hardly any noise."""

    def __init__(self, rank: int) -> None:
        super().__init__(0, 1e-6)
        self.rank = rank

    def answer(self, draw, sample, unit=1.0):
        return self.rank if getattr(draw, "what", "") == "rank" else sample()


@pytest.mark.parametrize("rank", [30, 500, 960])
def test_the_point_is_found_around_the_rank_that_was_drawn(rank):
    """Not around the best one, which only the exact errors tell: here all labels before 500 are 0, then 1."""
    size, window = 1000, 20
    points = among(1.0, 2, "rank"), among(1.0, 2, "choice")
    learner = AmongRanks(
        size, None, 0, points[0], 1, AmongPoints(size, among(1.0, 2, "point")), window, points[1]
    )
    seen = []
    finder = learner.finder

    class Watched:
        def find(self, order, noise):
            seen.append(order)
            return finder.find(order, noise)

        def draws(self):
            return finder.draws()

    keys = np.array([2 * x + (x >= 500) for x in range(size)], dtype=np.int64)
    LearnThreshold(1, replace(learner, finder=Watched())).release(Counts.of(keys), None, AnswersRank(rank))
    (order,) = seen
    assert order.total == 2 * window
    assert (order.values[0], order.values[-1]) == (rank - window, rank + window - 1)
