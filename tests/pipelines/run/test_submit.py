"""What is said of a pipeline that fails: its plain cause, never the text of its error."""

import errno
import logging
import os
import sys
import traceback
from types import SimpleNamespace

import apache_beam as beam
import apache_beam.pipeline
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineState
from apache_beam.utils import interactive_utils

from core.errors import add_mark
from pipelines.errors import JobError
from pipelines.run.submit import RunError, submit
from pipelines.storage.folder import StorageError
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import InputError
from transforms.plain_errors import RoundError, plain_errors
from transforms.spill import Spill

LEFT = "nothing was released"
SECRET = "row 0.777123"


def said(error: Exception) -> str:
    """Return what is said of a pipeline that fails with `error`."""

    def build():
        raise error

    with pytest.raises(RunError) as caught:
        submit(build, LEFT)
    assert SECRET not in "".join(traceback.format_exception(caught.value))  # which a notebook shows
    return str(caught.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EMFILE])
def test_trouble_of_the_system_has_the_systems_word_and_no_path(number):
    error = OSError(number, os.strerror(number), f"/{SECRET}")
    assert said(error) == f"The pipeline failed: {os.strerror(number)}; {LEFT}."
    remote = RuntimeError(f"Traceback\n  File x\nOSError: {error} [while running 'Write']")
    assert said(remote) == f"The pipeline failed: {os.strerror(number)}; {LEFT}."


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Traceback\nMemoryError", "the worker ran out of memory"),
        (f"numpy._core._exceptions._ArrayMemoryError: {SECRET}", "the worker ran out of memory"),
        ("org.apache.flink: Heartbeat of TaskManager with id 10.0.0.1:1 timed out.", "a worker was lost"),
        ("TaskManager with id 10.0.0.1:1 is no longer reachable.", "a worker was lost"),
        ("Connection unexpectedly closed by remote task manager '10.0.0.1'.", "a worker was lost"),
        ("RuntimeError: Worker subprocess exited with return code 1", "a worker was lost"),
        ("java.lang.IllegalStateException: Process died with exit code 137", "a worker was lost"),
        ("Root cause: The worker lost contact with the service.", "a worker was lost"),
    ],
)
def test_lost_machines_are_told(text, cause):
    assert said(RuntimeError(text)) == f"The pipeline failed: {cause}; {LEFT}."


def test_other_errors_are_told_by_kind_and_place():
    assert said(ValueError(SECRET)).startswith("The pipeline failed with ValueError at test_submit.py:")
    made_up = ValueError(f"{SECRET} OSError: [Errno 28] MemoryError")
    assert said(made_up).startswith("The pipeline failed with ValueError at")
    assert said(OSError(SECRET)).startswith("The pipeline failed with OSError at")
    unknown = RuntimeError(f"OSError: [Errno {2**80}] {SECRET}")
    assert said(unknown).startswith("The pipeline failed with RuntimeError at")


def test_the_place_of_an_error_is_the_last_one_in_a_file():
    with pytest.raises(RunError, match=r"^The pipeline failed with ZeroDivisionError at test_submit.py:"):
        submit(lambda: eval("1 / 0"), LEFT)


@pytest.mark.parametrize("module", [interactive_utils, apache_beam.pipeline])
def test_nothing_is_shown_of_a_run_and_no_notebook_is_seen(module, monkeypatch, capsys, caplog):
    """Whatever Beam and its runners write, they may quote rows. Afterwards all is as before."""
    monkeypatch.setattr(module, "is_in_ipython", lambda: True)
    seen = []

    def build():
        logging.getLogger("apache_beam").error(SECRET)
        print(SECRET, file=sys.stderr)
        seen.append(module.is_in_ipython())
        raise ValueError

    with pytest.raises(RunError):
        submit(build, LEFT)
    print("after", file=sys.stderr)
    assert (seen, module.is_in_ipython()) == ([False], True)
    assert (capsys.readouterr(), caplog.text) == (("", "after\n"), "")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError(errno.ENOSPC, SECRET, f"/{SECRET}"), "Round r failed: No space left on device."),
        (MemoryError(SECRET), "Round r failed: the worker ran out of memory."),
        (OSError(SECRET), "Round r failed with OSError at test_submit.py:"),
        (ValueError(SECRET), "Round r failed with ValueError at test_submit.py:"),
    ],
)
def test_a_step_tells_its_cause_and_it_arrives(error, cause):
    with pytest.raises(RoundError) as caught, plain_errors("Round r"):
        raise error
    assert str(caught.value).startswith(cause)
    remote = RuntimeError("".join(traceback.format_exception(caught.value)) + " [while running 'R']")
    assert said(remote).startswith(cause)


