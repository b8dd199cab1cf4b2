"""Whatever blocks came before, and wherever they were answered, a function sees the same."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from tests.transforms.observer import OF_ONE_PROCESS, SEEN, UNTIDY
from transforms.function_messages import PROCESS, SANDBOX
from transforms.run_function import Function, FunctionRunner
from transforms.split_units import stream

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of functions are Linux's")

ENDED = """
import os, time
from transforms import function_process

function_process._libc.prctl(function_process._SUBREAPER, 1, 0, 0, 0)
ends = os.pipe()
child = os.fork()
if child == 0:
    if {starts}:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.fork()
    os.write(ends[1], b".")
    time.sleep(1000)
os.read(ends[0], 1)

def no_room():
    raise BlockingIOError

if not {room}:
    os.fork = no_room
function_process._end_children(child)
print(function_process._children(os.getpid()))
"""

ALL = Grid((0.0,) * len(SEEN), (2.0**52,) * len(SEEN), 1.0)
QUIET = [stream(pa.record_batch({"x": np.zeros(size, dtype=np.int64)})) for size in (1, 50_000)]
UNTIDY_ROWS = [stream(pa.record_batch({"x": [act]})) for act in range(1, len(UNTIDY))]


def seen(runner: FunctionRunner, rows: bytes) -> dict[str, float]:
    answer = np.frombuffer(runner.ask(rows), dtype=np.float64)
    return dict(zip(SEEN, answer.tolist(), strict=True))


@pytest.mark.parametrize(("starts", "room"), [(False, True), (True, True), (True, False)])
def test_all_processes_of_a_block_end(starts: bool, room: bool) -> None:
    """Also one that has no group yet, and where they leave no room for the one that would end them."""
    code = ENDED.format(starts=starts, room=room)
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


@pytest.mark.parametrize("isolation", [PROCESS, SANDBOX])
def test_a_block_sees_nothing_of_others(isolation: str) -> None:
    """Not even where free memory begins: last bits of sums may follow from addresses."""
    function = Function(
        "tests.transforms.observer:looks", ALL, seconds=20.0, megabytes=500, isolation=isolation
    )
    with FunctionRunner(function) as runner:
        alone = [seen(runner, rows) for rows in QUIET]
        for act, untidy in enumerate(UNTIDY_ROWS, 1):
            runner.ask(untidy)
            for rows, before in zip(QUIET, alone, strict=True):
                assert seen(runner, rows) == before, f"after {act}"
    with FunctionRunner(function) as runner:
        for rows, before in zip(reversed(QUIET), reversed(alone), strict=True):
            found = seen(runner, rows)
            assert {name for name in SEEN if found[name] != before[name]} <= set(OF_ONE_PROCESS)
