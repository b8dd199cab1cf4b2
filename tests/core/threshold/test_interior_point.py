"""A threshold from an interior point: exact privacy losses, what is charged, and steps between ranks."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.draws import Laplace
from core.interior_point.exponential import ExponentialFinder
from core.neighbors import Neighbors
from core.noise import Noise
from core.threshold.examples import Examples
from core.threshold.interior_point import MOST_RANKS, InteriorPointLearner
from core.threshold.learner import LearnThreshold
from core.threshold.params import Threshold
from core.threshold.task import THRESHOLD
from tests.core.exact import laplace_mass
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise
from tests.core.threshold.scores import among

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")


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
    learner = InteriorPointLearner(
        size=2,
        total=Laplace(what="any", scale=total_scale, sensitivity=1),
        total_margin=0,
        rank=among(rank_scale, 2),
        step=1,
        finder=ExponentialFinder(2, among(finder_scale, 2)),
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


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.1, 1e-6)])
def test_noise_of_ranks_and_points_is_as_charged(neighbors, budget):
    params = Threshold(method="interior_point")
    plan = THRESHOLD.plan(Grid((0.0, 0.0), (9.0, 1.0), 1.0), params, budget, neighbors, bytes(16))
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    noise = RecordingNoise(SeededNoise(0))
    plan.rounds[0].release(Counts.of(np.arange(40_000) % 20), None, noise)
    total = [scale for kind, _, scale in noise.calls if kind == "laplace"]
    rank, point, choice = [scale for kind, _, scale in noise.calls if kind == "select_run"]
    assert len(total) == (neighbors is ADD)
    moves = neighbors.changes
    spent = sum(moves / scale for scale in total) + 2 / rank + 2 / point + moves / choice
    assert spent == pytest.approx(sum(m.epsilon for m in plan.mechanisms))


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_the_steps_between_ranks_are_within_the_promise(neighbors):
    """Errors rise and fall by thousands within a step: 20 trials, each failing with probability 0.05."""
    grid = Grid((0.0, 0.0), (2.0**40, 1.0), 1.0)
    params = Threshold(alpha=1e-5, method="interior_point")
    plan = THRESHOLD.plan(grid, params, Budget(1.0, 0.0), neighbors, bytes(16))
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
    learner = InteriorPointLearner(
        size, None, 0, points[0], 1, ExponentialFinder(size, among(1.0, 2, "point")), window, points[1]
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


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("failure", [0.3, 0.1, 1e-6])
def test_what_may_fail_of_a_promise_is_together_as_rare_as_stated(neighbors, failure):
    """The number of examples, the finder and both choices: the first and the last exactly, by their laws."""
    params = Threshold(method="interior_point", failure=failure)
    plan = THRESHOLD.plan(Grid((0.0, 0.0), (9.0, 1.0), 1.0), params, Budget(0.5, 0.0), neighbors, bytes(16))
    learner = plan.rounds[0].learner
    number = 0.0
    if learner.total is not None:
        a = math.exp(-1 / learner.total.scale)
        number = 2 * a ** (learner.total_margin + 1) / (1 + a)
    point = learner.size * math.exp(-learner.window / learner.finder.choice.scale)
    first, second = learner.rank.scale, learner.choice.scale
    lost = plan.promises["errors"] - learner.window - (learner.step + 1) // 2
    lost -= first * math.log(MOST_RANKS) + second * math.log(3)
    choices = (first * math.exp(-lost / first) - second * math.exp(-lost / second)) / (first - second)
    assert number + point + choices <= failure


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_ranks_are_tried_up_to_the_last_example_unless_the_noisy_number_is_as_low_as_it_may_be(neighbors):
    learner = InteriorPointLearner.of(1000, 0.5, neighbors, 0.1)

    class Low(SeededNoise):
        def laplace(self, values, scale):
            return values - learner.total_margin

    for examples in (0, 1, 700, 50_000):
        about = learner.about(examples, Low(0))
        step, most = learner.steps(about)
        assert about == max(1, examples) and step * most >= examples
    assert (learner.total_margin > 0) == (neighbors is ADD)


@pytest.mark.parametrize("step", [1, 7])
def test_cuts_before_all_and_behind_all_examples_are_tried_too(step):
    learner = replace(InteriorPointLearner.of(1000, 0.5, REPLACE, 0.1), step=step)
    keys = np.sort(np.random.default_rng(0).integers(0, 2000, 500))
    examples, noise = Examples.of_counts(Counts.of(keys)), RecordingNoise(SeededNoise(0))
    learner.learn(examples, noise)
    tried = step * np.arange(-(-500 // step) + 1)
    scores = np.repeat(noise.calls[0][1], noise.lengths[0])
    assert sorted(scores) == sorted(-examples.errors_of_cuts(tried))
    assert noise.calls[0][2] == learner.rank.scale


@pytest.mark.parametrize("failure", [0.3, 1e-6])
def test_the_finder_has_a_quarter_of_the_failure(failure):
    """A point outside of the window has the depth 0, and one between both halves of it `window`."""
    learner = InteriorPointLearner.of(1000, 0.5, ADD, failure)
    assert learner.size * math.exp(-learner.window / learner.finder.choice.scale) <= failure / 4


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_the_ranks_that_are_tried_are_as_far_apart_as_promises_take_them_to_be(neighbors):
    """Up to the covered number of examples, whatever the noise; and beyond it at the smallest alpha."""
    learner = InteriorPointLearner.of(1000, 0.5, neighbors, 0.1)
    most = learner.examples_covered + 2 * learner.total_margin
    assert learner.steps(most)[0] == learner.step < learner.steps(most + 1)[0]
    for alpha, times in itertools.product((1e-5, 0.01), (1, 3, 50)):
        n = times * learner.examples_needed(alpha, 0.05)
        step = learner.steps(n + 2 * learner.total_margin)[0]
        assert replace(learner, step=step).errors(0.05) <= alpha * n
