"""Where a release goes, and the steps of the pipeline that write it there."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apache_beam.typehints.decorators import no_annotations

from core.domain import Grid
from core.input_checks import Checked
from core.plan import Finding, InParts
from pipelines.errors import JobError
from pipelines.grouped_release import GroupedDraft, write_grouped_release
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.joint_release import (
    Ended,
    JointDraft,
    tables_of,
    write_answer,
    write_joint_release,
)
from pipelines.ledger.content import Entry
from pipelines.ledger.ledger import LedgerRefusal, check_release, mark_released
from pipelines.release import (
    FILES,
    RELEASE,
    REPORT,
    as_the_run_wrote_it,
    encode_part,
    find_release,
    read_output_id,
    write_release,
)
from pipelines.report.page import report_page
from pipelines.storage.folder import Folder, StorageError
from pipelines.storage.locate import open_folder
from pipelines.table import Attempt, Part, join_parts, write_part
from transforms.heap import give_back
from transforms.plain_errors import plain_errors


@dataclass(frozen=True)
class Delivery:
    """The destination of a release. It is sent to the worker that writes the release.

    Args:
        folder: the output of the job.
        run_id: id of the run.
        job: hash of the job.
        ledger: path of the ledger that the run is charged to.
        charged: id of that ledger, once the run is charged.
        output_id: id of the folder, which is part of the charge.
    """

    folder: Folder
    run_id: str
    job: str
    ledger: str | None
    charged: str | None = None
    output_id: str | None = None

    def find(self) -> dict[str, Any] | None:
        """Return the existing release of this job, or None; see `find_release`."""
        return find_release(self.folder, self.job, self.run_id)

    def finish(self) -> dict[str, Any] | None:
        """Mark the charge as released and write the report; return the release, or None if there is none.

        This is idempotent. It also removes temporary files of writers that were killed.

        Raises:
            JobError, StorageError: the ledger or the report cannot be written. The release stays, and the
                next call goes on.
        """
        release = self.find()
        if release is not None:
            if self.ledger is not None:
                mark_released(self.ledger, self.run_id, self._digest(), self.charged)
            if self.folder.read(REPORT) is None:
                give_back()  # pictures take about 200 MB
                with as_the_run_wrote_it(self.folder.locate(RELEASE)):
                    page = report_page(self.folder, release)
                try:
                    self.folder.create(REPORT, page)
                except (JobError, StorageError) as error:
                    raise type(error)(
                        f"{error} The release itself is complete; the same run again costs nothing, and "
                        "writes the report."
                    ) from None
            for name in (*FILES, *tables_of(release)):
                self.folder.sweep(name)
        return release

    def check(self) -> bool:
        """Return whether there is a release of this job, and check that `finish` could mark it."""
        if self.find() is None:
            return False
        if self.ledger is not None:
            check_release(self.ledger, self.run_id, self._digest())
        return True

    def check_charge(self, entry: Entry) -> bool:
        """Return whether a charge says that its run is released.

        Raises:
            LedgerRefusal: it does, but there is no release.
        """
        if entry.release is not None and self.find() is None:
            raise LedgerRefusal(
                f"privacy.ledger {self.ledger} has recorded that run {self.run_id} was released, but its "
                f"release is no longer in {self.folder.locate('')}: restore it, or give another run_id, "
                "which is charged separately."
            )
        return entry.release is not None

    def _digest(self) -> str:
        return hashlib.sha256(self.folder.read(RELEASE) or b"").hexdigest()


def delivery_of(job: Job | QuestionsJob) -> Delivery:
    """Return the destination of the release of `job`."""
    return Delivery(open_folder(job.output), str(job.run_id), job.hash(), job.privacy.ledger)


@no_annotations  # Beam would use protocols as type hints
def write_whole(state: Finding | Checked, draft: Mapping[str, Any], grid: Grid, delivery: Delivery) -> None:
    """Write the release unless there is one, so that a repeated step keeps the first release.

    Raises:
        StorageError: the folder has another id than the charge, as this worker has another disk.
    """
    with plain_errors("Write"):
        check_folder(delivery)
        write_release(delivery.folder, draft, state, grid)
        delivery.finish()


def check_folder(delivery: Delivery) -> None:
    """Check that this worker writes to the folder of the machine that submitted the run.

    Raises:
        StorageError: it has another disk.
    """
    if delivery.output_id not in (None, read_output_id(delivery.folder)):
        raise StorageError(
            f"{delivery.folder.locate('')} on the worker is not the folder of the machine that "
            "submitted the run: if it was removed or replaced meanwhile, put it back, else give an output "
            "that all workers share."
        )


@no_annotations
def encoded_part(
    draft: Mapping[str, Any], grid: Grid, number: int, state: InParts | Checked
) -> tuple[int, bytes]:
    """Return the number of a part and its file, as `write_one_part` takes them."""
    return number, encode_part(draft, grid, state)


@no_annotations
def write_one_part(part: tuple[int, bytes], attempt: Attempt, delivery: Delivery) -> Part:
    """Write a part of a table unless it is there, like `write_whole`; return the one that is there."""
    with plain_errors("Write"):
        check_folder(delivery)
        return write_part(delivery.folder, attempt, *part, delivery.job)


@no_annotations
def write_table(parts: list[Part], delivery: Delivery) -> None:
    """Write the release of a table, all parts of which are stored, unless there is one."""
    with plain_errors("Write"):
        check_folder(delivery)
        delivery.folder.create(RELEASE, join_parts(parts))
        delivery.finish()


@no_annotations
def write_one_answer(
    last: tuple[int, Ended], draft: JointDraft, delivery: Delivery
) -> tuple[str, dict[str, Any]]:
    """Write the table of a question unless it is there, like `write_whole`; return its name and answer."""
    number, ended = last
    with plain_errors("Write"):
        check_folder(delivery)
        name = list(draft.answers)[number]
        return name, write_answer(delivery.folder, draft, name, ended)


@no_annotations
def write_answers(answers: list[tuple[str, dict[str, Any]]], draft: JointDraft, delivery: Delivery) -> None:
    """Write the release of several questions, the tables of which are stored, unless there is one."""
    with plain_errors("Write"):
        check_folder(delivery)
        write_joint_release(delivery.folder, draft, answers)
        delivery.finish()


@no_annotations
def write_groups(
    states: list[tuple[int, Finding | Checked]], draft: GroupedDraft, delivery: Delivery
) -> None:
    """Write the release of all groups unless there is one, like `write_whole`."""
    with plain_errors("Write"):
        check_folder(delivery)
        write_grouped_release(delivery.folder, draft, states)
        delivery.finish()
