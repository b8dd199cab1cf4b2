"""The supported Beam runners and their options."""

import io
import os
import re
import shutil
import weakref
from collections.abc import Sequence
from types import MethodType
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    ProfilingOptions,
    StandardOptions,
    TestOptions,
    TypeOptions,
)
from apache_beam.options.pipeline_options_context import scoped_pipeline_options
from apache_beam.runners.pipeline_utils import group_by_key_input_visitor
from apache_beam.transforms import core, userstate

from pipelines.console.quiet import quiet, stderr_in
from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.run.known_options import check_known
from pipelines.run.reach_runner import check_credentials, check_workers, reach_runner
from pipelines.run.temporary import check_temporary
from transforms.embedded_runner import EmbeddedRunner

EMBEDDED = "FnApiRunner"
RUNNERS = (EMBEDDED, "FlinkRunner", "DataflowRunner", "PrismRunner")

_MOST_THREADS = 128
"""Most threads of the embedded runner: with a few hundred, its workers do not all start in time."""

_DATAFLOW = (
    "--sdk_location=container",  # the image contains Beam in this version
    "--machine_type=n2-standard-4",
    "--autoscaling_algorithm=THROUGHPUT_BASED",
    "--max_num_workers=16",
)


class CachedOptions(PipelineOptions):
    """Options that keep their views.

    Beam asks for a view several times for each step, and makes a parser of arguments for each. That took a
    fifth of the time of a small round.
    """

    def view_as(self, cls: type[Any]) -> Any:
        """See `PipelineOptions`."""
        views = self.__dict__.setdefault("_views", {})  # Beam's attributes are options
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def _remember_signatures() -> None:
    """Make Beam inspect each method of a kind of step once in a process.

    It looks at some thirty methods of every step, several times each, for parameters that ask for state or
    timers. That took a third of the time of a small run.
    """
    inspect, known = core.get_function_args_defaults, dict[Any, tuple[list[str], list[Any]]]()

    def remembered(f: Any) -> tuple[list[str], list[Any]]:
        method = getattr(f, "__func__", None)
        if method is None or not _is_of_beam(method):  # or a function of one step
            return inspect(f)
        if method not in known:
            known[method] = inspect(f)
        names, defaults = known[method]
        return list(names), list(defaults)

    core.get_function_args_defaults = remembered


def _remember_states() -> None:
    """Make Beam look for state and timers once for each kind of step in a process.

    It looks at all methods of a step six times while the step is built and started: those of its kind, and
    methods of other objects that it was given, which are looked at each time.
    """
    find = userstate.get_dofn_specs
    known = weakref.WeakKeyDictionary[type[beam.DoFn], tuple[set[Any], set[Any]]]()

    def remembered(dofn: beam.DoFn) -> tuple[set[Any], set[Any]]:
        kind = type(dofn)
        if not _is_of_beam(kind) or any(isinstance(value, MethodType) for value in vars(dofn).values()):
            return find(dofn)
        if kind not in known:
            known[kind] = find(dofn)
        states, timers = known[kind]
        return set(states), set(timers)

    userstate.get_dofn_specs = remembered


def _is_of_beam(what: Any) -> bool:
    """Return whether a class or a method is Beam's own, which nobody changes while a process runs."""
    return str(what.__module__).startswith("apache_beam.")


_remember_signatures()
_remember_states()


def make_options(runner: str, job: Job | QuestionsJob, extra: Sequence[str]) -> PipelineOptions:
    """Return the options of Beam for `job`. Given options override the defaults.

    Args:
        runner: name of a Beam runner from `RUNNERS`; DirectRunner stands for the embedded one.
        job: its task and run id become the name of the Beam job.
        extra: further options of Beam.

    Raises:
        JobError: the runner is not supported, or an option is unknown.
    """
    runner = _check_runner(runner)
    complaint = io.StringIO()
    try:
        with stderr_in(complaint), quiet():
            if extra:
                check_known(runner, extra)
                if PipelineOptions(list(extra)).view_as(StandardOptions).runner is not None:
                    raise JobError("--runner is given after --: give it before --.")
            options = CachedOptions([f"--runner={runner}", *_defaults(runner, job), *extra])
            if extra:
                options.get_all_options()
    except SystemExit:
        problem = complaint.getvalue().strip().rpartition("error: ")[2]
        raise JobError(f"The Beam options after -- are wrong: {problem}.") from None
    return options


