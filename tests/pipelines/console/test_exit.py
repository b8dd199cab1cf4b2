"""A process ends with its code, whatever Beam left behind."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading
from pipelines.console.exit import exit_after

class Call:  # as one of gRPC's, whose lock a thread held when the interpreter stopped it
    def __init__(self):
        self.lock = threading.Lock()
        self.lock.acquire()

    def __del__(self):
        self.lock.acquire()

def command():
    global call
    call = Call()
    atexit.register(print, "stopped")
    print("said")
    {end}

{run}
"""


def run(end: str, run: str = "exit_after(command)", seconds: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM.format(end=end, run=run)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


@pytest.mark.parametrize(
    ("end", "code", "complaint"),
    [
        ("return 7", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('why')", 1, "why\n"),
        ("raise ValueError('what')", 1, "ValueError: what\n"),
    ],
)
def test_a_process_ends_with_its_code(end, code, complaint):
    done = run(end)
    assert (done.returncode, done.stdout) == (code, "said\nstopped\n")
    assert done.stderr.endswith(complaint)
    assert complaint or not done.stderr


def test_it_would_wait_forever_otherwise():
    with pytest.raises(subprocess.TimeoutExpired):
        run("return 7", run="command()", seconds=5)
