"""Run a job: one Beam pipeline, from the checked job to a release that is written once."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.typehints.decorators import no_annotations

from core.domain import Grid
from core.plan import Finding, Plan
from core.secure_noise import SecureNoise, secret_salt
from pipelines.console.events import Events
from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.ledger.ledger import LedgerRefusal, charge_run, check_room, mark_released, now
from pipelines.plan import make_plan
from pipelines.release import (
    OUTPUT_ID,
    RELEASE,
    REPORT,
    TABLE,
    draft_release,
    find_release,
    identify_output,
    read_output_id,
    read_rows,
    write_release,
)
from pipelines.report.report import render
from pipelines.run.progress import shown
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
from transforms.run_function import Function, FunctionError, FunctionRunner
from transforms.run_rounds import Records, RunRounds
from transforms.split_units import Splitting


@dataclass(frozen=True)
class Delivery:
    """Where the release of a run goes: small, since it travels to the worker that writes it.

    Args:
        folder: the job's output.
        run_id: the run's id.
        job: the job's hash.
        ledger: path of the ledger that the run is charged to.
        charged: id of that ledger, once the run is charged.
        output_id: id of the folder, which the charge holds.
    """

    folder: Folder
    run_id: str
    job: str
    ledger: str | None
    charged: str | None = None
    output_id: str | None = None

    def find(self) -> dict[str, Any] | None:
        """Return the release that is there of this very job, or None; see `find_release`."""
        return find_release(self.folder, self.job)

    def finish(self) -> dict[str, Any] | None:
        """Mark the charge as released and make the report; return the release, or None if there is none.

        It may be done again at any time, by anyone; it also removes what writers that were killed left.
        """
        release = self.find()
        if release is not None:
            if self.ledger is not None:
                digest = hashlib.sha256(self.folder.read(RELEASE) or b"").hexdigest()
                mark_released(self.ledger, self.run_id, digest, self.charged)
            if self.folder.read(REPORT) is None:
                self.folder.create(REPORT, render(release, read_rows(self.folder)).encode())
            for name in (OUTPUT_ID, RELEASE, TABLE, REPORT):
                self.folder.sweep(name)
        return release


def delivery_of(job: Job) -> Delivery:
    """Return where the release of `job` goes."""
    return Delivery(open_folder(job.output), str(job.run_id), job.hash(), job.privacy.ledger)


@dataclass(frozen=True)
class Prepared:
    """A job that was checked as far as that goes without reading rows, spending or writing anything.

    Args:
        job: the job.
        options: Beam's.
        source: its input.
        plan: what it is going to do.
        salt: 16 secret bytes that choose samples.
    """

    job: Job
    options: PipelineOptions
    source: Source
    plan: Plan
    salt: bytes = field(repr=False)

    @property
    def function(self) -> Function | None:
        """The function whose answers are the records; None where rows are."""
        return self.job.task_params.untrusted() if TASKS[self.job.task].subsamples else None


def prepare_run(
    job: Job,
    runner: str = EMBEDDED,
    beam_options: Sequence[str] = (),
    clock: Callable[[], datetime] = now,
) -> Prepared:
    """Check everything about `job` that can be checked before it is charged.

    Args:
        job: the checked job.
        runner: name of a Beam runner; see `pipelines.run.runners`.
        beam_options: further options of Beam.
        clock: tells the time.

    Raises:
        JobError: the job, the runner or the output folder is wrong.
        InputError: the input is not what the job says.
        LedgerRefusal: the ledger has no room for it.
    """
    options = make_options(runner, job, beam_options)
    check_options(options)
    _check_apart(job)
    source = open_source(job.input.path, job.input.columns, job.unit)
    if not TASKS[job.task].subsamples:
        check_axes(source, job.grid)
    salt = secret_salt()
    prepared = Prepared(job, options, source, make_plan(job, salt), salt)
    if prepared.function is not None and options.view_as(StandardOptions).runner == EMBEDDED:
        _check_import(prepared.function)
    if job.privacy.ledger is not None:
        check_room(job.privacy.ledger, job, prepared.plan, clock)
    open_folder(job.output).prepare()
    return prepared


def _check_apart(job: Job) -> None:
    """Refuse to write where a later run on the same input could read it."""
    for name, place in (("output", job.output), ("privacy.ledger", job.privacy.ledger)):
        if place is not None and lies_within(job.input.path, place):
            raise JobError(
                f"{name} is {place}: it lies in input.path {job.input.path}, where a later run could "
                "take it for rows; give a place outside of the input."
            )


def _check_import(function: Function) -> None:
    """Import the function where no row is, before anything is spent; elsewhere its workers must have it."""
    try:
        FunctionRunner(function).close()
    except FunctionError as error:
        raise JobError(str(error)) from None


def run_job(
    job: Job,
    runner: str = EMBEDDED,
    beam_options: Sequence[str] = (),
    events: Events | None = None,
    clock: Callable[[], datetime] = now,
) -> dict[str, Any] | None:
    """Run `job`, or find that it has already been run.

    The output folder is looked at first: where it holds this job's release, that one is returned, and no
    data is read. Otherwise the job is charged before data is read, and charged once however often it is
    tried. What writes the release, on a worker, also marks the charge and makes the report, so that
    nothing is left to a submitting process that may have ended.

    Args:
        job: the checked job.
        runner: name of a Beam runner; see `pipelines.run.runners`.
        beam_options: further options of Beam.
        events: told what happens.
        clock: tells the time.

    Returns:
        The stored release; None where the runner only takes the job, and will run it by itself.

    Raises:
        JobError: the job, the runner or the output folder is wrong.
        InputError: the input is not what the job says.
        LedgerRefusal: the ledger has no room for it.
        StorageError: storage keeps failing.
        RunError: anything else.
    """
    events = (events or Events(None, clock)).of(run_id=job.run_id, task=job.task)
    delivery = delivery_of(job)
    if delivery.find() is None:
        prepared = prepare_run(job, runner, beam_options, clock)
        events.tell("planned", method=prepared.plan.method, spends=prepared.plan.spend.epsilon)
        delivery, found = _charge(job, prepared.plan, delivery, clock)
        if not found:
            events.tell("started", runner=runner, ledger=job.privacy.ledger)
            with shown(prepared.plan.rounds, events) as rounds:
                done = submit(partial(build_pipeline, prepared, delivery, rounds), "nothing was released")
            if not done:
                events.tell("submitted", output=job.output)
                return None
    release = delivery.finish()
    if release is None:
        raise RunError(f"The pipeline ended, but {delivery.folder.locate(RELEASE)} cannot be seen from here.")
    events.tell(release["outcome"], output=job.output)
    return release


def _charge(job: Job, plan: Plan, delivery: Delivery, clock: Callable[[], datetime]) -> tuple[Delivery, bool]:
    """Charge the job to its ledger.

    Returns:
        The delivery, with the id of what was charged, and whether the release has become visible meanwhile.
    """
    if delivery.ledger is None:
        return delivery, False
    output_id = identify_output(delivery.folder)
    entry = charge_run(delivery.ledger, job, plan, clock, output_id)
    delivery = replace(delivery, charged=entry.ledger, output_id=output_id)
    if entry.release is None:
        return delivery, False
    if delivery.find() is None:
        raise LedgerRefusal(
            f"privacy.ledger {delivery.ledger} knows run {job.run_id} as released, but its release is not "
            f"in {job.output} any more: put it back, or give another run_id, which is charged by itself."
        )
    return delivery, True


def build_pipeline(prepared: Prepared, delivery: Delivery, rounds: Sequence[Any]) -> beam.Pipeline:
    """Return the one pipeline of a run: read, all rounds, write."""
    job, plan, source = prepared.job, prepared.plan, prepared.source
    pipeline = open_pipeline(prepared.options)
    elements = pipeline | "Read" >> ReadBlocks(source)
    reader: Records
    if prepared.function is not None:
        splitting = Splitting(source.columns, source.unit, job.task_params.blocks, prepared.salt)
        elements = elements | "Subsamples" >> EvaluateSubsamples(splitting, prepared.function)
        reader = AnswerReader()
    elif job.keep is not None:
        bounding = Bounding.of(source, job.grid, job.keep, prepared.salt)
        elements = elements | "Units" >> BoundUnits(bounding)
        reader = BoundedReader(job.grid)
    else:
        reader = Reader.of(source, job.grid)
    state = elements | "Rounds" >> RunRounds(rounds, plan.start, SecureNoise(), reader)
    _ = state | "Write" >> beam.Map(_write, draft_release(job, plan), job.grid, delivery)
    return pipeline


@no_annotations  # Beam would check protocols as types
def _write(state: Finding, draft: Mapping[str, Any], grid: Grid, delivery: Delivery) -> None:
    """Write the release where there is none; a step that is repeated leaves the first one.

    Raises:
        StorageError: the folder is not the one that the charge holds: this worker sees another disk.
    """
    with plain_errors("Write"):
        if delivery.output_id not in (None, read_output_id(delivery.folder)):
            raise StorageError(
                f"{delivery.folder.locate('')} is another folder on the worker than where the run was "
                "submitted: give an output that all workers share."
            )
        write_release(delivery.folder, draft, state, grid)
        delivery.finish()
