"""Looks into a cell: k of them cost together what one costs alone."""

import numpy as np
import pytest

from core.mechanisms.within_cell import WithinCell
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

STARTS, LENGTHS = np.array([0, 1, 6]), np.array([1, 5, 4])


@pytest.mark.parametrize("k", [1, 2, 5])
def test_choices_cost_together_what_is_charged(k):
    """The range of a score's change over its scale, summed over all choices that are made."""
    draw = WithinCell(what="points", scale=2.5)
    noise, unit = RecordingNoise(SeededNoise(0)), 8.0
    scores = [np.array([0, -8 * i, 8 * i]) for i in range(k)]
    chosen = draw.points(STARTS, LENGTHS, scores, k, noise, unit)
    assert len(chosen) == k and all(0 <= point < 10 for point in chosen)
    assert [kind for kind, _, _ in noise.calls] == ["select_run"] * k
    assert noise.lengths == [LENGTHS.tolist()] * k
    assert all((seen == each).all() for (_, seen, _), each in zip(noise.calls, scores, strict=True))
    assert sum(unit / scale for _, _, scale in noise.calls) == pytest.approx(draw.cost_of_one().epsilon)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_histograms_cost_together_what_is_charged(k):
    draw = WithinCell(what="points", scale=2.5)
    noise = RecordingNoise(SeededNoise(0))
    noisy = [draw.histogram(np.arange(4 + i), k, noise) for i in range(k)]
    assert [len(each) for each in noisy] == [4 + i for i in range(k)]
    assert [kind for kind, _, _ in noise.calls] == ["laplace"] * k
    assert sum(1 / scale for _, _, scale in noise.calls) == pytest.approx(draw.cost_of_one().epsilon)


def test_a_choice_is_where_the_score_is():
    """At a score of 50 scales more than elsewhere, another point has probability below 1e-20."""
    draw, scores = WithinCell(what="points", scale=1.0), [np.array([50, 0, 0]), np.array([0, 0, 50])]
    first, second = draw.points(STARTS, LENGTHS, scores, 2, SeededNoise(0), 0.5)
    assert first == 0 and 6 <= second < 10


def test_cells_are_disjoint_and_a_replacement_is_two_changes():
    draw = WithinCell(what="points", scale=4.0, times=7, disjoint=True, changes=2)
    [charged] = draw.mechanisms("quantiles")
    assert charged.epsilon == 0.5
