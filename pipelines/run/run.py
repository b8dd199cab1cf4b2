"""Run a job as one Beam pipeline that writes its release once."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.typehints.decorators import no_annotations

from core.domain import Grid
from core.errors import ShoalError
from core.input_checks import Checked
from core.plan import Finding, Plan
from core.secure_noise import SecureNoise, secret_salt
from pipelines.console.events import Events
from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.ledger.content import Entry
from pipelines.ledger.ledger import (
    LedgerRefusal,
    charge_run,
    check_charge,
    check_release,
    mark_released,
    now,
)
from pipelines.plan import make_plan
from pipelines.release import (
    FILES,
    RELEASE,
    REPORT,
    as_the_run_wrote_it,
    draft_release,
    find_release,
    identify_output,
    read_output_id,
    read_rows,
    write_release,
)
from pipelines.report.report import render
from pipelines.run.import_function import import_function
from pipelines.run.progress import with_progress
from pipelines.run.runners import EMBEDDED, check_options, make_options, open_pipeline
from pipelines.run.submit import RunError, submit
from pipelines.storage.folder import Folder, StorageError
from pipelines.storage.locate import open_folder
from pipelines.tasks import TASKS
from transforms.bound_units import BoundedReader, Bounding, BoundUnits
from transforms.evaluate_subsamples import AnswerReader, EvaluateSubsamples
from transforms.list_files import lies_within
from transforms.open_source import Source, open_source
from transforms.plain_errors import plain_errors
from transforms.read_blocks import ReadBlocks, Reader, check_axes
from transforms.run_function import Function
from transforms.run_rounds import Records, RunRounds
from transforms.split_units import Splitting


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
        return find_release(self.folder, self.job)

    def finish(self) -> dict[str, Any] | None:
        """Mark the charge as released and write the report; return the release, or None if there is none.

        This is idempotent. It also removes temporary files of writers that were killed.
        """
        release = self.find()
        if release is not None:
            if self.ledger is not None:
                mark_released(self.ledger, self.run_id, self._digest(), self.charged)
            if self.folder.read(REPORT) is None:
                with as_the_run_wrote_it(self.folder.locate(RELEASE)):
                    page = render(release, read_rows(self.folder)).encode()
                self.folder.create(REPORT, page)
            for name in FILES:
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


def delivery_of(job: Job) -> Delivery:
    """Return the destination of the release of `job`."""
    return Delivery(open_folder(job.output), str(job.run_id), job.hash(), job.privacy.ledger)


@dataclass(frozen=True)
class Prepared:
    """A job that passed every check that needs no row, no budget and no writing.

    Args:
        job: the job.
        options: options of Beam.
        source: its input.
        plan: its plan.
        salt: 16 secret bytes that choose samples.
    """

    job: Job
    options: PipelineOptions
    source: Source
    plan: Plan
    salt: bytes = field(repr=False)

    @property
    def function(self) -> Function | None:
        """The function whose answers are the records; None where the records are rows or units."""
        return self.job.task_params.untrusted() if TASKS[self.job.task].subsamples else None


def prepare_run(
    job: Job,
    runner: str = EMBEDDED,
    beam_options: Sequence[str] = (),
    clock: Callable[[], datetime] = now,
) -> Prepared:
    """Check `job` as far as possible before it is charged.

    Args:
        job: the checked job.
        runner: name of a Beam runner; see `pipelines.run.runners`.
        beam_options: further options of Beam.
        clock: returns the current time.

    Raises:
        JobError: the job, the runner or the output folder is wrong.
        InputError: the input is not what the job says.
        LedgerRefusal: the ledger refuses the run.
    """
    options = make_options(runner, job, beam_options)
    check_options(options)
    _check_apart(job)
    source = open_source(job.input.path, job.input.columns, job.unit, job.order)
    if not TASKS[job.task].subsamples:
        check_axes(source, job.grid)
    salt = secret_salt()
    prepared = Prepared(job, options, source, make_plan(job, salt), salt)
    if prepared.function is not None and options.view_as(StandardOptions).runner == EMBEDDED:
        import_function(prepared.function)
    if job.privacy.ledger is not None:
        delivery = delivery_of(job)
        output_id = read_output_id(delivery.folder)
        delivery.check_charge(check_charge(job.privacy.ledger, job, prepared.plan, clock, output_id))
    open_folder(job.output).prepare()
    return prepared


def _check_apart(job: Job) -> None:
    """Check that input, output and ledger are apart.

    A later run would read an output or a ledger in the input as rows. A ledger with the name of a file of the
    output would be taken for that file.
    """
    for name, place in (("output", job.output), ("privacy.ledger", job.privacy.ledger)):
        if place is not None and lies_within(job.input.path, place):
            raise JobError(
                f"{name} is {place}: it lies in input.path {job.input.path}, where a later run could "
                "read it as rows; give a path outside the input."
            )
    own = [os.path.realpath(open_folder(job.output).locate(name)) for name in FILES]
    if job.privacy.ledger is not None and os.path.realpath(job.privacy.ledger) in own:
        raise JobError(
            f"privacy.ledger is {job.privacy.ledger}: a run writes a file of this name to its output; give "
            "another path."
        )


def run_job(
    job: Job,
    runner: str = EMBEDDED,
    beam_options: Sequence[str] = (),
    events: Events | None = None,
    clock: Callable[[], datetime] = now,
    on_stored: Callable[[], None] = lambda: None,
) -> dict[str, Any] | None:
    """Run `job`, unless its release exists.

    If the output folder contains the release of this job, it is returned, and no data is read. Otherwise the
    job is charged before data is read. It is charged once, even if it is run several times. The worker that
    writes the release also marks the charge and writes the report, since the submitting process may have
    ended by then.

    Args:
        job: the checked job.
        runner: name of a Beam runner; see `pipelines.run.runners`.
        beam_options: further options of Beam.
        events: log of the run.
        clock: returns the current time.
        on_stored: called where the release was stored before.

    Returns:
        The stored release; None where the runner only accepted the job and runs it later.

    Raises:
        JobError: the job, the runner or the output folder is wrong.
        InputError: the input is not what the job says.
        LedgerRefusal: the ledger refuses the run.
        StorageError: storage keeps failing.
        RunError: anything else.
    """
    events = (events or Events(None, clock)).of(run_id=job.run_id, task=job.task)
    delivery, stored = delivery_of(job), True
    release = delivery.finish()
    if release is None:
        prepared = prepare_run(job, runner, beam_options, clock)
        events.emit("planned", method=prepared.plan.method, spends=prepared.plan.spend.epsilon)
        delivery, stored = _charge(job, prepared.plan, delivery, clock)
        if not stored:
            events.emit("started", runner=runner, ledger=job.privacy.ledger)
            with with_progress(prepared.plan.rounds, events) as rounds:
                done = _submit(partial(build_pipeline, prepared, delivery, rounds), delivery)
            if not done:
                events.emit("submitted", output=job.output)
                return None
        release = delivery.finish()
    if release is None:
        raise RunError(
            f"The pipeline ended, but {delivery.folder.locate(RELEASE)} is not visible from this machine."
        )
    outcome = {"outcome": release["outcome"]} if stored else {}
    events.emit("stored" if stored else release["outcome"], output=job.output, **outcome)
    if stored:
        on_stored()
    return release


def _submit(build: Callable[[], beam.Pipeline], delivery: Delivery) -> bool:
    """Build and run the pipeline of a run; see `submit`. A release that a failed pipeline left counts."""
    try:
        return submit(build, "nothing was released")
    except ShoalError:
        if delivery.find() is None:
            raise
        return True


def _charge(job: Job, plan: Plan, delivery: Delivery, clock: Callable[[], datetime]) -> tuple[Delivery, bool]:
    """Charge the job to its ledger.

    Returns:
        The delivery with the id of the ledger, and whether the release has become visible meanwhile.
    """
    if delivery.ledger is None:
        return delivery, False
    output_id = identify_output(delivery.folder)
    entry = charge_run(delivery.ledger, job, plan, clock, output_id)
    delivery = replace(delivery, charged=entry.ledger, output_id=output_id)
    return delivery, delivery.check_charge(entry)


def build_pipeline(prepared: Prepared, delivery: Delivery, rounds: Sequence[Any]) -> beam.Pipeline:
    """Return the pipeline of a run: read, all rounds, write."""
    job, plan, source = prepared.job, prepared.plan, prepared.source
    pipeline = open_pipeline(prepared.options)
    elements = pipeline | "Read" >> ReadBlocks(source)
    reader: Records
    if prepared.function is not None:
        splitting = Splitting(source.columns, source.unit, job.task_params.blocks, prepared.salt)
        elements = elements | "Subsamples" >> EvaluateSubsamples(splitting, prepared.function)
        reader = AnswerReader(job.grid.dimension)
    elif job.keep is not None:
        bounding = Bounding.of(source, job.grid, job.keep, prepared.salt, job.checks > 0)
        elements = elements | "Units" >> BoundUnits(bounding)
        reader = BoundedReader(job.grid)
    else:
        reader = Reader.of(source, job.grid, job.checks > 0)
    state = elements | "Rounds" >> RunRounds(rounds, plan.start, SecureNoise(), reader)
    _ = state | "Write" >> beam.Map(_write, draft_release(job, plan), job.grid, delivery)
    return pipeline


@no_annotations  # Beam would use protocols as type hints
def _write(state: Finding | Checked, draft: Mapping[str, Any], grid: Grid, delivery: Delivery) -> None:
    """Write the release unless there is one, so that a repeated step keeps the first release.

    Raises:
        StorageError: the folder has another id than the charge, as this worker has another disk.
    """
    with plain_errors("Write"):
        if delivery.output_id not in (None, read_output_id(delivery.folder)):
            raise StorageError(
                f"{delivery.folder.locate('')} on the worker is not the folder of the machine that "
                "submitted the run: give an output that all workers share."
            )
        write_release(delivery.folder, draft, state, grid)
        delivery.finish()
