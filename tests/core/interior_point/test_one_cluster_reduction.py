"""The reduction to the 1-cluster: candidates, what is drawn, and what it does not serve."""

import math

import numpy as np
import pytest

import core.interior_point.one_cluster_reduction
from core.budget import Budget
from core.domain import Grid
from core.errors import InvalidValue
from core.gaps import Order
from core.one_cluster.found import Found
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.method import Practical
from core.task import Setting
from tests.core.interior_point.universe import BUDGET, REPLACE, planned
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


def test_ends_of_pieces_are_the_candidates():
    """Every point of a small ball; of a wide one, pieces shorter than the smallest ball is wide."""
    finder = planned("one_cluster", 1 << 20).rounds[0].finder
    assert finder.candidates(50, 1) == [49, 50, 51]
    for radius in (2, 5, 17, 1000, 12345):
        ends = finder.candidates(10**5, radius)
        assert ends[0] == 10**5 - radius
        assert ends[-1] == 10**5 + radius
        assert len(ends) <= finder.most_candidates
        assert max(np.diff(ends)) <= max(1, radius / finder.factor)


def test_the_choice_of_an_end_is_as_charged():
    finder = planned("one_cluster", 1 << 10).rounds[0].finder
    noise = RecordingNoise(SeededNoise(0))
    assert finder.find(Order.of([77] * finder.records_needed(0.1)), noise) == 77
    assert finder.find(Order.of([77] * 5), noise) is None
    kind, _, scale = noise.calls[-1]
    assert kind == "select"
    assert 2 / scale == pytest.approx(finder.draws()[-1].cost.epsilon)


def test_the_ball_holds_the_middle_and_ends_are_chosen_by_their_depth_among_all(monkeypatch):
    finder, seen = planned("one_cluster", 1 << 10).rounds[0].finder, []

    def ball(rounds, blocks, start, noise):
        seen.append(blocks[0].points[:, 0].tolist())
        return Found(np.array([500]), 3, 0)

    monkeypatch.setattr(core.interior_point.one_cluster_reduction, "run_in_memory", ball)
    points = np.sort(np.random.default_rng(0).binomial(1000, 0.5, finder.middle + 401))
    noise = RecordingNoise(SeededNoise(0))
    assert finder.find(Order.of(points.tolist()), noise) in finder.candidates(500, 3)
    assert seen == [points[200:-201].tolist()]
    depths = [min((points <= end).sum(), (points >= end).sum()) for end in finder.candidates(500, 3)]
    ((_, scores, _),) = noise.calls
    assert np.ptp(scores - np.array(depths)) == 0


@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-6])
def test_the_choice_of_an_end_fails_with_half_of_the_failure(failure):
    """An end as deep as all that is left out on one side, against all others at depth 0."""
    finder = planned("one_cluster", 1 << 20).rounds[0].finder
    beside = (finder.records_needed(failure) - finder.middle) // 2
    assert finder.most_candidates * math.exp(-beside / finder.end.scale) <= failure / 2


def test_the_ball_fails_with_the_other_half():
    """Target and thresholds are those of a 1-cluster of half the failure and half of epsilon."""
    size, half = 1 << 20, Budget(BUDGET.epsilon / 2, BUDGET.delta)
    finder = planned("one_cluster", size).rounds[0].finder
    params, line = OneCluster(finder.middle, 0.1 / 2, "practical"), Grid((0,), (size - 1,), 1)
    ball = Practical(Setting(line, params, half, REPLACE, bytes(16)), bounded=True)
    assert ball.accuracy(1.0).smallest_target == finder.middle
    assert ball.rounds(1.0)[0].region.floor == finder.ball[0].region.floor
    assert ball.rounds(1.0)[0].radius.target == finder.ball[0].radius.target


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.02])
def test_records_that_are_numbered_by_their_ranks_are_never_sampled(epsilon):
    """These numbers are the same in each execution of a pipeline, which has one salt: so would samples be.

    From a target of 8,000 on, the 1-cluster of other records samples.
    """
    finder = planned("one_cluster", 1 << 20, Budget(epsilon, 1e-6)).rounds[0].finder
    located = finder.ball[0]
    assert (located.radius.sample.rate, located.region.sample.rate) == (1.0, 1.0)
    assert all(draw.rate == 1.0 for draw in finder.draws())


def test_one_cluster_is_refused_where_distances_do_not_fit():
    for size in (2**31 + 1, 2**62):
        with pytest.raises(ValueError, match=r"method is one_cluster: .* 2\^31 grid points"):
            planned("one_cluster", size)
    assert set(planned("auto", 2**62).alternatives) == {"heavy_paths", "tree_log"}


def test_a_budget_that_promises_no_ball_is_refused():
    with pytest.raises(InvalidValue, match=r"epsilon is 1e-12: it is too small for method one_cluster"):
        planned("one_cluster", 1 << 20, Budget(1e-12, 1e-6))
