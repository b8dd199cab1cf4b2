"""What all groups of a job spend together between neighbors is at most what the run is charged for.

Neighbors differ in one row or one unit of the whole input. Their records are split by group as in a run. The
rounds of each group are then run on both, with the same answers, and what the draws of all groups really
spend is added up. A replaced row may change its group or stay in it, and a unit is in several groups.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from core.budget import spend
from core.draws import Draw, charged
from core.groups import GroupedPlan
from core.mechanisms.admissible import Admissible
from core.rounds import Block
from pipelines.job.groups import GroupsJob
from tests.pipelines.every_plan import GroupSetting, blocks, grouped_plans
from tests.pipelines.probing import Probe, loss
from tests.pipelines.test_every_plan import aggregate, released
from tests.pipelines.test_every_sensitivity import extremes
from transforms.split_groups import GroupSplit, ReaderOfGroups

_GROUPS = 3
_UNIT = np.uint64(1 << 40)
_RECORDS = 120


@dataclass(frozen=True)
class _Given:
    """Gives records as they are."""

    def blocks(self, element: list[Block]) -> Iterator[Block]:
        return iter(element)


Record = tuple[int, np.ndarray]
"""A group and a point."""


def database(setting: GroupSetting, shape: str, more: list[Record]) -> list[list[Block]]:
    """Return the records of each group, split as in a run: those of a shape, and some more."""
    everybody = blocks(setting, shape, _RECORDS)
    points = np.concatenate([block.points for block in everybody] + [point[None, :] for _, point in more])
    ids = np.concatenate([block.ids for block in everybody] + [np.array([_UNIT])] * len(more))
    groups = np.arange(len(points)) % _GROUPS
    groups[len(points) - len(more) :] = [group for group, _ in more]
    whole = Block(points, ids, None, groups)
    reader = ReaderOfGroups.one(_Given(), GroupSplit(_GROUPS, points.shape[1], b"sixteen secrets."))
    split: list[list[Block]] = [[] for _ in range(_GROUPS)]
    for number, block in reader.blocks_of([whole], range(_GROUPS)):
        split[number].append(block)
    return split


def neighbors(
    setting: GroupSetting, job: GroupsJob, shape: str
) -> Iterator[tuple[str, list[list[Block]], list[list[Block]]]]:
    """Yield pairs of neighbors with what lies between them."""
    some = list(extremes(setting, np.concatenate([block.points for block in blocks(setting, shape)])))
    units = 1 if job.bounds is None else job.bounds.groups
    one, other = some[0], some[-1]
    here = [(group, one) for group in range(units)]
    there = [(group, other) for group in range(_GROUPS - units, _GROUPS)]
    if job.privacy.neighbors == "add_or_remove_one":
        yield "one more", database(setting, shape, []), database(setting, shape, here)
        return
    yield "moved", database(setting, shape, here), database(setting, shape, there)
    stays = [(group, other) for group in range(units)]
    yield "stays", database(setting, shape, here), database(setting, shape, stays)


def losses(setting: GroupSetting, ours: list[Block], theirs: list[Block]) -> Counter[tuple[str, str, Draw]]:
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
    charges: Counter[tuple[str, str, str]] = Counter()
    for draw in plan.mechanisms:
        charges["epsilon", draw.round, draw.mechanism] += draw.epsilon
        charges["rho", draw.round, draw.mechanism] += draw.rho
    for between, ours, theirs in neighbors(setting, job, shape):
        spent: Counter[tuple[str, str, Draw]] = Counter()
        for one, other in zip(ours, theirs, strict=True):
            spent.update(losses(setting, one, other))
        for (kind, round_, draw), lost in spent.items():
            (each, *_) = draw.mechanisms(round_)
            whole = replace(draw, rate=1.0).cost  # a sample is looked at as it is
            sampled = getattr(whole, kind) / getattr(draw.cost, kind) if getattr(draw.cost, kind) else 1.0
            allowed = charges[kind, round_, each.mechanism] * sampled
            assert lost <= allowed * (1 + 1e-9), f"{draw} spends {kind} {lost} where one is {between}"


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
