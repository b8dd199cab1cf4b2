"""What all groups of a job spend together between neighbors is at most what the run is charged for.

Neighbors differ in one row or one unit of the whole input. Their records are split by group as in a run. The
rounds of each group are then run on both, with the same answers, and what the draws of all groups really
spend is added up. A replaced row may change its group or stay in it, and a unit is in several groups.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest

from core.budget import spend
from core.draws import Draw, charged
from core.groups import GroupedPlan
from core.mechanisms.admissible import Admissible
from core.rounds import Block
from pipelines.job.groups import GroupsJob
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import GroupSetting, blocks, grouped_plans
from tests.pipelines.probing import Probe, loss
from tests.pipelines.test_every_plan import aggregate, released
from tests.pipelines.test_every_sensitivity import extremes
from transforms.split_groups import GroupSplit, ReaderOfGroups

_GROUPS = 4
_UNIT = np.uint64(1 << 40)
_RECORDS = {"one_cluster": 3600, "k_cover": 8000, "minimum": 600}
"""Of tasks whose later draws need more than 120 records in all groups together."""


@dataclass(frozen=True)
class _Given:
    """Gives records as they are."""

    def blocks(self, element: list[Block]) -> Iterator[Block]:
        return iter(element)


Record = tuple[int, np.ndarray | None]
"""A group and a point; None where it is a block without an answer."""


def answers(setting: GroupSetting, shape: str, more: list[Record]) -> list[list[Block]]:
    """Return the answers of each group's blocks, of which the first ones are others."""
    everybody = np.concatenate([block.points for block in blocks(setting, shape)])
    found = []
    for group in range(_GROUPS):
        points, own = everybody.copy(), [point for place, point in more if place == group]
        answered = np.ones(len(points), dtype=np.bool_)
        for number, point in enumerate(own):
            answered[number] = point is not None
            points[number] = 0 if point is None else point
        found.append([Block(points[answered], np.flatnonzero(answered).astype(np.uint64))])
    return found


def database(setting: GroupSetting, shape: str, more: list[Record]) -> list[list[Block]]:
    """Return the records of each group, split as in a run: those of a shape, and some more."""
    if TASKS[setting.job.task].subsamples:
        return answers(setting, shape, more)
    everybody = blocks(setting, shape, _RECORDS.get(setting.job.task, 120))
    points = np.concatenate([block.points for block in everybody] + [point[None, :] for _, point in more])
    ids = np.concatenate([block.ids for block in everybody] + [np.array([_UNIT])] * len(more))
    groups = np.arange(len(points)) % _GROUPS
    groups[len(points) - len(more) :] = [group for group, _ in more]
    outside = np.zeros((_GROUPS, 2 * points.shape[1]), np.int64)
    for group, point in more:  # left out, or moved, in every column
        outside[group, point[0] % 2 :: 2] += 1
    whole = Block(points, ids, outside if setting.job.checks else None, groups)
    reader = ReaderOfGroups.one(_Given(), GroupSplit(_GROUPS, points.shape[1], b"sixteen secrets."))
    split: list[list[Block]] = [[] for _ in range(_GROUPS)]
    for number, block in reader.blocks_of([whole], range(_GROUPS)):
        split[number].append(block)
    return split


Databases = tuple[list[list[Block]], list[list[Block]]]
"""Two neighbors, by group."""


def every_neighbors(setting: GroupSetting, job: GroupsJob, shape: str) -> Iterator[Databases]:
    """Yield neighbors that differ in one record or unit, for many of its values."""
    points = np.concatenate([block.points for block in blocks(setting, shape)])
    some: list[np.ndarray | None] = list(extremes(setting, points))
    units = 1 if job.bounds is None else job.bounds.groups
    if TASKS[job.task].subsamples:
        before, moved = database(setting, shape, []), changes_of(job)  # a block that is left, and one entered
        for one in [*some, None]:
            more = [(group, one) for group in range(units) for _ in range(moved)]
            yield before, database(setting, shape, more)
        return
    before = database(setting, shape, []) if job.privacy.neighbors == "add_or_remove_one" else None
    for number, one in enumerate(some):
        here = database(setting, shape, [(group, one) for group in range(units)])
        if before is not None:
            yield before, here
            continue
        other = some[-1 - number]
        there = [(group, other) for group in range(_GROUPS - units, _GROUPS)]
        yield here, database(setting, shape, there)
        stays = [(group, other) for group in range(units)]
        yield here, database(setting, shape, stays)