def test_a_step_inside_another_marks_an_error_once():
    with pytest.raises(RoundError) as caught, plain_errors("Outer"), plain_errors("Inner"):
        raise ValueError(SECRET)
    assert "".join(traceback.format_exception(caught.value)).count("shoal-error: ") == 1
    assert said(caught.value).startswith("Inner failed with ValueError at")


def test_the_text_of_an_error_has_no_mark():
    """In somebody's own pipeline, nobody takes a mark out of what is shown."""
    with pytest.raises(StorageError) as caught, plain_errors("Write"):
        raise StorageError("x cannot be written.")
    assert str(caught.value) == "x cannot be written."


def test_an_error_of_this_process_needs_no_mark_and_takes_none():
    """Beam puts the name of the step behind its text, which may have the name of a file in it."""
    forged = 'x shoal-error: [2, "y"] cannot be written.'
    assert said(StorageError(f"{forged} [while running 'R']")) == forged


@pytest.mark.parametrize("forged", ["5", '"x"', "[1]", '["x", 1]', "{}", "[", '[1, "x", 2]'])
def test_a_mark_that_is_no_workers_is_passed_over(forged):
    """Such as one in the name of a file: what is told is then kind and place."""
    text = f"Traceback\n  {SECRET} shoal-error: {forged}"
    assert said(RuntimeError(text)).startswith("The pipeline failed with RuntimeError at test_submit.py:")


def test_what_storage_says_arrives():
    def build():
        told = traceback.format_exception(add_mark(StorageError("x cannot be written. [while running 'R']")))
        raise RuntimeError("".join(told))

    with pytest.raises(RunError, match=r"^x cannot be written\.$"):
        submit(build, LEFT)


def _fail(element):
    with plain_errors("Write"):
        raise StorageError("x cannot be written.")


@pytest.mark.parametrize("mode", ["in_memory", "multi_processing"])
def test_the_sentence_of_a_step_arrives_from_any_process(mode):
    """From another process it comes as the text of a traceback, in which Beam has raised it again."""

    def build():
        options = PipelineOptions(direct_running_mode=mode, direct_num_workers=1)
        pipeline = beam.Pipeline(runner=EmbeddedRunner(), options=options)
        _ = pipeline | beam.Create([1]) | "Write" >> beam.Map(_fail)
        return pipeline

    with pytest.raises(RunError, match=r"^x cannot be written\.$"):
        submit(build, LEFT)


STATES = [state for name, state in vars(PipelineState).items() if name.isupper()]


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("state", [None, *STATES])
def test_a_run_ends_as_its_pipeline_does(state, waits):
    """What waits in files is freed where it ended as it should: otherwise steps may still read it."""
    spills, begun = [], []
    running = SimpleNamespace(wait_until_finish=lambda: state if waits else 1 / 0)
    options = PipelineOptions([] if waits else ["--no_wait_until_finish"])

    def build():
        spills.append(Spill())
        return SimpleNamespace(run=lambda: running, options=options)

    done = waits and state in (None, PipelineState.DONE)
    if done or not waits or state in ("UNKNOWN", "STARTING", "PENDING", "RUNNING"):
        assert submit(build, LEFT, begun.append) == done
    else:
        with pytest.raises(RunError, match=rf"^The pipeline ended as {state}; {LEFT}\.$"):
            submit(build, LEFT, begun.append)
    assert begun == [running]
    assert spills[0].writes == (not done)


@pytest.mark.parametrize(("error", "while_it_runs"), [(InputError, RunError), (JobError, JobError)])
def test_input_that_a_worker_finds_wrong_was_valid_before(error, while_it_runs):
    """A later run may succeed, unlike one of a wrong job."""

    def fail():
        raise error("x is wrong.")

    with pytest.raises(error, match=r"^x is wrong\.$"):
        submit(fail, LEFT)
    with pytest.raises(while_it_runs, match=r"^x is wrong\.$") as caught:
        submit(lambda: SimpleNamespace(run=fail), LEFT)
    assert type(caught.value) is while_it_runs
