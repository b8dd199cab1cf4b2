"""The rounds of interior_point: every database ends, and no machine holds more than the subset."""

from dataclasses import replace

import numpy as np
import pytest

from core.aggregate import Sample
from core.domain import Grid
from core.interior_point.found import FoundPoint, Result
from core.interior_point.params import InteriorPoint
from core.interior_point.task import INTERIOR_POINT
from core.rounds import Block, run_in_memory
from tests.core.interior_point.universe import BUDGET, METHODS, REPLACE
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("method", METHODS)
def test_every_database_ends(method):
    grid = Grid((-5.0,), (1000.0,), 0.5)
    plan = INTERIOR_POINT.plan(grid, InteriorPoint(method), BUDGET, REPLACE, bytes(16))
    for n in (0, 1, 2, 4000):
        points = np.full((n, 1), grid.extents[0])
        block = Block(points, np.arange(n, dtype=np.uint64))
        found = run_in_memory(plan.rounds, [block], plan.start, SeededNoise(n))
        assert found.step is None or 0 <= found.step <= grid.extents[0]
    assert FoundPoint(4).result(grid) == Result(-3.0)
    assert FoundPoint(None).result(grid) is None


class Beyond:
    """A finder whose point is beyond the grid."""

    def find(self, order, noise):
        return 1023


def test_a_universe_that_is_no_power_of_two_is_not_left():
    plan = INTERIOR_POINT.plan(
        Grid((0.0,), (1000.0,), 1.0), InteriorPoint("tree_log"), BUDGET, REPLACE, bytes(16)
    )
    [step] = plan.rounds
    records = step.summarize(Block(np.full((30_000, 1), 1000), np.arange(30_000, dtype=np.uint64)), None)
    assert {step.release(records, None, SeededNoise(s)).step for s in range(3)} <= {1000, None}
    beyond = replace(step, finder=Beyond())
    assert beyond.release(records, None, SeededNoise(0)).step == 1000


@pytest.mark.parametrize("method", METHODS[1:])
def test_no_machine_holds_more_records_than_are_used(method):
    grid = Grid((0.0,), (2.0**30,), 1.0)
    plan = INTERIOR_POINT.plan(grid, InteriorPoint(method), BUDGET, REPLACE, bytes(16))
    [step], most = plan.rounds, plan.promises["records_needed"]
    rng, total = np.random.default_rng(0), None
    for number in range(12):
        points = rng.integers(10**6, 10**8, (4096, 1))
        part = step.summarize(Block(points, np.arange(4096, dtype=np.uint64) + np.uint64(number << 12)), None)
        total = part if total is None else total + part
        assert len(total.points) <= most
    assert step.floor is None
    assert isinstance(total, Sample)
    assert len(total.points) == min(most, 12 * 4096)
    assert 10**6 <= step.release(total, None, SeededNoise(0)).step <= 10**8
    assert any(f"{most:,} records, chosen at random" in note for note in plan.notes)
    assert plan.held.counts == most and not plan.held.growing


@pytest.mark.parametrize("method", METHODS[1:])
def test_what_is_drawn_does_not_depend_on_records_beyond_the_sample(method):
    """The same draws on the sample alone and on all records: the rest of them was not looked at."""
    plan = INTERIOR_POINT.plan(
        Grid((0.0,), (2.0**20,), 1.0), InteriorPoint(method), BUDGET, REPLACE, bytes(16)
    )
    [step] = plan.rounds
    points = np.random.default_rng(2).integers(0, 2**20, (30_000, 1))
    block = Block(points, np.arange(30_000, dtype=np.uint64))
    least = step.summarize(block, None)
    alone = Block(least.points[:, None], least.ids)
    assert step.summarize(alone, None) == least
    noises = RecordingNoise(SeededNoise(5)), RecordingNoise(SeededNoise(5))
    found = [
        run_in_memory([step], [rows], None, noise) for rows, noise in zip((block, alone), noises, strict=True)
    ]
    assert found[0] == found[1]
    assert len(noises[0].calls) == len(noises[1].calls) > 0


def test_rounds_say_what_they_find_out():
    grid = Grid((0.0,), (1000.0,), 1.0)
    for method, words in (("exponential", "the largest row"), ("tree_log", "rows chosen at random")):
        [step] = INTERIOR_POINT.plan(grid, InteriorPoint(method), BUDGET, REPLACE, bytes(16)).rounds
        assert words in step.purpose
