"""What a draw is charged for can happen: no draw has more noise than some two neighbors need.

`test_every_sensitivity` fails where a draw spends more than it is charged. This test fails where no neighbors
make it spend as much: a sensitivity that is twice what it need be doubles the noise, and breaks no promise.
For every kind of round and every draw of it, some neighbors must be found whose loss is nearly the charge.
Where less is known to be lost, `LESS` says how much, and why.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from core.budget import Cost
from core.draws import Draw
from core.input_checks import CheckedRound
from core.mechanisms.admissible import Admissible
from core.mechanisms.heavy_path import HeavyPathWalk
from core.mechanisms.splits import Splits
from core.mechanisms.stopping import Stopping
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import GroupSetting, Setting, grouped_plans
from tests.pipelines.probing import Look, loss
from tests.pipelines.test_every_group import charges_of, every_neighbors, of_a_group, smooth
from tests.pipelines.test_every_plan import named
from tests.pipelines.test_every_sensitivity import by_relation, compared, looked_at

LEAST = 0.7
"""Of the charge, to be lost by some neighbors. A doubled sensitivity leaves half."""

SHAPES = ("uniform", "one_value", "at_the_floor", "two_clumps")

_LEVELS = "levels may rise and fall at once, in data that is not tried"
_ENDS = "aims beyond all of so few records: every score changes the same way"
_OFFERED = (
    "sections draw points themselves; `tests/core/threshold/test_sections.py` has all scores and chances"
)
_NOT_FOUND = "so few records hold no cluster, so that the round ends before this draw"

LESS: dict[str, tuple[float, str]] = {
    "FindRadiusAndRegion: level": (0.45, _LEVELS),
    "StablePoint: level": (0.45, _LEVELS),
    "StablePoint: radius": (0.65, "counts within radii may rise and fall at once, in data that is not tried"),
    "CoverRound: level": (0.45, _LEVELS),
    "FindInSample: level": (0.2, _LEVELS),
    "FitRadius: radius": (0.45, "all radii about one center rise or fall together; wide balls have another"),
    "FindInSample: radius, fit_radius": (0.45, "the radii are about one center"),
    "ChooseByRank: ends of the interval, scored by normalized rank": (0.45, _ENDS),
    "OneQuantile: ends of the interval, scored by normalized rank": (0.45, _ENDS),
    "FocusedColumns: ends of the interval, scored by normalized rank, column #": (0.45, _ENDS),
    "CoverRound: radius": (0.0, _NOT_FOUND),
    "CoverRound: count of average_#": (0.0, _NOT_FOUND),
    "CoverRound: sum of average_#, per step of the ball's radius": (0.0, _NOT_FOUND),
    "CountRows: count": (0.0, _NOT_FOUND),
    "LearnInSections: threshold": (0.0, _OFFERED),
    "ChooseRank: rank": (0.0, _OFFERED),
    "FindInSample: count of average_#, average_#": (0.0, _NOT_FOUND),
    "FocusedColumns: value, scored by normalized rank, column #": (0.45, _ENDS),
    "TotalsByGroup: value, scored by normalized rank; minimum of column #": (0.45, _ENDS),
    "TotalsByGroup: value, scored by normalized rank; maximum of column #": (0.45, _ENDS),
    "TotalsByGroup: the number of records; quantile_#.#, quantile_#.# of column #": (
        0.2,
        "a replaced unit mostly stays in its groups, or moves to groups that are not released",
    ),
}
"""By round and draw: what share of the charge is seen to be lost at least, and why it is not all."""

_WIDE = "noise hides so few records, so radii grow beyond the domain, and no record is a radius from a center"
LESS_IN_GROUPS: dict[str, tuple[float, str]] = {
    "CenterAverages: sums, per unit of the radius": (0.35, _WIDE),
    "CenterAverages: weights": (0.2, _WIDE),
    "StablePoint: level": (0.2, _LEVELS),
    "FindBounds: lower bound of column #, scored by normalized rank": (0.45, _ENDS),
    "FindBounds: upper bound of column #, scored by normalized rank": (0.45, _ENDS),
}
"""The same in groups of a few dozen records."""

NOT_LOOKED_AT = (Admissible, HeavyPathWalk, Splits, Stopping)
"""Draws that have tests of their own; see `test_every_sensitivity`."""


def key(step: Any, draw: Draw) -> str:
    """Name a draw by its round's class, and by what it is without numbers."""
    inner = step.round_ if isinstance(step, CheckedRound) and draw != step.count else step
    return f"{type(inner).__name__}: {re.sub(r'[0-9]+', '#', draw.what)}"


