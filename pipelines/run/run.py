"""Run a job as one Beam pipeline that writes its release once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, cast

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult
from apache_beam.typehints.decorators import no_annotations

from core.errors import ShoalError
from core.groups import AnyPlan, GroupedPlan
from core.rounds import parts_of
from core.secure_noise import SecureNoise, secret_salt
from pipelines.console.events import Events
from pipelines.console.progress import Progress
from pipelines.grouped_plan import plan_job
from pipelines.grouped_release import GroupedDraft, draft_grouped_release
from pipelines.job.groups import GroupsJob
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.ledger.ledger import (
    charge_run,
    now,
)
from pipelines.release import (
    FILES,
    RELEASE,
    draft_release,
    identify_output,
)
from pipelines.run.block_memory import check_block_memory
from pipelines.run.check_run import check_apart, check_place
from pipelines.run.delivery import (
    Delivery,
    delivery_of,
    encoded_part,
    write_groups,
    write_one_part,
    write_table,
    write_whole,
)
from pipelines.run.import_function import import_function
from pipelines.run.joint_run import (
    PreparedQuestions,
    announced_questions,
    build_joint_pipeline,
    prepare_questions,
    steps_of_questions,
)
from pipelines.run.prepared import Prepared, steps_of
from pipelines.run.progress import announced, watched
from pipelines.run.runners import EMBEDDED, check_options, in_this_process, make_options, open_pipeline
from pipelines.run.submit import RunError, submit
from pipelines.storage.locate import open_folder
from pipelines.table import Attempt, encode_release
from pipelines.tasks import TASKS
from pipelines.terminated import end_where_asked
from transforms.bound_units import BoundUnits
from transforms.column_types import Opened, exact_axes, give_types, used_types
from transforms.evaluate_subsamples import AnswerReader, AnswersOfGroups, EvaluateSubsamples
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader, check_axes
from transforms.read_once import read_once
from transforms.records import OneQuestion, Records, RecordsOfQuestions
from transforms.run_rounds import RunRounds, RunStrands, shards_of
from transforms.split_groups import GroupSplit, ReaderOfGroups


def prepare_run(
    job: Job | QuestionsJob,
    runner: str = EMBEDDED,
    beam_options: Sequence[str] = (),
    clock: Callable[[], datetime] = now,
    opened: Opened | None = None,
) -> Any:
    """Check `job` as far as possible before it is charged.

    Args:
        job: the checked job.
        runner: name of a Beam runner; see `pipelines.run.runners`.
        beam_options: further options of Beam.
        clock: returns the current time.
        opened: what stands for files where rows are held; see `transforms.hold_batches`.

    Returns:
        A `Prepared`, or a `PreparedQuestions` for several questions.

    Raises:
        JobError: the job, the runner or the output folder is wrong.
        InputError: the input is not what the job says.
        LedgerRefusal: the ledger refuses the run.
    """
    if isinstance(job, QuestionsJob):
        return prepare_questions(job, runner, beam_options, clock, opened)
    options = make_options(runner, job, beam_options)
    check_options(options, beam_options)
    check_apart(job, FILES, opened is not None)
    preparation = job.input.preparation()
    columns, grid = job.input.columns, job.grid
    exact = () if TASKS[job.task].subsamples else exact_axes(columns, grid)
    if opened is not None:
        used = used_types(columns, job.unit, job.order, job.count, job.group_keys, grid.times, exact)
        opened = give_types(opened, job.input.types, preparation, [used])
    source = open_source(
        job.input.path,
        job.input.columns,
        job.unit,
        job.order,
        opened,
        preparation=preparation,
        groups=job.group_keys,
        count=job.count,
        times=job.grid.times,
        types=job.input.types,
        exact=exact,
    )
    if not TASKS[job.task].subsamples:
        check_axes(source, job.grid)
    salt = secret_salt()
    prepared = Prepared(job, options, source, plan_job(job, salt), salt)
    if prepared.function is not None and options.view_as(StandardOptions).runner == EMBEDDED:
        check_block_memory(prepared.function.megabytes, options.view_as(DirectOptions).direct_num_workers)
        import_function(prepared.function)
    attempt = attempt_of(prepared)
    if attempt is not None:
        attempt.check(open_folder(job.output))
    check_place(job, prepared.plan, clock)
    return prepared


def run_job(
    job: Job | QuestionsJob,
    runner: str = EMBEDDED,
    beam_options: Sequence[str] = (),
    events: Events | None = None,
    clock: Callable[[], datetime] = now,
    on_stored: Callable[[], None] = lambda: None,
    progress: Progress | None = None,
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
        progress: shows on a terminal what the run does.

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
    progress = progress or Progress(False)
    delivery, stored = delivery_of(job), True
    release = delivery.finish()
    if release is None:
        prepared = prepare_run(job, runner, beam_options, clock)
        events.emit("planned", method=prepared.plan.method, spends=prepared.plan.spend.epsilon)
        end_where_asked()
        delivery, stored = charge_delivery(job, prepared.plan, delivery, clock)
        if not stored:
            events.emit("started", runner=runner, ledger=job.privacy.ledger)
            progress.say("Starting workers")
            several = isinstance(prepared, PreparedQuestions)
            progress.expect(steps_of_questions(prepared) if several else steps_of(prepared))
            build: Any = build_joint_pipeline if several else build_pipeline
            telling: Any = (
                announced_questions(prepared, events)
                if several
                else announced(prepared.rounds, events, len(prepared.strands))
            )
            sources = prepared.sources.values() if several else [prepared.source]
            with (
                telling as rounds,
                watched(progress, prepared.options) as started,
                _keys_staying(prepared.options, sources),
            ):
                end_where_asked()
                done = _submit(partial(build, prepared, delivery, rounds), delivery, started)
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


@contextmanager
def _keys_staying(options: PipelineOptions, sources: Iterable[Source]) -> Iterator[None]:
    """Leave public keys out of what is pickled where this process runs the whole pipeline."""
    with ExitStack() as stack:
        for source in sources:
            if source.groups is not None and source.groups.labels is not None and in_this_process(options):
                stack.enter_context(source.groups.labels.staying())
        yield


def _submit(
    build: Callable[[], beam.Pipeline], delivery: Delivery, started: Callable[[PipelineResult], None]
) -> bool:
    """Build and run the pipeline of a run; see `submit`. A release that a failed pipeline left counts.

    The error of a run that is charged says how to go on at no further cost.
    """
    try:
        return submit(build, "no release was written", started)
    except ShoalError as error:
        if delivery.find() is not None:
            return True
        if not isinstance(error, RunError) or delivery.charged is None:
            raise
        again = f"run it again with run_id {delivery.run_id}, which costs nothing more"
        raise RunError(f"{error} The run is charged: once that is mended, {again}.") from None


def charge_delivery(
    job: Job | QuestionsJob,
    plan: AnyPlan,
    delivery: Delivery,
    clock: Callable[[], datetime],
) -> tuple[Delivery, bool]:
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
    pipeline = open_pipeline(prepared.options)
    answer_rows(pipeline | "Read" >> ReadBlocks(prepared.source), prepared, delivery, rounds)
    return pipeline


def answer_rows(
    elements: beam.PCollection, prepared: Prepared, delivery: Any, rounds: Sequence[Any], names: Any = b""
) -> beam.PCollection:
    """Run all rounds on descriptors of rows, and write the release.

    Args:
        elements: descriptors, at least one.
        prepared: the job.
        delivery: a `Delivery`, or a side input of one.
        rounds: of the plan.
        names: secret bytes of one execution, or a side input of them, where a pipeline may be executed again
            with its salt; see `transforms.run_rounds.RunPass`.

    Returns:
        One element without a value, once the release is stored.
    """
    job, plan, source = prepared.job, prepared.plan, prepared.source
    if isinstance(plan, GroupedPlan):
        return _answer_groups(elements, prepared, delivery, rounds, names)
    reader: Records
    if prepared.function is not None:
        elements = elements | "Subsamples" >> EvaluateSubsamples(prepared.splitting, prepared.function)
        reader = AnswerReader(job.grid.dimension)
    elif prepared.bounding is not None:
        elements = elements | "Units" >> BoundUnits(prepared.bounding)
        reader = prepared.bounding.reader
    else:
        reader = read_once(OneQuestion(Reader.of(source, job.grid, job.checks > 0)), [rounds], [job.grid])
    draft = draft_release(job, plan)
    keep = partial(encoded_part, draft, job.grid)
    run = RunRounds(rounds, plan.start, SecureNoise(), reader, keep_part=keep, names=names)
    last = elements | "Rounds" >> run
    attempt = attempt_of(prepared)
    if attempt is None:
        return last | "Write" >> beam.Map(write_whole, draft, job.grid, delivery)
    written = last | "WriteParts" >> beam.Map(write_one_part, attempt, delivery)
    return written | "Together" >> beam.combiners.ToList() | "Write" >> beam.Map(write_table, delivery)


def _answer_groups(
    elements: beam.PCollection, prepared: Prepared, delivery: Any, rounds: Sequence[Any], names: Any
) -> beam.PCollection:
    """Answer a job that is asked about each group by itself; see `core.each_group.strands_of`."""
    elements, records = read_groups(prepared, elements)
    draft = draft_grouped_release(cast(GroupsJob, prepared.job), cast(GroupedPlan, prepared.plan))
    strands = [replace(strand, rounds=tuple(rounds)) for strand in prepared.strands]
    shards = shards_of(len(strands))
    questions = [0] * len(strands)
    last = elements | "Rounds" >> RunStrands(strands, SecureNoise(), records, shards, names, questions)
    if not prepared.apart:
        return last | "Write" >> beam.Map(_write_together, draft, delivery)
    return last | "Together" >> beam.combiners.ToList() | "Write" >> beam.Map(write_groups, draft, delivery)


@no_annotations
def _write_together(ended: tuple[int, Any], draft: GroupedDraft, delivery: Delivery) -> None:
    """Write what the one strand ended with that answers all groups."""
    write_groups(ended[1], draft, delivery)


def read_groups(
    prepared: Prepared, elements: beam.PCollection
) -> tuple[beam.PCollection, RecordsOfQuestions]:
    """Return what every pass reads of descriptors, and how it becomes the records of the groups."""
    job, source, bounding = prepared.job, prepared.source, prepared.bounding
    if prepared.function is not None:
        elements = elements | "Subsamples" >> EvaluateSubsamples(prepared.splitting, prepared.function)
        return elements, AnswersOfGroups(job.grid.dimension, job.task_params.blocks)
    salt = None
    if bounding is None:
        rows = OneQuestion(replace(Reader.of(source, job.grid, job.checks > 0), apart=True))
        reader: Records = read_once(rows, [prepared.rounds], [job.grid])
    else:
        elements, reader, salt = elements | "Units" >> BoundUnits(bounding), bounding.reader, prepared.salt
    if not prepared.apart:
        return elements, OneQuestion(reader)
    return elements, ReaderOfGroups.one(reader, GroupSplit(prepared.apart, job.grid.dimension, salt))


def attempt_of(prepared: Prepared) -> Attempt | None:
    """Return the attempt at a table in parts, or None where the release is of one piece.

    Without units, and where a unit's record is computed from all of its rows, the records follow from the
    input alone. Otherwise they follow from the salt, too, which no later attempt has. In which part a group
    is follows from the public keys and their order, which a file may have changed. An attempt is shown
    with the parts, so of the input it has names and times of files alone: an ETag may be a hash of the rows.
    """
    job, plan = prepared.job, prepared.plan
    parts = parts_of(plan.rounds[-1])
    if parts == 1 or isinstance(plan, GroupedPlan):  # which has none
        return None
    chosen = job.keep in ("one", "last") or job.bounds is not None
    salt = prepared.salt if chosen else b""
    files = prepared.source.every_file
    written = (f"{file.path} {file.version.rpartition(' ')[2]}".encode() for file in files)  # without ETags
    keys = prepared.source.groups
    labels = () if keys is None else keys.labels or ()
    origins = (encode_release(draft_release(job, plan)), repr(labels).encode(), salt, *written)
    return Attempt.of(parts, *origins)
