"""What a plan and a release of several questions, or of several groups, say of all of them."""

import copy
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from core.budget import Accountant, Budget, Spend
from core.domain import Grid
from core.grouping import Grouping
from core.input_checks import Checked
from core.labels import Labels
from pipelines.errors import JobError
from pipelines.grouped_plan import make_grouped_plan, of_all_groups
from pipelines.grouped_release import GroupedDraft, gathered_groups
from pipelines.job.job import check_raw
from pipelines.joint_plan import (
    check_joint_spend,
    describe_joint,
    describe_joint_privacy,
    make_joint_plan,
)
from pipelines.joint_release import JointDraft, check_stored, write_answer, write_joint_release
from pipelines.storage.local_folder import LocalFolder

LINE = {"lower": [0], "upper": [1], "step": 2.0**-8}
SEVERAL: dict[str, Any] = {
    "input": {"path": "/rows", "unit": "who"},
    "privacy": {"epsilon": 2.0, "delta": 1e-6, "neighbors": "replace_one", "ledger": "/ledger"},
    "questions": {
        "middle": {"task": "median", "columns": ["x"], "domain": LINE, "share": 3},
        "cells": {"task": "histogram", "columns": ["x"], "domain": LINE, "params": {"cells": [4]}},
    },
    "output": "/out",
}
GROUPED: dict[str, Any] = {
    "task": "median",
    "input": {"path": "/rows", "columns": ["x"], "unit": "who"},
    "domain": LINE,
    "privacy": {"epsilon": 2.0, "delta": 1e-6, "neighbors": "replace_one"},
    "group_by": {"columns": ["city"], "keys": ["a", "b", "c"]},
    "contributions": {"groups": 2},
    "output": "/out",
}
GRID = Grid((0.0,), (1.0,), 0.25)


def test_what_all_questions_spend_is_what_their_plan_spends():
    job = check_raw(copy.deepcopy(SEVERAL))
    spent = Spend(1.5, (Accountant.BASIC,), 2e-7)  # less than the budget
    plan = replace(make_joint_plan(job, {name: bytes(16) for name in job.jobs}), spend=spent)
    said = describe_joint_privacy(job, plan)
    assert (said["spent"], said["spent_delta"], said["accountant"]) == (
        spent.epsilon,
        spent.delta,
        spent.accountant,
    )
    assert (said["epsilon"], said["delta"]) == (2.0, 1e-6)
    assert (said["neighbors"], said["unit"], said["factor"]) == ("replace_one", "who", plan.factor)
    described = describe_joint(job, plan)
    assert described["privacy"]["ledger"] == job.privacy.ledger
    assert {name: each["share"] for name, each in described["questions"].items()} == job.shares


def test_a_delta_that_is_spent_beyond_the_budget_is_refused():
    job = check_raw(copy.deepcopy(SEVERAL))
    plan = make_joint_plan(job, {name: bytes(16) for name in job.jobs})
    check_joint_spend(plan, Budget(100.0, 1e-6))
    with pytest.raises(JobError, match="so nothing was run"):
        check_joint_spend(plan, Budget(100.0, 0.9e-6))


def test_what_all_groups_spend_is_what_their_plan_spends():
    job = check_raw(copy.deepcopy(GROUPED))
    plan = make_grouped_plan(job, bytes(16))
    one_spends = replace(plan.each, spend=Spend(0.2, (Accountant.BASIC,), 1e-8))
    plan = replace(plan, each=one_spends, spend=Spend(1.5, (Accountant.GROUP,), 2e-7))
    each = {"privacy": {"policy": None, "keep": "", "epsilon": plan.budget.epsilon}}
    found = of_all_groups(each, job, plan)
    whole, one = found["privacy"], found["each_group"]
    assert (plan.changes, plan.copies) == (2, 2)
    assert (whole["epsilon"], whole["delta"], whole["neighbors"]) == (2.0, 1e-6, "replace_one")
    assert whole["keep"] == job.keep
    assert (whole["spent"], whole["spent_delta"]) == (plan.spend.epsilon, plan.spend.delta)
    assert (one["epsilon"], one["delta"]) == (plan.budget.epsilon, plan.budget.delta)
    assert (one["spent"], one["spent_delta"]) == (plan.each.spend.epsilon, plan.each.spend.delta)
    assert whole["accountant"] == plan.spend.accountant and one["accountant"] == plan.each.spend.accountant
    assert "in at most 2 groups, and a replaced one may change them" in one["says"]


