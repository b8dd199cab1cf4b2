"""Every plan as its reader sees it: what is printed, and the notes, say of their job what is so."""

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.budget import Budget
from core.groups import GroupedPlan
from core.plan import Plan, Tightness
from pipelines import grouped_plan, notes
from pipelines.console.printable import terminal
from pipelines.grouped_plan import show_grouped
from pipelines.job.groups import GroupsJob
from pipelines.job.job import check_job
from pipelines.joint_plan import budget_sentence, show_joint
from pipelines.needs import _says
from pipelines.plan import show
from tests.pipelines.answers.made_up import CASES
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import LINE, changes
from tests.pipelines.report.test_every_report import by_group, whole

TEXTS = Path(__file__).with_name("every_plan.txt")
COUNTED = {"task": "statistics", "input.columns": ..., "input.checks": ..., "domain": ...}
COUNTED |= {"params": {"measures": ["count"]}}
UNIT = {"input.unit": "who", "input.checks": 0.25}
EARTH = {"input.columns": ["lat", "lon"], "input.checks": 0.25}
FUNCTION = {
    **changes("sample_and_aggregate"),
    "params.outputs": {"lower": [0], "upper": [1.75], "step": 0.5},
    "params.function": "tests.transforms.attacks:known_mean",
}
KEEPS_NOTHING = {
    **FUNCTION,
    "params.function": "shoal.analyses.association:threshold",
    "params.isolation": "process",
}
NOTES: dict[str, dict[str, Any]] = {
    "a row": {"input.checks": 0.25, "domain.upper": [1.0003, 1]},
    "a replaced row without checks": {"privacy.neighbors": "replace_one"},
    "a replaced row": {"privacy.neighbors": "replace_one", "input.checks": 0.125},
    **{keep: {**UNIT, "input.keep": keep} for keep in ("one", "mean", "min", "max", "sum")},
    "last": {**UNIT, "input.keep": "last", "input.order": "t"},
    "count": {**changes("histogram"), **LINE, **UNIT, "input.keep": "count", "params": {"cells": [4]}},
    "records": {"input.count": "n", "input.checks": 0.25},
    "weak": {"privacy.epsilon": 12.5, "privacy.delta": 0.0025, "domain.units": {"x": "kWh"}},
    "units of columns": {"domain.units": {"x": "kWh"}, "domain.upper": [1.0003, 1]},
    "counted alone": COUNTED,
    "counted units alone": {**COUNTED, "input.unit": "who"},
    "kept rows": {
        **{**changes("statistics"), **LINE, "input.unit": "who"},
        "contributions": {"groups": 2, "rows": 3},
        "group_by": {"columns": ["city"], "keys": ["a", "b"]},
    },
    "prepared rows": {"input.where": "x > 0.5", "input.derive": {"y": "x"}},
    "a policy": {**changes("cdf"), **LINE, "privacy.policy": {"distance": 0.25}, "input.checks": 0.0}
    | {"privacy.neighbors": "replace_one"},
    "less than a row": {"privacy.neighbors": "replace_one"},
    "a sphere": {**EARTH, "domain": {"geography": "wgs84", "step": 1000}},
    "a map": {
        **EARTH,
        "domain": {"geography": "wgs84", "lower": [1, 2], "upper": [3, 4], "step": 250},
    },
    "a function": FUNCTION,
    "a function in a sandbox": {**FUNCTION, "params.isolation": "sandbox", "input.unit": "who"},
    "a function that keeps nothing": KEEPS_NOTHING,
    "a function in constant time": {**KEEPS_NOTHING, "params.constant_time": True},
}


def noted(bench: Bench, name: str) -> list[str]:
    """Return the notes of a job whose task has two of its own, and counts of checks of one error."""
    tightness = {"a": Tightness("A bound of a row is loose.", False)}
    plan = SimpleNamespace(notes=("Among few rows it fails.",), tightness=tightness, hides=None, policy=None)
    job = check_job(bench.changed(NOTES[name]))
    if name == "a policy":
        plan.policy = job.neighbors.policy
    if name == "less than a row":
        plan.hides = "the weight of one edge"
    return notes.notes(job, cast(Plan, plan))


def printed(described: Mapping[str, Any], show_it: Callable[..., None]) -> list[str]:
    console = terminal(False)
    with console.capture() as captured:
        show_it(described, console)
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def planned(name: str, said: Mapping[str, Any] | None = None, **privacy: Any) -> dict[str, Any]:
    """Return a plan with all that one may show."""
    others = {"other": {**CASES[name][1], "count_error": 47}, "third": {}}
    more = {"output": "releases/x", "alternatives": others, "ledger": {"says": "The ledger has room."}}
    more |= {"needs": {"says": "A machine."}, **(said or {})}
    return whole(name, more, **privacy)


