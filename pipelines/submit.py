"""Run a Beam pipeline, quietly: what goes wrong in it is told without anything that depends on rows."""

import io
import os
import re
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr

import apache_beam as beam
from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.runners.runner import PipelineState

from pipelines.folder import StorageError
from pipelines.refusal import JobError, RunError
from pipelines.runners import quiet
from transforms.open_source import InputError

_SAID = re.compile(r"(InputError|JobError|OutputError|StorageError): (.+?)(?: \[while running|\n|$)")
_SAYS = {
    "InputError": InputError,
    "JobError": JobError,
    "OutputError": RunError,
    "StorageError": StorageError,
}
"""Errors whose text holds nothing that depends on rows, so that it may be said."""

_SUBMITTED = (PipelineState.UNKNOWN, PipelineState.STARTING, PipelineState.PENDING, PipelineState.RUNNING)


def submit(build: Callable[[], beam.Pipeline], left: str) -> bool:
    """Build a pipeline and run it to its end; return False where it was only submitted.

    Args:
        build: makes the pipeline, with its options.
        left: what a pipeline that fails leaves, for the error: "nothing was released".

    Raises:
        InputError, JobError, StorageError: what a step said of itself.
        RunError: anything else, by kind and place.
    """
    try:
        with quiet(), redirect_stderr(io.StringIO()):
            pipeline = build()
            running = pipeline.run()
            if pipeline.options.view_as(StandardOptions).no_wait_until_finish:
                return False
            ended = running.wait_until_finish()
    except InputError:
        raise
    except Exception as error:
        raise _translated(error, left) from None
    if ended in _SUBMITTED:
        return False
    if ended not in (None, PipelineState.DONE):
        raise RunError(f"The pipeline ended as {ended}; {left}.")
    return True


def _translated(error: Exception, left: str) -> Exception:
    """Return what may be said of an error in the pipeline: its kind and place, never its text.

    The text may quote rows; those of `_SAYS` cannot.
    """
    said = _SAID.search(str(error))
    if said:
        return _SAYS[said[1]](said[2])
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.line]
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return RunError(f"The pipeline failed with {type(error).__name__}{place}; {left}.")