def open_pipeline(options: PipelineOptions) -> beam.Pipeline:
    """Return an empty pipeline for the runner that `options` name.

    Beam makes a folder for steps of other languages with it, and removes it where the pipeline runs. Shoal
    has no such steps, and a command that ends before would leave the folder.
    """
    embedded = options.view_as(StandardOptions).runner == EMBEDDED
    pipeline = beam.Pipeline(runner=EmbeddedRunner() if embedded else None, options=options)
    shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)
    return pipeline


def in_this_process(options: PipelineOptions) -> bool:
    """Return whether all steps run in this process."""
    mode = options.view_as(DirectOptions).direct_running_mode
    return options.view_as(StandardOptions).runner == EMBEDDED and mode != "multi_processing"


def check_options(options: PipelineOptions, extra: Sequence[str]) -> None:
    """Check that the runner has its options, that the addresses in them respond, and that rows can wait.

    The embedded runner has all that it needs, so its own options are checked only where some were given.

    Args:
        options: see `make_options`.
        extra: the options among them that were given.

    Raises:
        JobError: an option is missing or wrong, or TMPDIR is.
        RunError: a cluster or a job server does not respond, or there are no credentials for Dataflow.
    """
    check_temporary()
    if not extra and options.view_as(StandardOptions).runner == EMBEDDED:
        return
    if options.view_as(TestOptions).dry_run:
        raise JobError("--dry_run is given after --: give --dry-run before --.")
    if options.view_as(StandardOptions).runner == EMBEDDED:
        _check_embedded(options)
    with quiet():
        check_credentials(options)  # before Beam looks for them
    try:
        with quiet():
            _build_small(options)
    except Exception as error:  # Beam's, of any type; no row was read, so its text may be shown
        problem = (str(error) or type(error).__name__).strip().splitlines()[-1].strip(" .")
        raise JobError(f"The Beam options after -- are wrong: {problem}.") from None
    check_workers(options)
    with quiet():
        reach_runner(options)


def _check_embedded(options: PipelineOptions) -> None:
    threads = options.view_as(DirectOptions).direct_num_workers
    if not 0 <= threads <= _MOST_THREADS:
        raise JobError(
            f"--direct_num_workers is {threads}: it must be from 1 to {_MOST_THREADS}, or 0 for one thread "
            "per core."
        )
    profiling = options.view_as(ProfilingOptions)
    if profiling.profile_cpu or profiling.profile_memory:
        raise JobError(
            f"--profile_cpu and --profile_memory do not work with {EMBEDDED}: leave them out, or run the "
            "whole command in a profiler."
        )


def _build_small(options: PipelineOptions) -> None:
    """Build a pipeline with one GroupByKey, and don't run it.

    Beam reads some options only when it expands this step, and others when it chooses the coder of the keys.
    Both happen after a run is charged.
    """
    with scoped_pipeline_options(options):
        pipeline = open_pipeline(options)
        try:
            pairs = pipeline | beam.Impulse() | beam.Map(lambda _: (0, 0)).with_output_types(tuple[Any, Any])
            _ = pairs | beam.GroupByKey()
            pipeline.visit(
                group_by_key_input_visitor(
                    not options.view_as(TypeOptions).allow_non_deterministic_key_coders
                )
            )
            pipeline.to_runner_api()
        finally:
            shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)  # Beam removes it after a run alone


def _check_runner(name: str) -> str:
    """Return the name of the runner. Unsupported runners might draw noise again for each consumer."""
    name = EMBEDDED if name == "DirectRunner" else name
    if name not in RUNNERS:
        raise JobError(
            f"--runner is {name}: it must be {', '.join(RUNNERS[:-1])} or {RUNNERS[-1]}, which are known to "
            "draw noise once; others may draw it several times, and so exceed the budget."
        )
    return name


def _defaults(runner: str, job: Job | QuestionsJob) -> list[str]:
    task, run = (re.sub(r"[^a-z0-9-]", "-", str(part).lower()) for part in (job.task, job.run_id))
    named = f"--job_name=shoal-{task}-{run}"[:75].rstrip("-")
    if runner == EMBEDDED:
        threads = f"--direct_num_workers={min(os.cpu_count() or 1, _MOST_THREADS)}"
        return [named, "--direct_running_mode=multi_threading", threads]
    if runner == "DataflowRunner":
        labels = [
            "--labels=application=shoal",
            f"--labels=task={task}",
            f"--labels=run={run[:63].rstrip('-')}",
        ]
        return [named, *labels, *_DATAFLOW]
    return [named]
