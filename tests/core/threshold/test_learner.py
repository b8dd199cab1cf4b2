"""The round of threshold: labels on any grid, and extreme databases."""

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.rounds import Block
from core.threshold.exponential import ExponentialLearner
from core.threshold.found import FoundThreshold, Result
from core.threshold.interior_point import InteriorPointLearner
from core.threshold.learner import LearnThreshold
from core.threshold.params import Threshold
from core.threshold.task import THRESHOLD
from tests.core.seeded import SeededNoise
from tests.core.threshold.scores import SIZE, among

ADD = Neighbors("add_or_remove_one")


@pytest.mark.parametrize("step", [1.0, 0.25])
def test_labels_are_read_on_any_grid(step):
    grid = Grid((0.0, 0.0), (10.0, 1.0), step)
    plan = THRESHOLD.plan(grid, Threshold(), Budget(5.0, 0.0), ADD, bytes(16))
    values = np.arange(1000) % 11
    points = grid.quantize(np.stack([values, values >= 4], axis=1).astype(float))
    found = plan.rounds[0].release(
        plan.rounds[0].summarize(Block(points, np.arange(1000)), None), None, SeededNoise(0)
    )
    assert 3 < found.result(grid).threshold <= 4


def test_extreme_databases_have_an_answer():
    step = LearnThreshold(1, ExponentialLearner(SIZE, among(0.01)))
    assert 0 <= step.release(Counts.of(np.array([], dtype=np.int64)), None, SeededNoise(0)).step <= SIZE
    assert step.release(Counts.of(np.full(9, 2 * 4)), None, SeededNoise(0)).step == SIZE
    assert step.release(Counts.of(np.full(9, 1)), None, SeededNoise(0)).step == 0
    ranks = InteriorPointLearner.of(SIZE, 50.0, ADD, 0.01)
    for keys in ([], [8] * 9, [1] * 9):
        learned = LearnThreshold(1, ranks).release(
            Counts.of(np.array(keys, dtype=np.int64)), None, SeededNoise(0)
        )
        assert learned.step == (SIZE if 8 in keys else learned.step) and 0 <= learned.step <= SIZE
    assert FoundThreshold(SIZE).result(Grid((1.0, 0.0), (3.0, 1.0), 0.5)) == Result(3.5)
    assert FoundThreshold(3).result(Grid((0.0, 0.0), (1.0, 1.0), 0.1)) == Result(0.3)
