"""Run a job: one Beam pipeline, from the checked job to a release that is written once."""

import io
import logging
import os
import re
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineState
from apache_beam.typehints.decorators import no_annotations

from core.domain import Grid
from core.noise import SecureNoise, secret_salt
from core.plan import Finding, Plan
from pipelines.job import Job
from pipelines.plan import make_plan
from pipelines.progress import shown
from pipelines.refusal import JobError
from pipelines.release import RELEASE, REPORT, complete_release, draft_release, find_release
from pipelines.report import render
from pipelines.storage import Folder, open_folder
from transforms.open_source import InputError, Source, open_source
from transforms.read_blocks import ReadBlocks, Reader
from transforms.run_rounds import RunRounds

RUNNERS = ("FnApiRunner", "FlinkRunner", "DataflowRunner", "PrismRunner")
_EMBEDDED = "FnApiRunner"


class RunError(RuntimeError):
    """The run failed for a reason that is not the job's; the text holds no figure that depends on rows."""


def run_job(job: Job, runner: str = _EMBEDDED, beam_options: Sequence[str] = ()) -> dict[str, Any]:
    """Run `job`, or find that it has already been run.

    The output folder is looked at before anything else: where it holds this job's release, that one is
    returned, and no data is read. What a job spends is checked before data is read.

    Args:
        job: the checked job.
        runner: name of a Beam runner from `RUNNERS`; DirectRunner stands for the embedded one.
        beam_options: further options of Beam.

    Returns:
        The stored release.

    Raises:
        JobError: the job, the runner or the output folder is wrong.
        InputError: the input is not what the job says.
        RunError: anything else.
    """
    runner = _check_runner(runner)
    folder = open_folder(job.output)
    release = find_release(folder, job)
    if release is None:
        options = _options(runner, beam_options)
        source = open_source(job.input.path, job.input.columns)
        plan = make_plan(job, secret_salt())
        folder.prepare()
        with shown(plan.rounds) as rounds, quiet(), redirect_stderr(io.StringIO()):
            _run_pipeline(job, plan, rounds, source, folder, options)
        release = find_release(folder, job)
        if release is None:
            raise RunError(f"The pipeline ended, but {folder.locate(RELEASE)} cannot be seen from here.")
    if folder.read(REPORT) is None:
        folder.replace(REPORT, render(release).encode())
    return release


def _check_runner(name: str) -> str:
    """Return the runner to use; others might draw noise once per consumer, and so publish it twice."""
    name = _EMBEDDED if name == "DirectRunner" else name
    if name not in RUNNERS:
        raise JobError(
            f"--runner is {name}: it must be {', '.join(RUNNERS[:-1])} or {RUNNERS[-1]}, which are known to "
            "keep one draw of noise for all who read it; others may draw again, and so overspend."
        )
    return name


def _options(runner: str, extra: Sequence[str]) -> PipelineOptions:
    """Return Beam's options: ours first, so that the given ones win."""
    if extra and not extra[0].startswith("-"):
        raise JobError(
            f"{extra[0]} is not a Beam option: after -- give options such as --direct_num_workers=1."
        )
    embedded = ["--direct_running_mode=multi_threading", f"--direct_num_workers={os.cpu_count() or 1}"]
    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint), quiet():
            if PipelineOptions(list(extra)).view_as(StandardOptions).runner is not None:
                raise JobError("--runner stands after --: give it before, where it is checked.")
            options = PipelineOptions(
                [f"--runner={runner}", *(embedded if runner == _EMBEDDED else []), *extra]
            )
            options.get_all_options()
    except SystemExit:
        said = complaint.getvalue().strip().rpartition("error: ")[2]
        raise JobError(f"The Beam options after -- are wrong: {said}.") from None
    return options


def _run_pipeline(
    job: Job, plan: Plan, rounds: Sequence[Any], source: Source, folder: Folder, options: PipelineOptions
) -> None:
    grid = job.domain.grid()
    draft = draft_release(job, plan)
    try:
        pipeline = beam.Pipeline(options=options)
        state = (
            pipeline
            | "Read" >> ReadBlocks(source)
            | "Rounds" >> RunRounds(rounds, plan.start, SecureNoise(), Reader.of(source, grid))
        )
        _ = state | "Write" >> beam.Map(_write, draft, grid, folder)
        ended = pipeline.run().wait_until_finish()
    except InputError:
        raise
    except Exception as error:
        raise _translated(error) from None
    if ended not in (None, PipelineState.DONE):
        raise RunError(f"The pipeline ended as {ended}; nothing was released by it.")


@no_annotations  # Beam would check protocols as types
def _write(state: Finding, draft: Mapping[str, Any], grid: Grid, folder: Folder) -> None:
    """Write the release where there is none; a step that is repeated leaves the first one."""
    folder.create(RELEASE, complete_release(draft, state, grid))


def _translated(error: Exception) -> Exception:
    """Return what may be said of an error in the pipeline: its kind and place, never its text.

    The text may quote rows; that of an InputError cannot.
    """
    said = re.search(r"InputError: (.+?)(?: \[while running|\n|$)", str(error))
    if said:
        return InputError(said[1])
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.line]
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return RunError(f"The pipeline failed with {type(error).__name__}{place}; nothing was released.")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Beam's logs and warnings to itself: they may quote what it works on."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