@dataclass(frozen=True)
class Value:
    """An answer."""

    value: int


@dataclass
class Found:
    """The last state of a question that found a number, or nothing; a table where it has one."""

    value: int | None

    def result(self, grid: Grid) -> Value | None:
        return None if self.value is None else Value(self.value)


class FoundTable(Found):
    def table(self, grid: Grid) -> dict[str, np.ndarray] | None:
        return None if self.value is None else {"count": np.arange(self.value)}

    def column_marks(self, grid: Grid) -> dict[str, Any]:
        return {}


ANSWER = {"task": "histogram", "mechanisms": [], "checks": {}}


def joint_draft(job: str = "hash") -> JointDraft:
    whole = {"schema": 1, "task": "questions", "run_id": "r", "job": job}
    return JointDraft(whole, dict.fromkeys("ab", ANSWER), dict.fromkeys("ab", GRID), {})


@pytest.mark.parametrize(
    ("a", "b", "outcome"), [(1, None, "released"), (None, 2, "released"), (None, None, "not_found")]
)
def test_a_release_is_found_where_an_answer_is_and_has_the_order_of_the_job(tmp_path, a, b, outcome):
    folder, draft = LocalFolder(str(tmp_path)), joint_draft()
    answers = [
        (name, write_answer(folder, draft, name, Found(value))) for name, value in (("b", b), ("a", a))
    ]
    write_joint_release(folder, draft, answers)
    release = json.loads((tmp_path / "release.json").read_text())
    assert release["outcome"] == outcome
    assert [*release["answers"]] == ["a", "b"]
    assert [each["result"] for each in release["answers"].values()] == [
        None if value is None else {"value": value} for value in (a, b)
    ]


def test_checks_of_a_question_are_in_its_answer(tmp_path):
    checked = Checked(Found(1), (3,), (4,))
    answer = write_answer(LocalFolder(str(tmp_path)), joint_draft(), "a", checked)
    assert (answer["checks"]["left_out"], answer["checks"]["moved"]) == ([3], [4])


def test_a_table_of_another_question_or_job_is_not_taken(tmp_path):
    folder = LocalFolder(str(tmp_path))
    first = write_answer(folder, joint_draft(), "a", FoundTable(3))
    assert first["table"][0]["rows"] == 3
    assert write_answer(folder, joint_draft(), "a", FoundTable(2)) == first  # what is stored stays
    check_stored(folder, joint_draft())
    with pytest.raises(JobError, match="is of another job"):
        check_stored(folder, joint_draft("other"))
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    with pytest.raises(JobError, match="is of another job"):
        check_stored(folder, joint_draft())


def gathered(*states: tuple[int, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    labels = Labels(['["a"]', '["b"]', '["c"]'])
    draft = GroupedDraft({"checks": {"of": "draft"}}, Grouping(("city",), labels, (None,)), GRID)
    return gathered_groups(draft, states)


def test_groups_are_found_where_one_is_and_each_has_its_own_answer():
    answer, table = gathered((2, Checked(Found(5), (1,), (2,))), (0, Found(None)), (1, Found(7)))
    assert answer["outcome"] == "released" and table is None
    assert [group["key"] for group in answer["groups"]] == [["a"], ["b"], ["c"]]
    assert [group["result"] for group in answer["groups"]] == [None, {"value": 7}, {"value": 5}]
    assert answer["groups"][2]["checks"]["left_out"] == (1,) and "checks" not in answer["groups"][1]
    assert gathered(*((number, Found(None)) for number in range(3)))[0]["outcome"] == "not_found"


def test_tables_of_groups_follow_each_other_with_their_keys():
    answer, table = gathered((2, FoundTable(1)), (1, FoundTable(2)), (0, FoundTable(None)))
    assert [group["table_rows"] for group in answer["groups"]] == [0, 2, 1]
    assert table is not None and list(table) == ["city", "count"]
    assert [str(each) for each in table["city"]] == ["b", "b", "c"]
    assert table["count"].tolist() == [0, 1, 0]
