"""Shoal inside of a Beam pipeline: `release = batches | shoal.beam.Answer(job, schema)`."""

import dataclasses
import os
import weakref
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.trigger import AccumulationMode, DefaultTrigger
from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions
from apache_beam.typehints.decorators import no_annotations
from apache_beam.typehints.typehints import is_consistent_with

from core.secure_noise import secret_salt
from pipelines.errors import JobError
from pipelines.job.job import Job as OneQuestion
from pipelines.job.job import check_raw
from pipelines.job.questions import QuestionsJob
from pipelines.ledger.ledger import LedgerRefusal, check_charges, now
from pipelines.release import identify_output
from pipelines.run.delivery import Delivery, check_folder, delivery_of
from pipelines.run.joint_run import PreparedQuestions, answer_questions
from pipelines.run.run import RunError, answer_rows, attempt_of, charge_delivery, prepare_run
from pipelines.run.runners import RUNNERS
from shoal.calls import Job, read_job
from shoal.shown import Release
from transforms.embedded_runner import flush_by_size
from transforms.hold_batches import HoldBatches, open_schema
from transforms.plain_errors import plain_errors
from transforms.spread import KEYED, Keyed, Spread

__all__ = ["Answer"]

_PATH = "/batches"
"""What stands for `input.path` in the job and its hash."""

_DIRECT = "SwitchingDirectRunner"
"""Beam's name of DirectRunner, which is the embedded runner or Prism."""


@dataclasses.dataclass
class Answer(beam.PTransform):
    """Answer a job about the rows of a bounded PCollection of `pyarrow.RecordBatch`, by one release.

    The rounds are those of `shoal.run`: each is a pass over the batches, which wait behind a Reshuffle, and
    the state that a round releases is a side input of the next one. The element is a `shoal.Release`.

    What the caller promises:

    1. The batches are the whole data of the run, each row once, and have the same rows whenever the pipeline
       is run again, in batches of any sizes.
    2. Each row is of one person. Nothing before this step mixed the rows of different people: no join,
       average, rank, normalization or deduplication over rows, and no sample or limit that depends on
       them. The guarantee is for the rows that arrive here.
    3. Without `input.unit`, each row is a person. With it, all rows of one value are.
    4. The schema, the job, and how many batches there are say nothing that must be hidden. Engines show
       numbers of elements: make batches of a fixed number of pieces where the number of rows is secret.

    Why a repeated step makes no second draw public:

    1. The job names `output` and `run_id`. The release is one create-only write there, and the element is
       what was stored. So a repeated step, and a second execution of the pipeline, return the first release.
       Where that is not there any more, a second execution without a ledger is a run of its own, and spends
       again: its noise and its samples are others. For the salt of samples is drawn when the pipeline is
       built, but the names of records, which are hashed under it, once in each execution without a ledger.
    2. The ledger is charged by a step of the pipeline, so a pipeline that is only built costs nothing. A
       charge is a compare-and-swap under the run id: repeated, it finds its own charge. A Reshuffle follows
       it, and batches are held only once it is there, so no row is summarized before.
    3. Noise is drawn in a step of its own, followed by a Reshuffle; marks find out two draws of one state.
    4. Identities of rows, by which they are sampled, are kept by a Reshuffle, too: see
       `transforms.hold_batches`. So all rounds sample the same rows.

    Between steps there are as many elements as the caller's batches and the job make; none depends on values.
    Rows with a null, NaN or infinity in a used column are left out, as they are from files.

    Args:
        job: as in `shoal.run`, without `input.path`, and with `output` and `run_id`. Workers must reach the
            output, the ledger and a joined table. `params.parts` above 1 is refused.
        schema: of every batch.
    """

    job: Job
    schema: pa.Schema

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        """Take `pyarrow.RecordBatch`es, perhaps none; return one element, a `shoal.Release`.

        The output folder is prepared, and the ledger is asked but not charged.

        Raises:
            ShoalError: the job, the schema, the runner or the PCollection is wrong, or the ledger would
                refuse.
        """
        _check_batches(batches)
        flush_by_size()  # Beam's own embedded runner may lose elements otherwise
        if not isinstance(self.schema, pa.Schema):
            raise JobError(f"schema is a {type(self.schema).__name__}: give a pyarrow.Schema.")
        job = _job_of(self.job)
        prepared = prepare_run(job, opened=open_schema(self.schema))
        several = isinstance(prepared, PreparedQuestions)
        if not several and attempt_of(prepared) is not None:
            raise JobError("params.parts is above 1: a release in parts needs files; leave it out.")
        made = delivery_of(job)
        made.find()  # another job's release would be in the way, once the run is charged
        _check_beside(batches.pipeline, made, job, prepared.plan)
        made = dataclasses.replace(made, output_id=identify_output(made.folder))
        charged = (
            batches.pipeline
            | "Start" >> beam.Create([made])
            | "Charge" >> beam.Map(_charged, job, prepared.plan).with_output_types(KEYED)
            | "Once" >> Spread()
        )
        delivery = beam.pvalue.AsSingleton(charged | "Charged" >> beam.Map(_charged_delivery))
        names = beam.pvalue.AsSingleton(charged | "Named" >> beam.Map(_names))
        elements = batches | "Hold" >> HoldBatches(self.schema, names)
        of_units = b"" if prepared.bounding is None else names  # rows got other names when they were held
        if several:
            written = answer_questions(elements, prepared, delivery, prepared.strands, of_units)
        else:
            written = answer_rows(elements, prepared, delivery, prepared.rounds, of_units)
        return written | "Stored" >> beam.Map(_stored, delivery)


