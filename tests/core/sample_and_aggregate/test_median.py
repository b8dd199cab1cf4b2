"""Cells of an axis, and the median that is chosen among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.noise import Noise
from core.sample_and_aggregate.median import Cells
from core.sample_and_aggregate.outputs import Outputs
from tests.core.sample_and_aggregate.test_task import ADD, BUDGET, PLANE, REPLACE, plan_for


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
    """By all cells: the runs are expanded, and compared between databases that differ in one answer."""
    plan = plan_for("median", blocks=30, relation=relation)
    (step,) = plan.rounds
    draws = [m for m in plan.mechanisms if "median of an axis" in m.mechanism]
    assert len(draws) == 2
    assert all(m.epsilon == pytest.approx(relation.changes * 2 / m.scale) for m in draws)
    rng = np.random.default_rng(0)
    for _ in range(30):
        points = rng.integers(0, PLANE.extents[0] + 1, (30, 2))
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
