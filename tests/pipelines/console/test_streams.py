"""Standard streams that are closed, full or of another encoding never harm a run."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli import _command
from pipelines.console.events import Events
from pipelines.console.streams import GuardedStream, StreamError
from pipelines.ledger.ledger import now


class Broken(io.StringIO):
    """A stream that cannot be written."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, os.strerror(self.number))

    def flush(self) -> None:
        raise OSError(self.number, os.strerror(self.number))


FULL, GONE = Broken(errno.ENOSPC), Broken(errno.EPIPE)


def test_a_stream_that_fails_says_so_in_a_sentence() -> None:
    says = r"^The standard output stream cannot be written \(No space left on device\)\.$"
    for act in (lambda stream: stream.write("x"), lambda stream: stream.flush()):
        with pytest.raises(StreamError, match=says):
            act(GuardedStream(FULL, "output"))
    kept = io.StringIO()
    GuardedStream(kept, "output").write("text")
    assert kept.getvalue() == "text"


def test_a_reader_that_has_enough_ends_nothing() -> None:
    for act in (lambda stream: stream.write("x"), lambda stream: stream.flush()):
        stream = GuardedStream(GONE, "output")
        for _ in range(2):
            act(stream)


@pytest.mark.parametrize("arguments", [["--help"], [], ["ledger"], ["run", "--help"]])
def test_help_that_cannot_be_written_is_no_traceback(monkeypatch, capsys, arguments: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["shoal", *arguments])
    monkeypatch.setattr(sys, "stdout", GuardedStream(FULL, "output"))
    with pytest.raises(SystemExit) as end:
        _command()
    assert end.value.code == 1
    says = "shoal: The standard output stream cannot be written (No space left on device).\n"
    assert capsys.readouterr().err == says


@pytest.mark.parametrize("stream", [FULL, GONE, GuardedStream(FULL, "error"), GuardedStream(GONE, "error")])
def test_lost_events_end_no_run(stream) -> None:
    Events(stream, now).emit("started")


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_no_file_gets_the_number_of_a_stream_that_is_closed(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """What libraries print to standard error would be written into it."""
    code = (
        "import os; from pipelines.console.streams import guard_streams; guard_streams(); "
        f"file = os.open({str(tmp_path / 'file')!r}, os.O_CREAT | os.O_WRONLY); "
        f"os.write(file, str([file > 2, *map(os.get_inheritable, {closed})]).encode())"
    )
    redirected = " ".join(f"{number}>&-" for number in closed)
    subprocess.run(["sh", "-c", f'exec "$0" -c "$1" {redirected}', sys.executable, code], check=True)
    assert (tmp_path / "file").read_text() == str([True] * (1 + len(closed)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "code", "says"),
    [
        ("| true", 0, ""),
        ("> /dev/full", 1, "The standard output stream cannot be written (No space left on device)."),
        (">&- 2>&-", 0, ""),
        ("<&-", 0, ""),
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