@dataclasses.dataclass
class _Answered:
    """What the Answers of a pipeline that is being built have asked for.

    Args:
        places: the output of each release, and its ledger with its run id.
        runs: by ledger, the jobs and plans that it is to be charged for.
    """

    places: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    runs: dict[str, list[tuple[Any, Any]]] = dataclasses.field(default_factory=dict)


_ANSWERED = weakref.WeakKeyDictionary[beam.Pipeline, _Answered]()


def _check_beside(pipeline: beam.Pipeline, delivery: Delivery, job: Any, plan: Any) -> None:
    """Check that a job goes together with those of other Answers of the pipeline.

    One output holds one release, and one run id of a ledger stands for one. The answer of a second Answer
    would be the release of the first, or of some questions of both, even where both have the same job.

    Raises:
        JobError: another one has this output, or this run id in this ledger.
        LedgerRefusal: the ledger would refuse the job after the charges of the others.
    """
    answered = _ANSWERED.setdefault(pipeline, _Answered())
    taken = {"output": (os.path.realpath(delivery.folder.locate("")), "")}
    if delivery.ledger is not None:
        taken["run_id"] = (os.path.realpath(delivery.ledger), delivery.run_id)
    for name, (where, run_id) in taken.items():
        if (where, run_id) in answered.places:
            raise JobError(
                f"{name} is {run_id or where}, and so is that of another Answer in this pipeline: give each "
                "a run_id or an output of its own, or ask several questions in one job."
            )
    if delivery.ledger is not None:
        runs = answered.runs.setdefault(taken["run_id"][0], [])
        try:
            check_charges(delivery.ledger, [*runs, (job, plan)], now)
        except LedgerRefusal as error:
            raise LedgerRefusal(f"{error} Charges of other Answers of this pipeline count.") from None
        runs.append((job, plan))
    answered.places |= {*taken.values()}


