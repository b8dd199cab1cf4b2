"""A terminal is told what a run does, from its start on, and sees nothing else until the release."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pytest

from pipelines.console.progress import Progress, Step
from tests.pipelines.conftest import write_rows

STEPS = (Step("one", 4, "row groups"), Step("two", 4, "row groups"), Step("three", 10, "parts", weight=0.5))


class Line:
    """What the line of a progress is told to show."""

    def __init__(self) -> None:
        self.description, self.completed = "", 0.0

    def update(self, bar: object, description: str, completed: float = 0.0, total: float = 1.0) -> None:
        self.description, self.completed = description, completed / total


@pytest.fixture
def shown() -> tuple[Progress, Line, list[float]]:
    """A progress that is shown, its line, and the time of its clock."""
    line, now = Line(), [0.0]
    progress = Progress(False, lambda: now[0])
    progress.shown, progress._line, progress._bar = True, line, None  # type: ignore[assignment]
    progress.expect(STEPS)
    return progress, line, now


@pytest.mark.parametrize(
    ("done", "part", "text"),
    [
        ({"one": 1}, 0.1, "one: 1 of 4 row groups (step 1 of 3)"),
        ({"one": 4}, 0.4, "two: 0 of 4 row groups (step 2 of 3)"),
        ({"one": 2, "two": 1}, 0.5, "two: 1 of 4 row groups (step 2 of 3)"),
        ({"one": 9, "two": 9, "three": 9}, 0.98, "three: 9 of 10 parts (step 3 of 3)"),
        ({"one": 4, "two": 4, "three": 99}, 1.0, "three: 10 of 10 parts (step 3 of 3)"),
    ],
)
def test_the_bar_shows_all_steps_and_the_text_the_last_that_began(shown, done, part, text) -> None:
    progress, line, _ = shown
    progress.show(done)
    assert (line.description, line.completed) == (text, pytest.approx(part))


def test_what_is_not_a_step_is_not_shown(shown) -> None:
    progress, line, _ = shown
    progress.show({"another run": 3})
    assert line.description == ""


def test_the_bar_never_goes_back(shown) -> None:
    progress, line, _ = shown
    progress.show({"one": 4, "two": 2})
    progress.show({"one": 1})
    assert line.completed == pytest.approx(0.6)


def test_the_time_left_follows_from_the_time_since_the_first_piece(shown) -> None:
    """Workers take a minute to start; then a tenth of the run takes ten seconds."""
    progress, line, now = shown
    now[0] = 60.0
    progress.show({"one": 1})
    assert line.description.endswith("(step 1 of 3)")
    now[0] = 70.0
    progress.show({"one": 2})
    assert line.description.endswith(", about 80 s left")
    now[0] = 1060.0
    progress.show({"one": 2})
    assert line.description.endswith(", about 133 min left") or line.description.endswith(", about 2 h left")


CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def see(command: list[str], environment: dict[str, str] | None = None) -> tuple[list[tuple[float, str]], int]:
    """Run a command whose standard error is a terminal of 200 columns.

    Returns:
        What the terminal was sent, with seconds since the start, and the exit code. Standard output is lost.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    environment = os.environ | {"TERM": "xterm"} | (environment or {})
    began, seen = time.monotonic(), []
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        while data := os.read(ours, 65536):
            seen.append((time.monotonic() - began, CODES.sub("", data.decode(errors="replace"))))
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    return seen, process.wait(60)


def moves(seen: list[tuple[float, str]]) -> list[str]:
    """Return the different numbers of pieces that the bar showed, in order."""
    counts = re.findall(r"\w+: \d+ of \d+ [a-z ]+ \(step \d of \d\)", "".join(text for _, text in seen))
    return list(dict.fromkeys(counts))


SHOAL = Path(sys.executable).with_name("shoal")

NOISY_WORKER = """
import os
from pipelines.cli import main
from pipelines.run import progress
from transforms import count_done
before = count_done.count_done
def loud(step):
    os.write(2, b"row 4711 is secret")
    before(step)
import transforms.run_rounds
transforms.run_rounds.count_done = loud
main()
"""
"""The command, with a worker that writes a row to standard error, as a library could."""


@pytest.fixture
def many(bench):
    """A job of so many rows that its bar is seen to move."""
    for number in range(4):
        rows = np.random.default_rng(number).uniform(size=(400_000, 2))
        write_rows(bench.rows.with_name(f"part-{number}.parquet"), rows)
    bench.job |= {"task": "histogram", "params": {"cells": [8, 8], "method": "dense"}}
    bench.job["privacy"]["delta"] = 0
    return bench


@pytest.mark.slow
@pytest.mark.parametrize("way", ["multi_threading", "multi_processing"])
def test_a_terminal_sees_a_bar_that_moves(many, way: str) -> None:
    command = [str(SHOAL), "run", many.write(many.job), "--", f"--direct_running_mode={way}"]
    seen, code = see(command)
    assert code == 0
    assert many.release()["outcome"] == "released"
    shown = moves(seen)
    assert len(shown) > 2, seen
    assert all(re.fullmatch(r"histogram: \d+ of 1604 row groups \(step 1 of 1\)", each) for each in shown)


@pytest.mark.slow
def test_what_the_run_does_is_said_within_two_seconds(bench) -> None:
    """A busy machine gets more time: as much as it takes longer than 0.25 s to import numpy."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)
    pace = max(1.0, (time.monotonic() - began) / 0.25)
    seen, code = see([str(SHOAL), "run", bench.write(bench.job)])
    assert code == 0
    assert min(at for at, text in seen if "Checking the job" in text) < 2.0 * pace


@pytest.mark.slow
def test_nothing_that_workers_write_breaks_the_line(bench) -> None:
    seen, code = see([sys.executable, "-c", NOISY_WORKER, "run", bench.write(bench.job)])
    assert code == 0
    assert bench.release()["outcome"] == "released"
    assert "4711" not in "".join(text for _, text in seen)


@pytest.mark.slow
def test_an_error_stands_alone_on_the_last_line(bench) -> None:
    bench.rows.write_bytes(bench.rows.read_bytes()[:-7])
    seen, code = see([str(SHOAL), "run", bench.write(bench.job)])
    assert code == 1
    last = "".join(text for _, text in seen).replace("\r", "\n").rstrip("\n").split("\n")[-1]
    assert last.startswith("shoal: input.path: ") and "Checking" not in last


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--json-logs"], ["--dry-run"]])
def test_no_line_beside_a_log_or_a_dry_run(bench, arguments: list[str]) -> None:
    seen, code = see([str(SHOAL), "run", bench.write(bench.job), *arguments])
    assert code == 0
    assert "Checking the job" not in "".join(text for _, text in seen)