def neighbors(setting: GroupSetting, job: GroupsJob, shape: str) -> Iterator[Databases]:
    """Yield the first of these, or where one is replaced the first two: it moves, or it stays."""
    yield from islice(every_neighbors(setting, job, shape), 1 if changes_of(job) == 1 else 2)


@dataclass(frozen=True)
class Charges:
    """What a run is charged for each draw of its groups, by kind, round and name."""

    each: Mapping[tuple[str, str, str], float]

    def of(self, kind: str, round_: str, draw: Draw) -> float:
        """Return what a draw is charged, for records that are all in the sample, since none is drawn here."""
        (named, *_) = draw.mechanisms(round_)
        whole = replace(draw, rate=1.0).cost
        sampled = getattr(whole, kind) / getattr(draw.cost, kind) if getattr(draw.cost, kind) else 1.0
        return self.each[kind, round_, named.mechanism] * sampled


def charges_of(plan: GroupedPlan) -> Charges:
    """Return the charges of all groups together."""
    found: Counter[tuple[str, str, str]] = Counter()
    for draw in plan.mechanisms:
        found["epsilon", draw.round, draw.mechanism] += draw.epsilon
        found["rho", draw.round, draw.mechanism] += draw.rho
    return Charges(found)


def of_a_group(
    setting: GroupSetting, ours: list[Block], theirs: list[Block]
) -> Counter[tuple[str, str, Draw]]:
    """Return what each draw of each round of a group spends: its epsilon and its rho."""
    total: Counter[tuple[str, str, Draw]] = Counter()
    state = setting.plan.start
    for number, step in enumerate(setting.plan.rounds):
        first = Probe(seed=number)
        after = released(step, aggregate(step, ours, state), state, first)
        again = Probe(first.looks)
        released(step, aggregate(step, theirs, state), state, again)
        for one, other in zip(first.looks, again.looks, strict=True):
            if one.asked is not None:
                epsilon, rho = loss(one, other)
                total["epsilon", step.name, one.draw] += epsilon
                total["rho", step.name, one.draw] += rho
        state = after
    return total


def smooth(plan: GroupedPlan) -> bool:
    """Say whether noise follows from the records, as `test_every_smooth_bound` looks at."""
    return any(isinstance(draw, Admissible) for step in plan.each.rounds for draw in step.draws())


@pytest.mark.parametrize("shape", ["uniform", "one_value"])
@pytest.mark.parametrize("name", [name for name, (_, plan) in grouped_plans().items() if not smooth(plan)])
def test_all_groups_together_spend_what_is_charged(name: str, shape: str) -> None:
    job, plan = grouped_plans()[name]
    setting = GroupSetting(name, job.of_each(plan.budget), plan)
    charges = charges_of(plan)
    for ours, theirs in neighbors(setting, job, shape):
        spent: Counter[tuple[str, str, Draw]] = Counter()
        for one, other in zip(ours, theirs, strict=True):
            spent.update(of_a_group(setting, one, other))
        for (kind, round_, draw), lost in spent.items():
            assert lost <= charges.of(kind, round_, draw) * (1 + 1e-9), f"{draw} spends {kind} {lost}"


def changes_of(job: GroupsJob) -> int:
    return 1 if job.privacy.neighbors == "add_or_remove_one" else 2


@pytest.mark.parametrize("name", grouped_plans())
def test_what_is_charged_is_within_the_budget(name: str) -> None:
    """Computed again: composition over the groups of a unit, then group privacy for a replacement."""
    job, plan = grouped_plans()[name]
    budget, groups = job.privacy.budget(), 1 if job.bounds is None else job.bounds.groups
    assert len(plan.mechanisms) == groups * len(charged(plan.each.rounds))
    delta = groups * plan.budget.delta
    together = spend(charged(plan.each.rounds) * groups, delta).epsilon
    one = min(together, groups * plan.each.spend.epsilon)
    if changes_of(job) == 1:
        assert one <= budget.epsilon * (1 + 1e-9) and delta <= budget.delta
    else:
        assert 2 * one <= budget.epsilon * (1 + 1e-9)
        assert (1 + math.exp(one)) * delta <= budget.delta * (1 + 1e-9)
    assert plan.spend.epsilon <= budget.epsilon * (1 + 1e-9)
    assert plan.spend.epsilon >= 0.9 * budget.epsilon  # and it is not wasted
