"""Cells of an axis, and the median that is chosen among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.mechanisms.exponential import Exponential, missed_scores
from core.noise import Noise
from core.order_statistics import choose_by_rank, smooth_sensitivity
from core.sample_and_aggregate.median import MEDIAN, Cells, MedianOfAnswers, about_median
from core.sample_and_aggregate.outputs import Outputs
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.smooth_median import SmoothMedianOfAnswers
from core.sample_and_aggregate.stable_radius import StableRadius
from core.task import Setting
from tests.core.sample_and_aggregate.test_task import ADD, BUDGET, PLANE, REPLACE, plan_for
from tests.core.seeded import SeededNoise


@given(st.integers(1, 300), st.integers(0, 400))
def test_cells_cover_the_axis_and_their_middles_are_near(extent, most):
    cells = Cells.of(extent, most)
    points = np.arange(extent + 1)
    inside = cells.cells_of(points)
    assert inside.min() == 0 and inside.max() == cells.last < max(3, most)
    assert (np.diff(inside) >= 0).all() and len(set(inside.tolist())) == cells.last + 1
    for point, cell in zip(points.tolist(), inside.tolist(), strict=True):
        assert abs(cells.middle(cell) - point) <= cells.width // 2
    assert cells.middle(int(inside[extent // 2])) == extent // 2


class Scores(Noise):
    """Notes the scores of each point, and chooses the first run."""

    def __init__(self):
        self.scores = []

    def select(self, scores, scale):
        return 0

    def laplace(self, values, scale):
        return values

    def select_run(self, scores, lengths, scale):
        self.scores.append((np.asarray(scores), np.asarray(lengths)))
        return 0

    def answer(self, draw, sample, unit=1.0):
        return sample()


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_one_answer_moves_every_score_by_one_and_every_axis_is_charged(relation, monkeypatch):
    """By all cells, also those beyond all answers: the runs are expanded, and compared between neighbors."""
    plan = plan_for("median", blocks=30, relation=relation)
    (step,) = plan.rounds
    draws = [m for m in plan.mechanisms if "median of an axis" in m.mechanism]
    assert len(draws) == 2
    assert all(m.epsilon == pytest.approx(relation.changes * 2 / m.scale) for m in draws)
    rng = np.random.default_rng(0)
    for part in [1, 2, 9] * 10:
        points = rng.integers(0, PLANE.extents[0] // part + 1, (30, 2))
        other = points.copy()
        other[0] = rng.choice([0, PLANE.extents[0] // 2, PLANE.extents[0]])
        expanded = []
        for answers in (points, other):
            asked = []
            monkeypatch.setattr(
                "core.mechanisms.exponential.Exponential.point",
                lambda self, starts, lengths, scores, noise, asked=asked: (
                    asked.append((np.asarray(starts), np.asarray(lengths), np.asarray(scores))) or 0
                ),
            )
            step.release(Outputs.of(np.arange(30, dtype=np.uint64), answers), None, Scores())
            by_cell = []
            for starts, lengths, scores in asked:
                order = np.argsort(starts)
                by_cell.append(np.repeat(scores[order], lengths[order]))
            expanded.append(by_cell)
        for one, two in zip(*expanded, strict=True):
            assert len(one) == len(two) == step.cells[0].last + 1
            assert np.abs(one - two).max() <= 1
            assert one.max() == two.max() == 0


def test_the_median_is_exact_where_the_blocks_are_many():
    plan = plan_for("median", blocks=1000)
    assert {cells.width for cells in plan.rounds[0].cells} == {1}
    assert plan.promises["errors"] == (PLANE.step,) * 2
    assert plan.spend.epsilon <= BUDGET.epsilon


@pytest.mark.parametrize("blocks", range(3, 14))
def test_cells_without_those_that_agree_are_as_far_from_the_median_as_promised(blocks, monkeypatch):
    """Those that do not agree are all at one end of the axis. For one of its ends the margin is reached."""
    asked = []
    monkeypatch.setattr(
        "core.mechanisms.exponential.Exponential.point",
        lambda self, starts, lengths, scores, noise: asked.append((starts, scores)) or 0,
    )
    for agreeing in range(1, blocks + 1):
        params, away = SampleAndAggregate(blocks, stable_fraction=agreeing / blocks), []
        method = MedianOfAnswers(Setting(PLANE, params, BUDGET, ADD, bytes(16)))
        for others in (0, 10):
            counts = Counts.of(np.repeat([5, others], [agreeing, blocks - agreeing]))
            choose_by_rank(counts, 10, MEDIAN, Exponential(what="", scale=1.0, spread=2), SeededNoise(0))
            starts, scores = asked.pop()
            away.append(-scores[np.asarray(starts) != 5].max())
        assert method.stable == agreeing
        assert min(away) == method._margin or method._margin <= 0


@pytest.mark.parametrize("axes", [1, 2, 4])
def test_the_cells_of_all_axes_share_the_probability_that_their_promise_fails(axes):
    grid = Grid((0.0,) * axes, (1.0,) * axes, 2.0**-20)
    params = SampleAndAggregate(200, failure=0.1)
    method = MedianOfAnswers(Setting(grid, params, Budget(0.4 * axes, 0.0), ADD, bytes(16)))
    choice, failure = method._round(1.0).choice, method.value_failure / axes
    most = method._promised_cells(choice)
    assert most > 3
    assert choice.scale * missed_scores(most, failure) <= method._margin + 1e-9
    assert choice.scale * missed_scores(most + 1, failure) > method._margin


def test_nothing_is_promised_where_one_axis_has_more_cells_than_the_promise_allows():
    """The other axis has few points, so that its cells always are few enough."""
    grid, promised = Grid((0.0, 0.0), (3.0, 2.0**20), 1.0), []
    for blocks in range(10, 300, 5):
        params = SampleAndAggregate(blocks)
        method = MedianOfAnswers(Setting(grid, params, BUDGET, ADD, bytes(16)))
        (step,) = method.rounds(1.0)
        most = method._promised_cells(step.choice)
        promised.append(method.accuracy(1.0).promises.errors is not None)
        assert promised[-1] == all(cells.last + 1 <= most for cells in step.cells)
    assert True in promised and False in promised


@pytest.mark.parametrize("blocks", [9, 10])
def test_a_radius_tells_of_the_median_only_if_it_holds_more_than_half(blocks):
    """In the plane, as many answers are 0 as the radius holds, and all others are far away."""
    choice, grid = Exponential(what="radius", scale=1e-3, spread=2), Grid((0.0, 0.0), (99.0, 99.0), 1.0)
    for holds in range(1, blocks + 1):
        points = np.zeros((blocks, 2), dtype=np.int64)
        points[holds:] = 99
        radius = StableRadius(grid, holds, holds, choice)
        steps, errors = about_median(radius, points, np.zeros(2, dtype=np.int64), SeededNoise(0))
        upper = np.sort(points[:, 0])[blocks // 2]  # the larger one of two medians
        assert steps == 0 and errors == ((0.0, 0.0) if upper == 0 else None)
        steps, errors = about_median(radius, points, np.full(2, 3), SeededNoise(0))
        assert steps == 5 and errors == ((5.0, 5.0) if upper == 0 else None)  # next to the root of 18


@pytest.mark.parametrize("beta", [0.05, 0.5])
def test_the_noise_of_the_smooth_median_vanishes_as_fast_as_promised(beta):
    """Those that do not agree are at the far end of the axis, on either side."""
    for blocks in range(3, 40):
        params = SampleAndAggregate(blocks)
        method = SmoothMedianOfAnswers(Setting(PLANE, params, BUDGET, ADD, bytes(16)))
        for agreeing in range(1, blocks + 1):
            spare = method._spare(agreeing)
            for others in (0, 1000) if spare >= 0 else ():
                points = np.repeat([1000 - others, others], [agreeing, blocks - agreeing])
                smooth = smooth_sensitivity(Counts.of(points), 1000, MEDIAN, beta, REPLACE)
                assert smooth <= 1000 * np.exp(-beta * spare) * (1 + 1e-9)


def test_the_promised_spread_covers_a_median_with_noise_between_two_groups_of_stable_answers():
    """They are 2 D apart, and so is the median from what one change makes of it."""
    grid, wide = Grid((0.0,), (2.0**20,), 1.0), 1000
    params = SampleAndAggregate(2000, stable_fraction=1.0)
    method = SmoothMedianOfAnswers(Setting(grid, params, Budget(4.0, 1e-6), ADD, bytes(16)))
    noise, promises = method._round(1.0).noise, method.accuracy(1.0).promises
    counts = Counts.of(np.repeat([5000 - wide, 5000 + wide], 1000))
    smooth = smooth_sensitivity(counts, grid.extents[0], MEDIAN, noise.beta, REPLACE)
    assert smooth >= 2 * wide
    moved = wide + noise.scale(smooth) * noise.tail(method._failure)
    assert moved <= promises.spread_factor * wide + promises.errors[0] <= 1.1 * moved
