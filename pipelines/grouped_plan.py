"""Plan a job that is asked about each group by itself: one plan for all of them, and what they spend."""

from collections.abc import Mapping
from typing import Any, cast

from rich.console import Console

from core.budget import Budget
from core.each_group import strands_of
from core.errors import InvalidValue
from core.groups import GroupedPlan, plan_groups
from core.plan import Plan
from core.privacy_filter import at_most
from core.questions import Planned
from core.rounds import Strand
from pipelines.answers.text import hides, number
from pipelines.errors import JobError, place_of
from pipelines.job.groups import GroupBy, GroupsJob
from pipelines.job.job import Job
from pipelines.key_files import check_keys
from pipelines.notes import notes
from pipelines.plan import check_part, describe, describe_groups, make_plan, show
from pipelines.tasks import TASKS
from pipelines.tried_bounds import describe_bounds


def plan_job(job: Job, salt: bytes) -> Plan | GroupedPlan:
    """Plan `job`; see `make_plan`, and where it is asked about each group by itself, `make_grouped_plan`.

    A file of keys is read, but never one of the input.
    """
    check_keys(job)
    return make_grouped_plan(cast(GroupsJob, job), salt) if job.apart else make_plan(job, salt)


def strands_of_job(job: Job, plan: Planned, groups: int) -> list[Strand]:
    """Return the strands of one question; see `core.each_group.strands_of`.

    Args:
        job: the question.
        plan: of it.
        groups: number of groups that it is asked about one by one; 0 where it is not.
    """
    of_a_column = job.grid.dimension == 1 and not TASKS[job.task].subsamples
    return strands_of(plan.rounds, plan.start, groups, job.grid.extents[0] + 1 if of_a_column else 0)


def make_grouped_plan(job: GroupsJob, salt: bytes) -> GroupedPlan:
    """Plan `job`.

    Args:
        job: the checked job, asked about each group by itself.
        salt: 16 secret bytes that choose samples.

    Raises:
        JobError: the task doesn't support what the job asks for with the budget of a group.
    """

    def plan_one(budget: Budget) -> Plan:
        check_part(budget, "privacy gives each group")
        return make_plan(job.of_each(budget), salt)

    keys = cast(GroupBy, job.group_by).labels or ()
    copies = 1 if job.bounds is None else min(job.bounds.groups, len(keys))  # a unit is in no others
    try:
        plan = plan_groups(plan_one, job.privacy.budget(), job.neighbors.changes, copies)
    except InvalidValue as error:
        raise JobError(error.sentence(place_of(error.field))) from None
    check_groups_spend(plan, job.privacy.budget())
    return plan


def check_groups_spend(plan: GroupedPlan, budget: Budget) -> None:
    """Check that neighbors are told apart by at most the budget.

    Raises:
        JobError: the draws spend more.
    """
    if not at_most(plan.spend.epsilon, budget.epsilon):
        raise JobError(
            f"privacy.epsilon is {budget.epsilon}: the planned noise of all groups would spend "
            f"{plan.spend.epsilon}, so nothing was run."
        )


def of_all_groups(each: Mapping[str, Any], job: GroupsJob, plan: GroupedPlan) -> dict[str, Any]:
    """Return a described plan, or the draft of a release, of all groups together.

    Args:
        each: the same of one group.
        job: the job.
        plan: its plan.
    """
    privacy = {
        **each["privacy"],
        "epsilon": job.privacy.epsilon,
        "delta": job.privacy.delta,
        "neighbors": job.privacy.neighbors,
        "keep": job.keep,
        "hides": _hides(job, plan),
        "spent": plan.spend.epsilon,
        "spent_delta": plan.spend.delta,
        "accountant": plan.spend.accountant,
    }
    groups = {"each_group": describe_each(job, plan), "notes": _notes(job, plan)}
    return {**each, "privacy": privacy, **describe_groups(job), **groups}


def describe_each(job: GroupsJob, plan: GroupedPlan) -> dict[str, Any]:
    """Return what each group spends, and why, as JSON values."""
    own = plan.each.spend
    return {
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "spent": own.epsilon,
        "spent_delta": own.delta,
        "accountant": own.accountant,
        "says": _says(job, plan),
    }


def _says(job: GroupsJob, plan: GroupedPlan) -> str:
    keys = cast(GroupBy, job.group_by)
    count, one = len(keys.labels or ()), "row" if job.unit is None else "unit"
    within = f" in at most {plan.copies} groups" if plan.copies > 1 else " in at most one group"
    if plan.changes == 2:
        why = f"a {one} is{within}, and a replaced one may change them, which is a removal and an addition"
    elif plan.copies > 1:
        why = f"a {one} is{within}, whose draws compose"
    else:
        why = f"a {one} is{within}, so that all groups together spend what one of them spends"
    return (
        f"{count:,} group{'s' if count > 1 else ''} by {' and '.join(keys.columns)}, each answered by "
        f"itself. Each may spend epsilon {number(plan.budget.epsilon)} and delta "
        f"{number(plan.budget.delta)} for one {one} more or less: {why}."
    )


def describe_grouped(job: GroupsJob, plan: GroupedPlan) -> dict[str, Any]:
    """Return the plan as JSON values: that of each group, with the privacy of all of them."""
    each = describe(job.of_each(plan.budget), plan.each)
    bounds = describe_bounds(job, plan.each, lambda other: make_grouped_plan(other, bytes(16)).each)
    return of_all_groups({**each, **bounds}, job, plan)


def _notes(job: GroupsJob, plan: GroupedPlan) -> list[str]:
    """Return the notes of the plan of each group, with what the run as a whole hides."""
    each, keys = job.of_each(plan.budget), cast(GroupBy, job.group_by)
    by, most = " and ".join(keys.columns), ""
    if job.bounds is not None and job.bounds.groups < len(keys.labels or ()):
        groups = "one group" if plan.copies == 1 else f"{plan.copies} groups"
        most = f" A unit is in at most {groups}, chosen uniformly by a secret hash. What it has in further "
        most += "groups is left out."
    if job.unit is not None and TASKS[job.task].subsamples:
        most += " All of its rows in a group are in one block of that group."
    return [
        f"All answers and promises are about the records of one group: of many groups, some miss what is "
        f"promised of each with a probability. Rows without a public key in {by} are "
        f"left out.{most}",
        *notes(each, plan.each, _hides(job, plan)),
    ]


def _hides(job: GroupsJob, plan: GroupedPlan) -> str:
    return plan.hides or hides(job.privacy.neighbors, job.unit, job.count)


def show_grouped(plan: Mapping[str, Any], console: Console) -> None:
    """Print the described plan: what groups get, then the plan of each of them."""
    privacy, each = plan["privacy"], plan["each_group"]
    console.print(each["says"])
    console.print(
        f"All groups together spend epsilon {number(privacy['spent'], 6)} of {number(privacy['epsilon'])} "
        f"({privacy['accountant']}), delta {number(privacy['spent_delta'])}, {privacy['neighbors']}."
    )
    if "ledger" in plan:
        console.print(plan["ledger"]["says"])
    console.print()
    own = {name: value for name, value in plan.items() if name != "ledger"}
    show({**own, "privacy": {**privacy, **each}}, console)
