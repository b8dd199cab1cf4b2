"""Counts in place of records: groups that are counted together are answered as if each had its rows alone.

This is checked of every setting that answers groups together (`core.each_group`), with the same draws.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from core.aggregate import Tally
from core.counted_points import ReadsRanks
from core.each_group import EachGroup
from core.rounds import Block, run_in_memory, total_of
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import blocks
from tests.pipelines.test_every_plan import SHAPES, different, named

_GROUPS = 3


def together(name: str) -> EachGroup | None:
    """Return the round that answers groups by the rounds of a setting."""
    setting = named(name)
    if TASKS[setting.job.task].subsamples or setting.job.grid.dimension > 1:
        return None
    points = setting.job.grid.extents[0] + 1
    return EachGroup.of(setting.plan.rounds, setting.plan.start, _GROUPS, points)


@cache
def counted() -> tuple[str, ...]:
    return tuple(name for name in different() if together(name) is not None)


def test_the_tasks_of_ranks_and_interior_points_are_counted_together() -> None:
    tasks = {named(name).job.task for name in counted()}
    assert tasks >= {"quantiles", "median", "minimum", "interior_point"} and len(counted()) > 50
    for task in tasks - {"interior_point"}:  # whose sampling methods need records
        one_column = [name for name in different() if named(name).job.task == task]
        assert all(together(n) is not None for n in one_column if named(n).job.grid.dimension == 1), task


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", counted())
def test_a_group_is_answered_as_alone(name: str, shape: str) -> None:
    """Of three groups one has most rows, and one has none. Draws of a group follow those of the last one."""
    each = together(name)
    assert each is not None
    data = blocks(named(name), shape, 300)
    groups = [2 * (np.arange(len(block.ids)) % 5 == 0) for block in data]
    outside = np.random.default_rng(1).integers(0, 9, (_GROUPS, 2))
    all_groups = [
        replace(block, groups=of, outside=None if number else outside)
        for number, (block, of) in enumerate(zip(data, groups, strict=True))
    ]
    got, noise = run_in_memory((each,), all_groups, None, SeededNoise(1)), SeededNoise(1)
    for group in range(_GROUPS):
        own = [Block(b.points[of == group], b.ids[of == group]) for b, of in zip(data, groups, strict=True)]
        expected = run_in_memory(each.rounds, own, each.start, noise)
        if each.checks is not None:
            expected = each.checks.checked(expected, Tally(outside[group]), noise)
        assert got[group] == (group, expected)
    assert len(got) == _GROUPS


def by_ranks() -> list[str]:
    """Return the settings whose last round reads ranks from counts that wait in sections."""
    last = {name: named(name).plan.rounds[-1] for name in different()}
    return [name for name, step in last.items() if isinstance(step, ReadsRanks) and step.sections]


def test_policies_and_trees_read_ranks_on_wide_domains() -> None:
    settings = [named(name) for name in by_ranks()]
    assert {setting.job.task for setting in settings} >= {"quantiles", "median", "minimum", "interior_point"}
    assert {setting.plan.method for setting in settings} >= {"ordered", "tree"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", by_ranks())
def test_ranks_in_sections_are_those_of_all_counts(name: str, shape: str) -> None:
    """Each release is the same, draw for draw, as if one process held all counts."""
    setting = named(name)
    (step,) = setting.plan.rounds
    data = blocks(setting, shape, 300)
    whole = total_of(step.summarize(block, None) for block in data)
    got = run_in_memory((step,), data, None, SeededNoise(1))
    assert got == step.release(whole, None, SeededNoise(1))
