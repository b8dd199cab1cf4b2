"""Rounds of centers handle records some at a time, and lose none."""

import numpy as np
import pytest

from core.budget import Budget
from core.centers import space
from core.centers.params import KMeans, KMedian
from core.centers.task import K_MEANS, K_MEDIAN
from core.domain import Grid
from core.errors import InvalidValue
from core.neighbors import Neighbors
from core.policy import Partition, Policy
from core.rounds import Block
from tests.core.seeded import SeededNoise

ADDED = Neighbors("add_or_remove_one")
PARTS = Neighbors("replace_one", Policy(Partition((3, 4))))


@pytest.mark.parametrize(
    ("task", "params", "neighbors", "columns"),
    [
        (K_MEANS, KMeans(3, method="lloyd", iterations=2), ADDED, 2),
        (K_MEANS, KMeans(3, method="lloyd", iterations=2), PARTS, 2),
        (K_MEANS, KMeans(3, method="coreset"), ADDED, 5),
        (K_MEDIAN, KMedian(3), ADDED, 2),
    ],
    ids=["lloyd", "parts", "moments", "medians"],
)
def test_an_aggregate_does_not_depend_on_how_many_records_are_handled_at_a_time(
    task, params, neighbors, columns, monkeypatch
):
    grid = Grid((0.0,) * columns, (11.0,) * columns, 1.0)
    points = np.random.default_rng(0).integers(0, 12, (300, columns))
    block = Block(points, np.arange(300, dtype=np.uint64))
    plan = task.plan(grid, params, Budget(8.0, 1e-6), neighbors, bytes(16))
    state = plan.start
    for number, step in enumerate(plan.rounds):
        whole = step.summarize(block, state)
        with monkeypatch.context() as few:
            few.setattr(space, "_CELLS", 256)
            few.setattr(space, "_ROWS", 7)
            assert step.summarize(block, state) == whole, step.name
        state = step.release(whole, state, SeededNoise(number))


def test_a_radius_of_2_to_the_22_steps_is_too_wide():
    assert space.Space(Grid((0.0,), (2.0**23 - 4,), 1.0)).bits == 0
    with pytest.raises(InvalidValue, match="larger step"):
        space.Space(Grid((0.0,), (2.0**23 - 2,), 1.0))