def losses(ours: list[Look], theirs: list[Look]) -> Iterator[tuple[Draw, float]]:
    """Give every draw that is looked at with its loss, as a share of its charge."""
    spent: dict[Draw, list[tuple[float, float]]] = defaultdict(list)
    for one, other in zip(ours, theirs, strict=True):
        if one.asked is not None:
            spent[one.draw].append(loss(one, other))
    for draw, each in spent.items():
        allowed = replace(draw, rate=1.0).cost
        if draw.disjoint:  # one cost for all of them
            each = [(sum(epsilon for epsilon, _ in each), sum(rho for _, rho in each))]
        for epsilon, rho in each:
            yield (
                draw,
                max(
                    epsilon / allowed.epsilon if allowed.epsilon else 0.0,
                    rho / allowed.rho if allowed.rho else 0.0,
                ),
            )


def settings_of(task: str, relation: str) -> list[Setting]:
    """Return the settings of a task, without the published 1-cluster, whose rounds have their own tests."""
    found = [named(name) for name in by_relation() if looked_at(name)]
    asked = [each for each in found if (each.job.task, each.job.privacy.neighbors) == (task, relation)]
    return [each for each in asked if not each.published]


@pytest.mark.parametrize("relation", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("task", TASKS)
def test_some_neighbors_lose_what_a_draw_is_charged(task: str, relation: str) -> None:
    seen: dict[tuple[str, str], float] = {}
    for shape in SHAPES:
        for setting in settings_of(task, relation):
            method = setting.plan.method
            held = {
                (method, key(step, draw))
                for step in setting.plan.rounds
                for draw in step.draws()
                if draw.cost != Cost() and not isinstance(draw, NOT_LOOKED_AT)
            }
            seen |= {each: 0.0 for each in held - set(seen)}
            if all(seen[each] >= LEAST for each in held):
                continue
            for step, ours, theirs in compared(setting, shape, 0.0):
                for draw, share in losses(ours, theirs):
                    if (place := (method, key(step, draw))) in seen:
                        seen[place] = max(seen[place], share)
    low = {each: share for each, share in seen.items() if share < LESS.get(each[1], (LEAST, ""))[0]}
    assert not low, low


@pytest.mark.parametrize("name", [name for name, (_, plan) in grouped_plans().items() if not smooth(plan)])
def test_some_neighbors_lose_in_all_groups_what_is_charged(name: str) -> None:
    """What the groups of one unit, or of a replaced row, lose together is nearly what the run is charged.

    Under `replace_one` the charge of Gaussian noise is that of two changes that add up (group privacy). Where
    one count falls and another one rises, half of it is lost.
    """
    job, plan = grouped_plans()[name]
    setting, charges = GroupSetting(name, job.of_each(plan.budget), plan), charges_of(plan)
    wanted: dict[tuple[str, Draw], tuple[str, float]] = {}
    for step in plan.rounds:
        for draw in step.draws():
            if draw.cost != Cost() and not isinstance(draw, NOT_LOOKED_AT):
                what = key(step, draw)
                apart = 2 if plan.changes == 2 and draw.cost.rho else 1
                least, _ = (LESS | LESS_IN_GROUPS).get(what, (LEAST, ""))
                wanted[step.name, draw] = what, least / apart
    seen = dict.fromkeys((what for what, _ in wanted.values()), 0.0)
    for shape in SHAPES:
        for ours, theirs in every_neighbors(setting, job, shape):
            if all(seen[what] >= least for what, least in wanted.values()):
                return
            spent: Counter[tuple[str, str, Draw]] = Counter()
            for one, other in zip(ours, theirs, strict=True):
                spent.update(of_a_group(setting, one, other))
            for (kind, round_, draw), lost in spent.items():
                if (round_, draw) in wanted and (allowed := charges.of(kind, round_, draw)):
                    what, _ = wanted[round_, draw]
                    seen[what] = max(seen[what], lost / allowed)
    low = {what: seen[what] for what, least in wanted.values() if seen[what] < least}
    assert not low, low
