"""What every draw spends between neighbors is at most what it is charged for, in every plan of a job.

A planned task is run on a database, and the answers of its draws are noted. The task is then run on neighbors
with the same answers, and every draw's exact values and scales of noise are recorded. From these the test
computes what the draw really spends. It fails on a wrong sensitivity, unit or scale, on a forgotten factor of
group privacy, on draws that are wrongly called disjoint, and on a threshold or candidate that is not public.

Not tested here: smooth sensitivity (see `test_every_smooth_bound.py`), walks down a tree, whose values may
change by any amount at the price of delta, and known counts, under which neighbors differ in several records.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from core.draws import Draw
from core.k_cover.rounds import CoverRound
from core.mechanisms.admissible import Admissible
from core.mechanisms.choosing import Choosing
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection
from core.mechanisms.stability import StabilityHistogram
from core.mechanisms.stability_axes import StabilityAxes
from core.one_cluster.practical.locate import FindRadiusAndRegion
from core.policy import Partition
from core.rounds import Block
from tests.pipelines.every_plan import Setting, blocks, with_groups
from tests.pipelines.probing import Look, Probe, born, changes_of, groups_alone, loss
from tests.pipelines.test_every_plan import aggregate, covered, named, released

_RECORDS = {"one_cluster": 900, "k_cover": 450, "k_means": 300, "k_median": 300, "threshold": 400}
_WALKS = ("heavy_paths", "tree_log")


@cache
def by_relation() -> tuple[str, ...]:
    """Return the names of settings, one for all that have equal rounds under the same relation.

    `different` would not do: if a replaced record is wrongly charged like an added one, the rounds of both
    relations are equal, and `different` leaves out one of them.
    """
    rounds = {
        repr((s.job.task, s.job.privacy.neighbors, s.plan.rounds, s.plan.start)): name
        for name, s in reversed(covered().items())
    }
    return tuple(sorted(rounds.values()))


def looked_at(name: str) -> bool:
    setting = named(name)
    policy = setting.job.privacy.policy
    if setting.job.task == "k_cover" and policy:
        return False  # its rounds are those of the relation
    held = [draw for step in setting.plan.rounds for draw in step.draws()]
    smooth = any(isinstance(draw, Admissible) for draw in held) and setting.job.task != "sample_and_aggregate"
    return setting.plan.method not in _WALKS and not smooth and not (policy and policy.constraints)


def extremes(setting: Setting, points: np.ndarray) -> np.ndarray:
    """Return records to add: corners, the middle, one that is there, near and far ones, ends of its part."""
    extents = np.asarray(setting.job.grid.extents)
    there = points[0] if len(points) else extents // 3
    step = np.eye(len(extents), dtype=np.int64)[0]
    policy = setting.plan.policy
    far = step * (min(extents[0], 1) if policy is None else min(extents[0], policy.secrets.reach(extents)))
    some = [0 * extents, extents, extents // 2, there, there + step, there + far, there - far, far]
    half = np.arange(len(extents)) < len(extents) // 2
    some += [np.where(part, *ends) for part in (step, half) for ends in ((extents, 0), (0, extents))]
    if policy is not None and isinstance(policy.secrets, Partition):
        widths = np.asarray(policy.secrets.widths)
        first = there // widths * widths
        some += [first, first + widths - 1]
    return np.unique(np.clip(some, 0, extents).astype(np.int64), axis=0)


def secret(setting: Setting, one: np.ndarray, other: np.ndarray) -> bool:
    """Say whether two records may be replaced by one another."""
    if (one == other).all():
        return False
    if setting.job.task == "mst_cost" and setting.job.task_params.change == "weight":
        return bool((one[:2] == other[:2]).all())
    if setting.plan.policy is None:  # the plan says that it hides every pair
        return True
    return bool(setting.plan.policy.secrets.joins(one, one, other, other))


def floor_of(step: Any) -> int:
    """Return the clipping floor of a round: of its aggregate, or of what it counts in its release."""
    while hasattr(step, "round_"):
        step = step.round_
    if isinstance(step, CoverRound):
        step = step.search.step(step.target.each or 1)
    return max(step.floor or 0, step.region.floor if isinstance(step, FindRadiusAndRegion) else 0)


Databases = tuple[dict[Any, list[Block]], list[tuple[Any, Any]]]


def neighbors(setting: Setting, shape: str) -> Databases:
    """Return databases by name, and the pairs of them that are neighbors."""
    floor = max(map(floor_of, setting.plan.rounds), default=0)
    if shape == "at_the_floor":  # where one record more shows a cell
        data = blocks(setting, "one_value", max(1, floor))
    else:
        data = blocks(setting, shape, _RECORDS.get(setting.job.task, 60))
    points = np.concatenate([block.points for block in data])
    more = extremes(setting, points)
    if setting.job.task == "sample_and_aggregate":
        moves, found = setting.job.neighbors.changes, {}
        for number, point in enumerate(more):
            answers = points.copy()
            answers[:moves] = point
            found[number] = [Block(answers, np.arange(len(answers), dtype=np.uint64))]
        failed = np.arange(moves, len(points), dtype=np.uint64)
        found[len(more)] = [Block(points[moves:], failed)]
        return found, list(itertools.combinations(found, 2))
    ids = np.array([1 << 40], dtype=np.uint64)
    outside = np.eye(2, dtype=np.int64).repeat(len(more[0]), axis=1)  # left out, or moved, in every column
    blocks_of = [Block(point[None, :], ids, outside[i % 2]) for i, point in enumerate(more)]
    found = {i: [*data, with_groups(setting, block, alone=i % 3 == 0)] for i, block in enumerate(blocks_of)}
    if setting.job.bounds is not None and setting.job.bounds.rows > 1:  # units with one row in each group
        more = np.concatenate([more, more[[0, -1, 0, -1]]])
        for i, block in enumerate([blocks_of[0], blocks_of[-1]] * 2):
            found[len(found)] = [*data, with_groups(setting, block, alone=i < 2, few=True)]
    if setting.job.privacy.neighbors == "add_or_remove_one":
        return {None: data} | found, [(None, i) for i in range(len(more))]
    pairs, few = itertools.combinations(range(len(more)), 2), len(blocks_of)
    return found, [(i, j) for i, j in pairs if i < few <= j or secret(setting, more[i], more[j])]


def merged(step: Any, setting: Setting, data: list[Block], state: Any) -> Any:
    """Aggregate a database: its records may each stand for several, and what a neighbor has more for one."""
    if setting.copies == 1:
        return aggregate(step, data, state)
    total = aggregate(replace(step), data[:2], state, setting.copies)
    return total if len(data) == 2 else total + step.summarize(data[2], state)


def compared(setting: Setting, shape: str, factor: float) -> Iterator[tuple[Any, list[Look], list[Look]]]:
    """Give every round with what its draws are asked on each two neighbors."""
    databases, pairs = neighbors(setting, shape)
    state = setting.plan.start
    for number, step in enumerate(setting.plan.rounds):
        first = Probe(seed=number, factor=factor)
        after = released(step, merged(step, setting, next(iter(databases.values())), state), state, first)
        looks = {}
        for name, data in databases.items():
            probe = Probe(first.looks)
            released(step, merged(step, setting, data, state), state, probe)
            looks[name] = probe.looks
        for one, other in pairs:
            yield step, looks[one], looks[other]
        state = after


def check(step: Any, ours: list[Look], theirs: list[Look]) -> None:
    assert len(ours) == len(theirs)
    spent: dict[Draw, list[tuple[float, float]]] = defaultdict(list)
    for one, other in zip(ours, theirs, strict=True):
        if one.asked is None:
            continue
        spent[one.draw].append(loss(one, other))
        if (
            isinstance(
                one.draw, Choosing | CountThreshold | OptimalSelection | StabilityHistogram | StabilityAxes
            )
            and one.asked[0].scale
        ):
            assert max(born(one, other), default=0) <= one.draw.changes, f"{step.name}: {one.draw}"
        if isinstance(one.draw, CountThreshold):
            assert groups_alone(one, other) <= one.draw.groups, f"{step.name}: {one.draw}"
        if isinstance(one.draw, Choosing):
            touched = np.count_nonzero(changes_of(one.asked[0], other.asked[0]))
            assert touched <= one.draw.changes * one.draw.keys, f"{step.name}: {one.draw}"
    for draw, losses in spent.items():
        allowed = replace(draw, rate=1.0).cost
        if draw.disjoint:  # one cost for all of them
            losses = [tuple(map(sum, zip(*losses, strict=True)))]
        for epsilon, rho in losses:
            assert epsilon <= allowed.epsilon * (1 + 1e-9), f"{step.name}: {draw} spends {epsilon}"
            assert rho <= allowed.rho * (1 + 1e-9), f"{step.name}: {draw} spends rho {rho}"


@pytest.mark.parametrize("shape", ["uniform", "two_clumps", "one_value", "at_the_floor"])
@pytest.mark.parametrize("name", [name for name in by_relation() if looked_at(name)])
def test_what_a_draw_spends_is_charged(name: str, shape: str) -> None:
    for factor in (1.0, 0.0):
        for step, ours, theirs in compared(named(name), shape, factor):
            check(step, ours, theirs)
