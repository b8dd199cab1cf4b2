"""Checks of a run before it is charged: its places are apart, and its ledger admits it."""

import os
from collections.abc import Callable, Sequence
from datetime import datetime

from core.groups import AnyPlan
from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.key_files import check_public
from pipelines.ledger.ledger import check_charge
from pipelines.release import RELEASE, REPORT, read_output_id
from pipelines.run.delivery import delivery_of
from pipelines.storage.locate import open_folder
from pipelines.table import ATTEMPT
from transforms.list_files import lies_within


def check_apart(job: Job | QuestionsJob, files: Sequence[str], held: bool = False) -> None:
    """Check that input, public tables, output and ledger are apart.

    A later run would read an output or a ledger in the input as rows. A ledger with the name of a file of the
    output would be taken for that file. Rows that are `held` in memory are in no place.
    """
    places = {} if held else {"output": job.output, "privacy.ledger": job.privacy.ledger}
    for name, place in places.items():
        if place is not None and lies_within(job.input.path, place):
            raise JobError(
                f"{name} is {place}: it lies in input.path {job.input.path}, where a later run could "
                "read it as rows; give a path outside the input."
            )
    if not held:
        check_public(job)
    if job.privacy.ledger is None:
        return
    own = [os.path.realpath(open_folder(job.output).locate(name)) for name in files]
    ledger = os.path.realpath(job.privacy.ledger)
    if ledger in own or os.path.dirname(ledger) == os.path.dirname(own[files.index(ATTEMPT)]):
        raise JobError(
            f"privacy.ledger is {job.privacy.ledger}: a run writes a file of this name to its output; give "
            "another path."
        )


def check_place(job: Job | QuestionsJob, plan: AnyPlan, clock: Callable[[], datetime]) -> None:
    """Check that the ledger admits a run, and that its output can be written.

    Raises:
        JobError: there is no ledger, or the output folder is wrong, or has a report that is not of this run.
        LedgerRefusal: the ledger refuses the run.
    """
    folder = open_folder(job.output)
    if folder.read(REPORT) is not None and folder.read(RELEASE) is None:
        raise JobError(
            f"{folder.locate(REPORT)} exists, but there is no release beside it: move it elsewhere, or give "
            "another output."
        )
    if job.privacy.ledger is not None:
        delivery = delivery_of(job)
        output_id = read_output_id(delivery.folder)
        delivery.check_charge(check_charge(job.privacy.ledger, job, plan, clock, output_id))
    folder.prepare()
