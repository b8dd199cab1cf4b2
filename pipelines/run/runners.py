"""Which Beam runners may run a job, and with which options."""

import io
import logging
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.run.known_options import check_known
from pipelines.run.reach_runner import check_workers, reach_runner
from transforms.embedded_runner import EmbeddedRunner

EMBEDDED = "FnApiRunner"
RUNNERS = (EMBEDDED, "FlinkRunner", "DataflowRunner", "PrismRunner")

_DATAFLOW = (
    "--sdk_location=container",  # the image brings this very version
    "--machine_type=n2-standard-4",
    "--autoscaling_algorithm=THROUGHPUT_BASED",
    "--max_num_workers=16",
)


def make_options(runner: str, job: Job, extra: Sequence[str]) -> PipelineOptions:
    """Return Beam's options for `job`: ours first, so that the given ones win.

    Args:
        runner: name of a Beam runner from `RUNNERS`; DirectRunner stands for the embedded one.
        job: its task and run id become the Beam job's name.
        extra: further options of Beam.

    Raises:
        JobError: a runner that isn't served, or options that neither Beam nor the runner knows.
    """
    runner = _check_runner(runner)
    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint), quiet():
            check_known(runner, extra)
            if PipelineOptions(list(extra)).view_as(StandardOptions).runner is not None:
                raise JobError("--runner stands after --: give it before, where it is checked.")
            options = PipelineOptions([f"--runner={runner}", *_defaults(runner, job), *extra])
            options.get_all_options()
    except SystemExit:
        said = complaint.getvalue().strip().rpartition("error: ")[2]
        raise JobError(f"The Beam options after -- are wrong: {said}.") from None
    return options


def open_pipeline(options: PipelineOptions) -> beam.Pipeline:
    """Return an empty pipeline for the runner that `options` name."""
    embedded = options.view_as(StandardOptions).runner == EMBEDDED
    return beam.Pipeline(runner=EmbeddedRunner() if embedded else None, options=options)


def check_options(options: PipelineOptions) -> None:
    """Check that the runner has the options that it needs, and that what they name is there.

    Raises:
        JobError: an option is missing or wrong.
        RunError: a cluster or a job server does not answer.
    """
    threads = options.view_as(DirectOptions).direct_num_workers
    if threads < 0:
        raise JobError(
            f"--direct_num_workers is {threads}: it must be at least 1, or 0 for one for each core."
        )
    try:
        with quiet():
            open_pipeline(options)
    except ValueError as error:
        said = str(error).strip().splitlines()[-1].strip(" .")  # a line for each option
        raise JobError(f"The Beam options after -- are wrong: {said}.") from None
    check_workers(options)
    with quiet():
        reach_runner(options)


def _check_runner(name: str) -> str:
    """Return the runner to use; others might draw noise once per consumer, and so publish it twice."""
    name = EMBEDDED if name == "DirectRunner" else name
    if name not in RUNNERS:
        raise JobError(
            f"--runner is {name}: it must be {', '.join(RUNNERS[:-1])} or {RUNNERS[-1]}, which are known to "
            "keep one draw of noise for all who read it; others may draw again, and so overspend."
        )
    return name


def _defaults(runner: str, job: Job) -> list[str]:
    task, run = (re.sub(r"[^a-z0-9-]", "-", str(part).lower()) for part in (job.task, job.run_id))
    named = f"--job_name=shoal-{task}-{run}"[:75].rstrip("-")
    if runner == EMBEDDED:
        threads = f"--direct_num_workers={os.cpu_count() or 1}"
        return [named, "--direct_running_mode=multi_threading", threads]
    if runner == "DataflowRunner":
        labels = [
            "--labels=application=shoal",
            f"--labels=task={task}",
            f"--labels=run={run[:63].rstrip('-')}",
        ]
        return [named, *labels, *_DATAFLOW]
    return [named]


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