def _check_batches(batches: beam.PCollection) -> None:
    """Check the PCollection and the runner of its pipeline.

    Raises:
        JobError: there is more than one window or no end, rows may arrive several times, its elements cannot
            be batches, or the runner might draw noise for each consumer.
    """
    if not isinstance(batches, beam.PCollection):
        said = "the pipeline itself: put the step before it that gives"
        if isinstance(batches, tuple | list | dict):
            said = "several PCollections: put beam.Flatten() before it, which makes of them"
        raise JobError(f"Answer is applied to {said} a PCollection of pyarrow.RecordBatch.")
    kinds = {kind.__name__ for kind in type(batches.pipeline.runner).__mro__}
    if not kinds & {*RUNNERS, _DIRECT}:
        raise JobError(
            f"The runner is {type(batches.pipeline.runner).__name__}: it must be DirectRunner, "
            f"{', '.join(RUNNERS[:-1])} or {RUNNERS[-1]}."
        )
    if not batches.is_bounded:
        raise JobError("batches is an unbounded PCollection: give a bounded one, which is the whole data.")
    if not isinstance(batches.windowing.windowfn, GlobalWindows):
        raise JobError(
            "batches has windows: give the PCollection from before its WindowInto; after fixed windows "
            "beam.WindowInto(GlobalWindows()) makes one of them, too."
        )
    trigger = batches.windowing.triggerfn
    if not isinstance(trigger, DefaultTrigger):
        raise JobError(
            f"batches has the trigger {type(trigger).__name__}, by which a release would be made of some of "
            "the rows: leave it out."
        )
    _check_once(batches)
    kind = batches.element_type
    if kind is not None and not is_consistent_with(pa.RecordBatch, kind):
        raise JobError(
            f"batches has elements of type {getattr(kind, '__name__', kind)}: give pyarrow.RecordBatch, such "
            "as of pyarrow.RecordBatch.from_pylist(rows, schema=schema)."
        )


def _check_once(batches: beam.PCollection) -> None:
    """Check that no step before, by its windows or triggers, lets an element arrive several times.

    An element is there once for each sliding window that it is in, also where all are put into one window
    later. A trigger that accumulates fires again with the elements that it has fired with. Windows of other
    kinds are refused, as they may do either. What a step makes of its elements is not known here.

    Raises:
        JobError: one does.
    """
    waiting, seen = [batches], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        windows, mode = each.windowing.windowfn, each.windowing.accumulation_mode
        repeats = None
        if type(windows) not in (GlobalWindows, FixedWindows, Sessions):
            repeats = type(windows).__name__
        elif mode == AccumulationMode.ACCUMULATING:
            repeats = "AccumulationMode.ACCUMULATING"
        if repeats is not None:
            raise JobError(
                f"A step before batches has {repeats}, by which a row may arrive several times: leave it out."
            )
        if each.producer is not None:
            inputs = [held for held in each.producer.inputs if isinstance(held, beam.PCollection)]
            if len(inputs) > len({*map(id, inputs)}):
                raise JobError("A step before batches takes one PCollection twice: a row must arrive once.")
            waiting += [*inputs, *(side.pvalue for side in each.producer.side_inputs)]


def _job_of(job: Job) -> OneQuestion | QuestionsJob:
    """Return the checked job.

    Raises:
        JobError: it is wrong, has a path, or does not say where its one release goes.
    """
    raw = read_job(job)
    rows = raw.get("input", {})
    if isinstance(rows, dict):
        if "path" in rows:
            raise JobError("input.path is given beside batches: leave it out.")
        raw["input"] = {**rows, "path": _PATH}
    for name in ("output", "run_id"):
        if name not in raw:
            raise JobError(
                f"{name} is missing: a job in a pipeline needs an output that all workers reach, and a "
                "run_id, so that a step that is repeated finds the release of its run."
            )
    checked: OneQuestion | QuestionsJob = check_raw(raw)
    return checked


@no_annotations
def _charged(delivery: Delivery, job: OneQuestion | QuestionsJob, plan: Any) -> Keyed:
    """Charge the run to its ledger, once however often this is repeated; also draw names for its records.

    With a ledger no second release is drawn, so there the salt serves one run, and no other names are needed.
    """
    with plain_errors("Charge"):
        check_folder(delivery)
        delivery.find()  # or it is of another job, which nothing should be charged for
        names = secret_salt() if delivery.ledger is None else b""
        return 0, (charge_delivery(job, plan, delivery, now)[0], names)


@no_annotations
def _charged_delivery(charged: Keyed) -> Delivery:
    return charged[1][0]


@no_annotations
def _names(charged: Keyed) -> bytes:
    return charged[1][1]


@no_annotations
def _stored(_: None, delivery: Delivery) -> Release:
    """Return the release that is stored, which is the first one of its run."""
    with plain_errors("Stored"):
        values = delivery.finish()
        if values is None:
            raise RunError(
                f"{delivery.folder.locate('')} on this worker has no release: give an output that all share."
            )
        return Release.stored(delivery.folder, values)
