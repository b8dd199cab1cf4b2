"""Run a Beam pipeline. Errors are reported without anything that depends on rows."""

import errno
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import apache_beam as beam
import apache_beam.pipeline
from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.runners.runner import PipelineResult, PipelineState
from apache_beam.utils import interactive_utils

from core.errors import ShoalError, error_in
from pipelines.console.quiet import quiet, shared, without_stderr
from pipelines.errors import JobError, RunError
from transforms.open_source import InputError
from transforms.spill import made_spills

_OF_THE_SYSTEM = re.compile(r"^[\w.]*Error: \[Errno (\d+)\]", re.MULTILINE)
_MEMORY = re.compile(r"^[\w.]*MemoryError\b", re.MULTILINE)
_LOST = re.compile(
    r"Heartbeat of TaskManager|TaskManager with id \S+ is no longer reachable|closed by remote task manager"
    r"|Process died with exit code|Worker subprocess exited|lost contact with the service"
)
"""How Flink, Beam's own workers and Dataflow report a lost worker."""

_SUBMITTED = (PipelineState.UNKNOWN, PipelineState.STARTING, PipelineState.PENDING, PipelineState.RUNNING)


@contextmanager
def _without_ipython() -> Iterator[None]:
    with ExitStack() as patched:
        for module in (interactive_utils, apache_beam.pipeline):
            patched.enter_context(patch.object(module, "is_in_ipython", lambda: False))
        yield


_as_outside_of_notebooks = shared(_without_ipython)
"""Keep Beam from seeing IPython.

In a notebook Beam imports its data frames, which fails beside pandas 3, puts the number of the cell into the
names of steps, and leaves a temporary folder behind.
"""


def submit(
    build: Callable[[], beam.Pipeline],
    consequence: str,
    started: Callable[[PipelineResult], None] = lambda running: None,
) -> bool:
    """Build and run a pipeline; return whether it has ended, and was not only submitted.

    Args:
        build: makes the pipeline, with its options.
        consequence: of a failure, for the error, such as "nothing was released".
        started: called with what the runner returns, which may still be running.

    Raises:
        InputError: `build` found that the input is invalid.
        JobError: a step found that the job is invalid.
        RunError: anything else, including input that was valid before and that a worker found invalid: a
            later run of the same job may succeed.
    """
    pipeline = None
    try:
        with quiet(), without_stderr(), _as_outside_of_notebooks(), made_spills() as spills:
            pipeline = build()
            running = pipeline.run()
            started(running)
            if pipeline.options.view_as(StandardOptions).no_wait_until_finish:
                return False
            ended = running.wait_until_finish()
            if ended in (None, PipelineState.DONE):
                for spill in spills:
                    spill.empty()
    except Exception as error:
        if pipeline is None and isinstance(error, InputError):
            raise
        raise _translated(error, consequence) from None
    if ended in _SUBMITTED:
        return False
    if ended not in (None, PipelineState.DONE):
        raise RunError(f"The pipeline ended as {ended}; {consequence}.")
    return True


def _translated(error: Exception, consequence: str) -> Exception:
    """Return the error to raise for an error in the pipeline: its cause if known, else its type and line.

    The text of an error may quote rows, so it is never repeated, except for a `ShoalError`.
    """
    known = error.of_worker() if isinstance(error, ShoalError) else error_in(str(error))
    if known is not None:
        code, sentence = known
        return JobError(sentence) if code == JobError.exit_code else RunError(sentence)
    text = f"{error}\n{type(error).__name__}: {error}"
    cause = _cause(text)
    if cause is not None:
        return RunError(f"The pipeline failed: {cause}; {consequence}.")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.line]
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return RunError(f"The pipeline failed with {type(error).__name__}{place}; {consequence}.")


def _cause(text: str) -> str | None:
    """Return a cause that is a fault of the machine, or None."""
    if _MEMORY.search(text):
        return "the worker ran out of memory"
    if _LOST.search(text):
        return "a worker was lost"
    number = _OF_THE_SYSTEM.search(text)
    return os.strerror(int(number[1])) if number and int(number[1]) in errno.errorcode else None
