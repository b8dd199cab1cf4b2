"""Plan a job that is asked about each group by itself: one plan for all of them, and what they spend."""

from collections.abc import Mapping
from typing import Any, cast

from rich.console import Console

from core.budget import Budget
from core.errors import InvalidValue
from core.groups import GroupedPlan, plan_groups
from core.plan import Plan
from pipelines.answers.text import hides, number
from pipelines.errors import JobError, place_of
from pipelines.job.groups import GroupBy, GroupsJob
from pipelines.job.job import Job
from pipelines.job.privacy import LEAST_DELTA, LEAST_EPSILON
from pipelines.plan import describe, describe_groups, hidden, make_plan, notes, show

_ROUNDING = 1e-9


def plan_job(job: Job, salt: bytes) -> Plan | GroupedPlan:
    """Plan `job`; see `make_plan`, and where it is asked about each group by itself, `make_grouped_plan`."""
    return make_grouped_plan(cast(GroupsJob, job), salt) if job.apart else make_plan(job, salt)


def make_grouped_plan(job: GroupsJob, salt: bytes) -> GroupedPlan:
    """Plan `job`.

    Args:
        job: the checked job, asked about each group by itself.
        salt: 16 secret bytes that choose samples.

    Raises:
        JobError: the task doesn't support what the job asks for with the budget of a group.
    """

    def plan_one(budget: Budget) -> Plan:
        if budget.epsilon < LEAST_EPSILON or 0 < budget.delta < LEAST_DELTA:
            raise JobError(
                f"privacy gives each group epsilon {number(budget.epsilon)} and delta "
                f"{number(budget.delta)}: epsilon must be at least {LEAST_EPSILON}, and delta 0 or at least "
                f"{LEAST_DELTA}."
            )
        return make_plan(job.of_each(budget), salt)

    copies = 1 if job.bounds is None else job.bounds.groups
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
    if not plan.spend.epsilon <= budget.epsilon * (1 + _ROUNDING):
        raise JobError(
            f"privacy.epsilon is {budget.epsilon}: the planned noise of all groups would spend "
            f"{plan.spend.epsilon}, so nothing was run."
        )


def describe_grouped_privacy(job: GroupsJob, plan: GroupedPlan) -> dict[str, Any]:
    """Return what a release and a plan say of the privacy of all groups together, as JSON values."""
    return {
        "epsilon": job.privacy.epsilon,
        "delta": job.privacy.delta,
        "neighbors": job.privacy.neighbors,
        "unit": job.unit,
        "keep": job.keep,
        "order": job.order,
        "policy": None,
        "hides": _hides(job, plan),
        "spent": plan.spend.epsilon,
        "accountant": plan.spend.accountant,
    }


def describe_each(job: GroupsJob, plan: GroupedPlan) -> dict[str, Any]:
    """Return what each group spends, and why, as JSON values."""
    own = plan.each.spend
    return {
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "spent": own.epsilon,
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
        f"{count:,} group{'s' if count > 1 else ''} by {' and '.join(keys.columns)}, answered one by one. "
        f"Each may spend epsilon {number(plan.budget.epsilon)} and delta {number(plan.budget.delta)} for one "
        f"{one} more or less: {why}."
    )


def describe_grouped(job: GroupsJob, plan: GroupedPlan) -> dict[str, Any]:
    """Return the plan as JSON values: that of each group, with the privacy of all of them."""
    described = describe(job.of_each(plan.budget), plan.each)
    return {
        **described,
        "privacy": {**describe_grouped_privacy(job, plan), "ledger": job.privacy.ledger},
        **grouped(job, plan),
    }


def grouped(job: GroupsJob, plan: GroupedPlan) -> dict[str, Any]:
    """Return what releases and plans say of groups, beside the privacy of all of them, as JSON values."""
    return {
        **describe_groups(job),
        "each_group": describe_each(job, plan),
        "notes": _notes(job, plan),
    }


def _notes(job: GroupsJob, plan: GroupedPlan) -> list[str]:
    """Return the notes of the plan of each group, with what the run as a whole hides."""
    each, keys = job.of_each(plan.budget), cast(GroupBy, job.group_by)
    told = [f"The run hides {what}." for what in (hidden(each, plan.each), _hides(job, plan))]
    by, most = " and ".join(keys.columns), "" if plan.copies == 1 else f" A unit is in at most {plan.copies} "
    if most:
        most += "groups, chosen uniformly by a secret hash. What it has in further groups is left out."
    return [
        f"All answers and promises are about the records of one group. Rows without a public key in {by} are "
        f"left out.{most}",
        *(told[1] if note == told[0] else note for note in notes(each, plan.each)),
    ]


def _hides(job: GroupsJob, plan: GroupedPlan) -> str:
    return plan.hides or hides(job.privacy.neighbors, job.unit)


def show_grouped(plan: Mapping[str, Any], console: Console) -> None:
    """Print the described plan: what groups get, then the plan of each of them."""
    privacy, each = plan["privacy"], plan["each_group"]
    console.print(each["says"])
    console.print(
        f"All groups together spend epsilon {number(privacy['spent'], 6)} of {number(privacy['epsilon'])} "
        f"({privacy['accountant']}), delta {number(privacy['delta'])}, {privacy['neighbors']}."
    )
    if "ledger" in plan:
        console.print(plan["ledger"]["says"])
    console.print()
    own = {name: value for name, value in plan.items() if name != "ledger"}
    show({**own, "privacy": {**privacy, **each}}, console)
