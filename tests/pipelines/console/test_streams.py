"""Standard streams that are closed, full or of another encoding never harm a run."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.console.events import Events
from pipelines.console.streams import GuardedStream, StreamError
from pipelines.ledger.ledger import now


class Gone(io.StringIO):
    """A stream whose reader went away."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_stream_that_fails_says_so_in_a_sentence() -> None:
    says = r"^The standard output stream cannot be written \(Broken pipe\)\.$"
    for act in (lambda stream: stream.write("x"), lambda stream: stream.flush()):
        with pytest.raises(StreamError, match=says):
            act(GuardedStream(Gone(), "output"))
    kept = io.StringIO()
    GuardedStream(kept, "output").write("text")
    assert kept.getvalue() == "text"


@pytest.mark.parametrize("stream", [Gone(), GuardedStream(Gone(), "error")])
def test_lost_events_end_no_run(stream) -> None:
    Events(stream, now).emit("started")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "code", "says"),
    [
        ("> /dev/full", 1, "The standard output stream cannot be written (No space left on device)."),
        (">&- 2>&-", 0, ""),
        ("--json-logs 2> /dev/full > /dev/null", 0, ""),
    ],
)
def test_the_release_stands(bench, redirected: str, code: int, says: str) -> None:
    shoal = Path(sys.executable).with_name("shoal")
    command = f"{shoal} run {bench.write(bench.job)} {redirected}"
    done = subprocess.run(command, check=False, shell=True, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.count("\n")) == (code, int(bool(says)))
    assert says in done.stderr
    assert bench.release()["outcome"] == "released"


def test_every_name_can_be_written(bench) -> None:
    """In an encoding that lacks a character it becomes an escape."""
    job = bench.changed({"output": str(bench.folder / "Ж")})
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    shoal = Path(sys.executable).with_name("shoal")
    for arguments in (["plan"], ["plan", "--json"]):
        done = subprocess.run(
            [shoal, *arguments, bench.write(json.dumps(job))],
            check=False,
            capture_output=True,
            env=environment,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"one_cluster" in done.stdout
