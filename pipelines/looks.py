"""Look at what a run of a job would be, without reading a row or spending anything."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from core.errors import ShoalError
from core.groups import AnyPlan
from pipelines.console.printable import error_text
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.job.subsamples_job import SubsamplesJob
from pipelines.joint_plan import planned_as
from pipelines.run.temporary import check_temporary

if TYPE_CHECKING:
    from rich.console import Console

Show = Callable[[Mapping[str, Any], "Console"], None]


def look_at_plan(job: Job | QuestionsJob) -> tuple[dict[str, Any], Show, list[str]]:
    """Return the plan of a job and what is left of its ledger as values; what prints them; and refusals.

    A refusal is why a run could not start here: the plan is the same where it can.
    """
    planned, described, show = planned_as(job)
    refusals: list[str] = []
    with _told(refusals):
        described |= look_at_ledger(job, planned)
        check_left(job, planned)
    with _told(refusals):
        check_function(job)
    with _told(refusals):
        check_temporary()
    return described, show, refusals


@contextmanager
def _told(refusals: list[str]) -> Iterator[None]:
    """Add to the refusals an error that is raised inside."""
    try:
        yield
    except ShoalError as error:
        refusals.append(error_text(error))


def look_at_ledger(job: Job | QuestionsJob, plan: AnyPlan) -> dict[str, Any]:
    """Return what is left of the ledger of a job, by the key of a plan; nothing without a ledger."""
    if job.privacy.ledger is None:
        return {}
    from pipelines.ledger.left import left_for  # only a job with a ledger needs it

    left = left_for(job.privacy.ledger, job, plan)
    return {"ledger": {**asdict(left), "says": left.sentence()}}


def check_left(job: Job | QuestionsJob, plan: AnyPlan) -> None:
    """Check that the ledger of a job, if it has one, has enough left for its run.

    Raises:
        LedgerRefusal: it has not.
    """
    if job.privacy.ledger is not None:
        from pipelines.ledger.ledger import check_charges, now

        check_charges(job.privacy.ledger, [(job, plan)], now)


def check_function(job: Job | QuestionsJob) -> None:
    """Import the function of a job, if it has one, and check its memory.

    Raises:
        ShoalError: it cannot be imported, or has more memory than there is.
    """
    if isinstance(job, SubsamplesJob):
        from pipelines.run.block_memory import check_block_memory
        from pipelines.run.import_function import import_function  # imports Arrow

        check_block_memory(job.task_params.memory_limit)
        import_function(job.untrusted())