BOUNDS = {
    "tried": [
        {
            "groups": 2,
            "rows": 3,
            "error": 5.5,
            "promises": {"count_error": 13, "none": None, "of": [1.5, 2.5]},
        }
        | {"left_out": {"units": (0.125, 0.375), "rows": (0.25, 0.25)}},
        {"groups": 4, "rows": None, "error": None, "promises": {"count_error": 17, "none": None, "of": None}}
        | {"left_out": {"units": (0.00125, 0.0025), "rows": (0.0, 0.5)}},
    ],
    "says": "What the shares are.",
}


def a_plan() -> list[str]:
    return printed(planned("a ball"), show)


def a_plan_of_pure_draws() -> list[str]:
    made = planned("no ball", {"bounds": BOUNDS, "comparison": None})
    draws = [{**draw, "rho": 0.0, "delta": 0.0} for draw in made["mechanisms"]]
    first = printed({**made, "mechanisms": draws, "domain": made["domain"]}, show)
    cheap = [{**draw, "epsilon": 0.3125} for draw in draws]
    return [*first, *printed({**made, "mechanisms": cheap}, show)[:14]]


def a_plan_of_groups() -> list[str]:
    said = {**by_group(), "notes": ["Of a group."], "ledger": {"says": "Left."}}
    made = planned("a median", said, unit="who")
    made["output"] = "releases/y"
    return printed(made, show_grouped)


def a_plan_of_questions() -> list[str]:
    own = {key: value for key, value in planned("a point").items() if key not in ("ledger", "needs")}
    asked = {"one": own, "two": {**a_group(), "each_group": by_group()["each_group"]}}
    joint = {"questions": asked, "privacy": whole("a point", factor=1.75)["privacy"]}
    return printed({**joint, "ledger": {"says": "Left."}, "needs": {"says": "Much."}}, show_joint)


def a_group() -> dict[str, Any]:
    made = planned("a median", by_group(), unit="who")
    return {key: value for key, value in made.items() if key not in ("ledger", "needs")}


def a_budget() -> list[str]:
    spends = {"epsilon": 1.5, "delta": 3e-6, "spent": 1.25, "spent_delta": 2e-6, "accountant": "pld"}
    return [budget_sentence({**spends, "factor": 1.0}, 1), budget_sentence({**spends, "factor": 1.125}, 3)]


def what_a_run_needs() -> list[str]:
    found = {"passes": 1, "memory_mb": 1380, "for_each_group_mb": 0, "for_each_row_bytes": None}
    more = {"passes": 3, "for_each_group_mb": 2.5, "growing": ["60 bytes for each node"]}
    return [
        _says({**found, "growing": []}, 5),
        _says({**found, **more}, 1 << 20),
        _says({**found, **more, "for_each_row_bytes": 48}, 5),
    ]


def what_groups_spend(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(grouped_plan, "notes", lambda job, plan, whole: [f"It hides {whole}."])
    by = {"columns": ["city", "day"], "keys": [["a", 1], ["b", 2], ["c", 3]]}
    one = {**changes("median"), **LINE, "group_by": by, "input.checks": ...}
    unit = {**one, "input.unit": "who", "contributions": {"groups": 2}}
    alone, everywhere = ({**unit, "contributions": {"groups": most}} for most in (1, 3))
    function = {**FUNCTION, "group_by": by, "input.unit": "who", "contributions": {"groups": 2}}
    replaced = {**one, "privacy.neighbors": "replace_one"}
    budget, each, found = Budget(0.625, 1e-9), SimpleNamespace(hides=None), []
    cases = ((one, 1, 1), (unit, 2, 1), (alone, 1, 1), (everywhere, 3, 1), (function, 2, 1), (replaced, 1, 2))
    for asked, copies, changed in cases:
        job = cast(GroupsJob, check_job(bench.changed(asked)))
        plan = GroupedPlan(cast(Plan, each), budget, changed, copies, cast(Any, None))
        found += [grouped_plan._says(job, plan), *grouped_plan._notes(job, plan)]
    return found


PLANS = [a_plan, a_plan_of_pure_draws, a_plan_of_groups, a_plan_of_questions, a_budget, what_a_run_needs]
NAMES = [*(each.__name__ for each in PLANS), "what_groups_spend", *NOTES]


def lines_of(name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(notes, "describe_checks", lambda job, plan: {"standard_error": 7.5})
    if name == "what_groups_spend":
        found = what_groups_spend(bench, monkeypatch)
    elif name in NOTES:
        found = noted(bench, name)
    else:
        found = next(each for each in PLANS if each.__name__ == name)()
    wrap = textwrap.TextWrapper(108, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return [line for text in found for line in wrap.wrap(text)]


def stored() -> dict[str, list[str]]:
    parts = (part.split("\n", 1) for part in TEXTS.read_text().split("\n## ")[1:])
    return {name: text.rstrip("\n").split("\n") for name, text in parts}


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_says_what_is_so(name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes a text on purpose changes it in the file, too, and reads there what a reader would."""
    assert lines_of(name, bench, monkeypatch) == stored()[name]


def test_every_text_is_of_a_plan() -> None:
    assert set(stored()) == set(NAMES)
