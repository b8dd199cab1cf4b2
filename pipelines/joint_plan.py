"""Plan a job of several questions: each with its part of one budget, and what all of them spend together."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from rich.console import Console
from rich.text import Text

from core.budget import Budget
from core.errors import InvalidValue
from core.groups import AnyPlan, GroupedPlan
from core.plan import Plan
from core.privacy_filter import at_most
from core.questions import JointPlan, Planned, plan_together
from core.rounds import parts_of
from pipelines.answers.text import SECRET_PAIRS_OF_ALL, hides, number
from pipelines.errors import JobError, place_of
from pipelines.grouped_plan import describe_grouped, plan_job, show_grouped
from pipelines.job.groups import MOST_GROUPS, GroupsJob
from pipelines.job.job import Job
from pipelines.job.questions import QUESTIONS, QuestionsJob, in_question
from pipelines.key_files import check_keys
from pipelines.needs import needs
from pipelines.plan import check_part, describe, show


def make_joint_plan(job: QuestionsJob, salts: Mapping[str, bytes]) -> JointPlan:
    """Plan `job`.

    Args:
        job: the checked job.
        salts: of each question 16 secret bytes that choose its samples; no two may be equal, see
            `core.questions`.

    Raises:
        JobError: a task doesn't support what its question asks for.
    """
    budget = job.privacy.budget()
    check_keys(job)
    _check_groups(job)
    asked = {
        name: (job.shares[name], partial(_plan_one, name, question, salts[name]))
        for name, question in job.jobs.items()
    }
    try:
        plan = plan_together(asked, budget)
    except InvalidValue as error:
        raise JobError(error.sentence(place_of(error.field))) from None
    check_joint_spend(plan, budget)
    return plan


def _check_groups(job: QuestionsJob) -> None:
    """Check how many groups the questions are asked about one by one, all together.

    Raises:
        JobError: they are too many.
    """
    keys = (each.group_keys for each in job.jobs.values() if each.apart)
    groups = sum(len(own.labels or ()) for own in keys if own is not None)
    if groups > MOST_GROUPS:
        raise JobError(
            f"{QUESTIONS} ask about {groups:,} groups one by one: together they may be at most "
            f"{MOST_GROUPS:,}, because each has draws of its own; statistics takes more."
        )


def _plan_one(name: str, question: Job, salt: bytes, part: Budget) -> Plan | GroupedPlan:
    """Plan one question with its part of the budget.

    Raises:
        JobError: see `make_joint_plan`.
    """
    where = f"{QUESTIONS}.{name}"
    check_part(part, f"{where}.share gives it")
    try:
        plan = plan_job(with_budget(question, part), salt)
    except JobError as error:
        sentences = [in_question(name, str(sentence)) for sentence in error.args]
        raise JobError(*(each if where in each else f"{where}: {each}" for each in sentences)) from None
    if parts_of(plan.rounds[-1]) > 1:
        raise JobError(f"{where} asks for a table in parts, which needs a job of its own.")
    return plan


def with_budget(question: Job, part: Budget) -> Job:
    """Return a question as a job of its own, with its part of the budget."""
    own = question.privacy.model_copy(update={"epsilon": part.epsilon, "delta": part.delta})
    return question.model_copy(update={"privacy": own})


def questions_of(job: QuestionsJob, plan: JointPlan) -> dict[str, tuple[Job, Planned]]:
    """Return each question as a job of its own with its part of the budget, and its plan."""
    return {
        name: (with_budget(question, plan.budgets[name]), plan.plans[name])
        for name, question in job.jobs.items()
    }


def check_joint_spend(plan: JointPlan, budget: Budget) -> None:
    """Check that the draws of all rounds spend at most the budget, recomputed from what the rounds hold.

    Raises:
        JobError: they spend more.
    """
    spent = plan.recomputed(budget.delta).epsilon
    deltas = sum(part.delta for part in plan.budgets.values())
    if not (at_most(spent, budget.epsilon) and deltas <= budget.delta):
        raise JobError(
            f"privacy.epsilon is {budget.epsilon}: the planned noise of all questions would spend {spent}, "
            "so nothing was run."
        )


def describe_joint_privacy(job: QuestionsJob, plan: JointPlan) -> dict[str, Any]:
    """Return what a release and a plan say of the privacy of all questions together, as JSON values."""
    return {
        "epsilon": job.privacy.epsilon,
        "delta": job.privacy.delta,
        "neighbors": job.privacy.neighbors,
        "unit": job.unit,
        **({} if job.count is None else {"count": job.count}),
        "policy": _policy(job),
        "hides": _hides(job, plan),
        "spent": plan.spend.epsilon,
        "spent_delta": plan.spend.delta,
        "accountant": plan.spend.accountant,
        "factor": plan.factor,
    }


def _policy(job: QuestionsJob) -> dict[str, Any] | None:
    policy = job.privacy.policy
    return None if policy is None else policy.model_dump(mode="json")


def _hides(job: QuestionsJob, plan: JointPlan) -> str:
    if plan.policy is not None:
        return SECRET_PAIRS_OF_ALL
    return plan.hides or hides(job.privacy.neighbors, job.unit, job.count)


def describe_joint(job: QuestionsJob, plan: JointPlan) -> dict[str, Any]:
    """Return the plan as JSON values; each question has those of a plan of its own."""
    return {
        "task": QUESTIONS,
        "run_id": job.run_id,
        "output": job.output,
        "privacy": {**describe_joint_privacy(job, plan), "ledger": job.privacy.ledger},
        QUESTIONS: {
            name: {**_described(own, its), "share": job.shares[name]}
            for name, (own, its) in questions_of(job, plan).items()
        },
    }


def _described(job: Job, plan: Planned) -> dict[str, Any]:
    """Return the plan of one question as JSON values."""
    if isinstance(plan, GroupedPlan):
        return describe_grouped(cast(GroupsJob, job), plan)
    return describe(job, cast(Plan, plan))


def planned_as(
    job: Job | QuestionsJob,
) -> tuple[AnyPlan, dict[str, Any], Callable[[Mapping[str, Any], Console], None]]:
    """Return the plan of a job that will not run, the same as JSON values, and what prints these."""
    if isinstance(job, QuestionsJob):
        joint = make_joint_plan(job, {name: bytes(16) for name in job.jobs})
        needed = needs([*questions_of(job, joint).values()])
        return joint, {**describe_joint(job, joint), "needs": needed}, show_joint
    plan = plan_job(job, bytes(16))
    return plan, {**_described(job, plan), "needs": needs([(job, plan)])}, _show_one


def budget_sentence(privacy: Mapping[str, Any], count: int) -> str:
    """Return in words how the budget of a plan or a release is shared, and what is spent of it."""
    gained = ""
    if privacy["factor"] > 1:
        gained = (
            " Together the draws cost less than one by one, so each question may spend "
            f"{number(privacy['factor'], 3)} times its part of epsilon."
        )
    return (
        f"Budget: epsilon {number(privacy['epsilon'])}, delta {number(privacy['delta'])}, shared by {count} "
        f"question{'s' if count > 1 else ''}. All draws together spend epsilon "
        f"{number(privacy['spent'], 6)}, delta {number(privacy['spent_delta'])} "
        f"({privacy['accountant']}).{gained}"
    )


def show_joint(plan: Mapping[str, Any], console: Console) -> None:
    """Print the described plan of several questions, one after the other."""
    questions = plan[QUESTIONS]
    console.print(budget_sentence(plan["privacy"], len(questions)))
    if "ledger" in plan:
        console.print(plan["ledger"]["says"])
    if "needs" in plan:
        console.print(Text("Needs", "bold"), plan["needs"]["says"])
    for name, described in questions.items():
        console.print()
        console.rule(Text(name, "bold"), align="left")
        _show_one(described, console)


def _show_one(plan: Mapping[str, Any], console: Console) -> None:
    (show_grouped if "each_group" in plan else show)(plan, console)
