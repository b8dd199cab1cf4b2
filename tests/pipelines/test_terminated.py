"""What ends a command before it is done: the signals of schedulers and of terminals."""

import signal
import subprocess
import sys

import pytest

END = """
import signal, sys
from pipelines.terminated import Terminated, listen
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[2]))
listen()
try:
    signal.raise_signal(int(sys.argv[1]))
    print("goes on")
except Terminated:
    print("cleans up")
"""


@pytest.mark.parametrize(
    ("sent", "before", "then"),
    [
        (signal.SIGTERM, "SIG_DFL", "cleans up"),
        (signal.SIGHUP, "SIG_DFL", "cleans up"),
        (signal.SIGHUP, "SIG_IGN", "goes on"),  # under nohup
    ],
)
def test_a_command_that_is_asked_to_end_cleans_up(sent: signal.Signals, before: str, then: str) -> None:
    command = [sys.executable, "-c", END, str(int(sent)), before]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, f"{then}\n")
