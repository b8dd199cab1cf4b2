"""The pipeline of a job of several questions: one read of the rows for all that is due, one release."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.typehints.decorators import no_annotations

from core.each_group import in_one_pass
from core.questions import JointPlan
from core.rounds import Strand
from core.secure_noise import SecureNoise, secret_salt
from pipelines.console.events import Events
from pipelines.console.progress import Step
from pipelines.grouped_plan import strands_of_job
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob, in_question, table_name
from pipelines.joint_plan import make_joint_plan
from pipelines.joint_release import check_stored, draft_joint_release
from pipelines.release import FILES
from pipelines.run.check_run import check_apart, check_place
from pipelines.run.delivery import Delivery, write_answers, write_one_answer
from pipelines.run.progress import announced
from pipelines.run.runners import check_options, make_options, open_pipeline
from pipelines.storage.locate import open_folder
from transforms.bound_together import BoundingOfQuestions, BoundTogether
from transforms.bound_units import Bounding, UnitBounds
from transforms.column_types import Opened, Uses, exact_axes, give_types, used_types
from transforms.contributions import Contributing
from transforms.gather_parts import GATHERED
from transforms.list_files import InputError
from transforms.open_source import Source, open_files, open_source
from transforms.preparation import Preparation
from transforms.read_blocks import ReadBlocks, Reader, ReaderOfQuestions, check_axes
from transforms.read_once import read_once
from transforms.run_rounds import RunStrands, passes_of, shards_of
from transforms.split_groups import GroupSplit, ReaderOfGroups


@dataclass(frozen=True)
class PreparedQuestions:
    """A job of several questions that passed every check; see `pipelines.run.prepared.Prepared`.

    Args:
        job: the job.
        options: options of Beam.
        sources: the input of each question: the same files, each with its own columns.
        plan: the plans of all questions.
        salt: 16 secret bytes that tell units apart and choose their rows. Samples have salts of their own.
    """

    job: QuestionsJob
    options: PipelineOptions
    sources: Mapping[str, Source]
    plan: JointPlan
    salt: bytes = field(repr=False)

    @property
    def groups(self) -> list[int]:
        """Of each question the number of its groups, where it is asked about each by itself; else 0."""
        keys = (self.sources[name].groups for name in self.job.jobs)
        asked = zip(self.job.jobs.values(), keys, strict=True)
        return [len(own.labels or ()) if own is not None and job.apart else 0 for job, own in asked]

    @property
    def strands(self) -> list[Strand]:
        """The rounds of each question, or of each of its groups, in the order of the job."""
        return [strand for of_question in self.questions for strand in of_question]

    @property
    def questions(self) -> list[list[Strand]]:
        """The strands of each question."""
        asked = zip(self.job.jobs.values(), self.plan.plans.values(), self.groups, strict=True)
        return [strands_of_job(job, plan, many) for job, plan, many in asked]

    @property
    def apart(self) -> list[int]:
        """Of each question the number of groups whose records are split; 0 where it has one strand."""
        asked = zip(self.questions, self.groups, strict=True)
        return [0 if in_one_pass(strands) else many for strands, many in asked]

    @property
    def splits(self) -> tuple[GroupSplit | None, ...]:
        """How the records of each question are split by its groups; None where they are not."""
        salt = None if self.job.unit is None else self.salt
        asked = zip(self.job.jobs.values(), self.apart, strict=True)
        return tuple(GroupSplit(many, job.grid.dimension, salt) if many else None for job, many in asked)

    @property
    def bounding(self) -> BoundingOfQuestions | None:
        """How the rows of a unit become its records; None where each row is a record."""
        if self.job.unit is None:
            return None
        asked = self.job.jobs.items()
        return BoundingOfQuestions(
            tuple(unit_bounds(self.sources[name], job, self.salt) for name, job in asked)
        )


def unit_bounds(source: Source, question: Job, salt: bytes) -> UnitBounds:
    """Return how the rows of a unit become the records of a question."""
    bounds, keep = question.bounds, question.keep or "one"
    bounding = Bounding.of(source, question.grid, keep, salt, question.checks > 0)
    if bounds is None:
        return bounding
    return Contributing.of(source, bounding, bounds.groups, bounds.rows)


def prepare_questions(
    job: QuestionsJob,
    runner: str,
    beam_options: Sequence[str],
    clock: Callable[[], datetime],
    opened: Opened | None = None,
) -> PreparedQuestions:
    """Check `job` as far as possible before it is charged; see `pipelines.run.run.prepare_run`."""
    options = make_options(runner, job, beam_options)
    check_options(options, beam_options)
    check_apart(job, (*FILES, *map(table_name, job.jobs)), opened is not None)
    preparation, uses = job.input.preparation(), [_uses(question) for question in job.jobs.values()]
    opened = give_types(opened or open_files(job.input.path), job.input.types, preparation, uses)
    sources = {name: _source_of(name, question, opened, preparation) for name, question in job.jobs.items()}
    plan = make_joint_plan(job, {name: secret_salt() for name in job.jobs})
    prepared = PreparedQuestions(job, options, sources, plan, secret_salt())
    check_stored(open_folder(job.output), draft_joint_release(job, plan))
    check_place(job, plan, clock)
    return prepared


def _uses(question: Job) -> Uses:
    """Return the types of columns by how a question uses them."""
    grid, columns = question.grid, question.input.columns
    its = (question.unit, question.order, question.count, question.group_keys)
    return used_types(columns, *its, grid.times, exact_axes(columns, grid))


def _source_of(name: str, question: Job, opened: Opened, preparation: Preparation) -> Source:
    """Return the input of a question.

    Raises:
        InputError: it is not what the question says.
    """
    asked, its = question.input, (question.unit, question.order)
    try:
        keys, count = question.group_keys, question.count
        times = question.grid.times
        source = open_source(asked.path, asked.columns, *its, opened, preparation, keys, count, times)
        check_axes(source, question.grid)
    except InputError as error:
        raise InputError(*(in_question(name, str(sentence)) for sentence in error.args)) from None
    return source


def steps_of_questions(prepared: PreparedQuestions) -> list[Step]:
    """Return the steps of a run that count what they have done, in order."""
    row_groups, bounding = next(iter(prepared.sources.values())).row_groups, prepared.bounding
    passes = passes_of(prepared.strands)
    if bounding is None:
        return [Step(name, row_groups, "row groups") for name in passes]
    parts = [Step(name, len(bounding.places), "parts", weight=0.2) for name in passes]
    return [Step(GATHERED, row_groups, "row groups"), *parts]


@contextmanager
def announced_questions(prepared: PreparedQuestions, events: Events) -> Iterator[list[Strand]]:
    """Yield the strands of a run, whose rounds report their releases to `events`; see `announced`."""
    with ExitStack() as stack:
        told = []
        for name, strands in zip(prepared.job.jobs, prepared.questions, strict=True):
            heard = announced(strands[0].rounds, events.of(question=name), len(strands))
            rounds = tuple(stack.enter_context(heard))
            told += [replace(strand, rounds=rounds) for strand in strands]
        yield told


def build_joint_pipeline(
    prepared: PreparedQuestions, delivery: Delivery, strands: Sequence[Strand]
) -> beam.Pipeline:
    """Return the pipeline of a run: read, all rounds of all questions, write."""
    pipeline = open_pipeline(prepared.options)
    descriptors = pipeline | "Read" >> ReadBlocks(next(iter(prepared.sources.values())))
    answer_questions(descriptors, prepared, delivery, strands)
    return pipeline


def answer_questions(
    elements: beam.PCollection,
    prepared: PreparedQuestions,
    delivery: Any,
    strands: Sequence[Strand],
    names: Any = b"",
) -> beam.PCollection:
    """Run all rounds of all questions, and write the release; see `pipelines.run.run.answer_rows`."""
    elements, records = read_records(prepared, elements)
    draft: Any = draft_joint_release(prepared.job, prepared.plan)
    shards = shards_of(max(prepared.apart))
    questions = [question for question, _ in records.owners]
    last = elements | "Rounds" >> RunStrands(strands, SecureNoise(), records, shards, names, questions)
    if any(prepared.apart):
        last = last | "Questions" >> _GatherGroups(records.owners, prepared.apart)
    answers = last | "WriteAnswers" >> beam.Map(write_one_answer, draft, delivery)
    return (
        answers | "Together" >> beam.combiners.ToList() | "Write" >> beam.Map(write_answers, draft, delivery)
    )


def read_records(
    prepared: PreparedQuestions, elements: beam.PCollection
) -> tuple[beam.PCollection, ReaderOfGroups]:
    """Return what every pass reads of descriptors, and how it becomes the records of the strands."""
    job, sources = prepared.job, prepared.sources
    if prepared.bounding is None:
        readers = (
            replace(Reader.of(sources[name], its.grid, its.checks > 0), apart=its.apart)
            for name, its in job.jobs.items()
        )
        rounds = [strands[0].rounds for strands in prepared.questions]
        grids = [its.grid for its in job.jobs.values()]
        rows = read_once(ReaderOfQuestions(tuple(readers)), rounds, grids)
        return elements, ReaderOfGroups(rows, prepared.splits)
    bounded = elements | "Units" >> BoundTogether(prepared.bounding)
    return bounded, ReaderOfGroups(prepared.bounding.readers, prepared.splits)


@dataclasses.dataclass
class _GatherGroups(beam.PTransform):
    """Gather the last states of all groups of a question.

    Args:
        owners: the question of each strand, and the number of its group there.
        groups: of each question the number of its groups; 0 where it is one strand.
    """

    owners: Sequence[tuple[int, int]]
    groups: Sequence[int]

    def expand(self, last: beam.PCollection) -> beam.PCollection:
        """Take the last states of strands; return of each question its number and what it ended with.

        That is a state, or the pairs of the number of a group and its state.
        """
        return (
            last
            | "Owner" >> beam.Map(_owned, self.owners)
            | "Gather" >> beam.GroupByKey()
            | "Ended" >> beam.Map(_ended, self.groups)
        )


@no_annotations
def _owned(ended: tuple[int, Any], owners: Sequence[tuple[int, int]]) -> tuple[int, tuple[int, Any]]:
    strand, state = ended
    question, group = owners[strand]
    return question, (group, state)


@no_annotations
def _ended(gathered: tuple[int, Iterable[tuple[int, Any]]], groups: Sequence[int]) -> tuple[int, Any]:
    question, states = gathered
    found = sorted(states, key=lambda pair: pair[0])
    return question, found if groups[question] else found[0][1]
