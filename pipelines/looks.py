"""Look at what a run of a job would be, without reading a row or spending anything."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from core.errors import ShoalError
from core.groups import AnyPlan
from pipelines.console.printable import error_text
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.joint_plan import planned_as
from pipelines.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import Console

Show = Callable[[Mapping[str, Any], "Console"], None]


def look_at_plan(job: Job | QuestionsJob) -> tuple[dict[str, Any], Show, list[str]]:
    """Return the plan of a job and what is left of its ledger as values; what prints them; and refusals.

    A refusal is why a run could not start here: the plan is the same where it can.
    """
    (planned, described, show), refusals = planned_as(job), []
    for look in (look_at_ledger, look_at_function):
        try:
            described |= look(job, planned)
        except ShoalError as error:
            refusals.append(error_text(error))
    return described, show, refusals


def look_at_ledger(job: Job | QuestionsJob, plan: AnyPlan) -> dict[str, Any]:
    """Return what is left of the ledger of a job, by the key of a plan; nothing without a ledger."""
    if job.privacy.ledger is None:
        return {}
    from pipelines.ledger.left import left_for  # only a job with a ledger needs it

    left = left_for(job.privacy.ledger, job, plan)
    return {"ledger": {**asdict(left), "says": left.sentence()}}


def look_at_function(job: Job | QuestionsJob, plan: AnyPlan) -> dict[str, Any]:
    """Import the function of a job, if it has one, and check its memory; nothing is added to the plan."""
    if not isinstance(job, QuestionsJob) and TASKS[job.task].subsamples:
        from pipelines.run.block_memory import check_block_memory
        from pipelines.run.import_function import import_function  # imports Arrow

        check_block_memory(job.task_params.memory_limit)
        import_function(job.task_params.untrusted())
    return {}
