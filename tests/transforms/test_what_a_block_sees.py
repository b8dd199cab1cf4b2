"""Whatever blocks came before, and wherever they were answered, a function sees the same."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from tests.transforms.attacks import SECRET
from tests.transforms.observer import SEEN, UNTIDY
from transforms.function_memory import fixed_places
from transforms.function_messages import PROCESS, SANDBOX
from transforms.run_function import Function, FunctionRunner
from transforms.split_units import stream

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of functions are Linux's")

STARTED = """
import os, signal, sys, time
from transforms import function_children, function_process

def start():
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
    for _ in range(3 if {starts} else 1):
        os.read(ends[0], 1)  # the setsid of each is done
    return child
"""

ENDED = """
child = start()
usual = function_children.end_children(child)
print(usual, function_children.children_of(os.getpid()))
"""

ONE = Grid((0.0,), (1.0,), 2.0**-9)
ALL = Grid((0.0,) * len(SEEN), (2.0**52,) * len(SEEN), 1.0)
QUIET = [stream(pa.record_batch({"x": np.zeros(size, dtype=np.int64)})) for size in (1, 50_000)]
UNTIDY_ROWS = [stream(pa.record_batch({"x": [act]})) for act in range(1, len(UNTIDY))]


def printed(code: str, **parts: object) -> str:
    """Return what a program prints, which must raise nothing."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code.format(**parts)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stderr == ""
    return ended.stdout


def can_be_fixed() -> bool:
    """Return whether the system lets a process say that its memory be at the same places."""
    asks = "import ctypes; print(ctypes.CDLL(None).personality(0x40000))"
    return sys.platform == "linux" and int(printed(asks)) >= 0


ARE_FIXED = can_be_fixed()
OF_PLACES = ("places", "garbage", "what is mapped", "limits")
"""What differs where another process forks, if the system draws where things are."""


def seen(runner: FunctionRunner, rows: bytes) -> dict[str, float]:
    answer = np.frombuffer(runner.ask(rows), dtype=np.float64)
    return dict(zip(SEEN, answer.tolist(), strict=True))


def differing(found: list[dict[str, float]], before: list[dict[str, float]]) -> set[str]:
    """Return the names of what was not seen alike."""
    return {
        name for one, other in zip(found, before, strict=True) for name in SEEN if one[name] != other[name]
    }


@pytest.mark.parametrize("starts", [False, True])
def test_all_processes_of_a_block_end(starts: bool) -> None:
    """Also one that has no group yet. It is told whether there was only that one."""
    assert printed(STARTED + ENDED, starts=starts) == f"{not starts} []\n"


def test_another_process_forks_after_a_block_that_left_processes() -> None:
    """Its memory follows from that block."""
    function = Function("tests.transforms.attacks:attack", ONE, arguments={"how": "forks"})
    with FunctionRunner(function) as runner:
        forking = runner._process.pid
        for x, changes in ((0.0, False), (SECRET, True), (0.0, False)):
            before = forking
            assert (runner.run(stream(pa.record_batch({"x": [x]}))) is None) == (x == SECRET)
            runner.run(stream(pa.record_batch({"x": [0.0]})))
            forking = runner._process.pid
            assert (forking != before) == changes


@pytest.mark.parametrize("isolation", [PROCESS, SANDBOX])
def test_a_block_sees_nothing_of_others(isolation: str) -> None:
    """Not even where free memory begins: last bits of sums may follow from addresses.

    Of eight processes two must see the same. Often an import takes other memory, which no block decides.
    """
    function = Function(
        "tests.transforms.observer:looks", ALL, seconds=20.0, megabytes=500, isolation=isolation
    )
    with FunctionRunner(function) as runner:
        alone, forking = [seen(runner, rows) for rows in QUIET], runner._process.pid
        for act, untidy in enumerate(UNTIDY_ROWS, 1):
            runner.ask(untidy)
            found = [seen(runner, rows) for rows in QUIET]
            if runner._process.pid != forking:
                assert differing(found, alone) <= set(OF_PLACES), f"after {act}"
                alone, forking = found, runner._process.pid
            assert differing(found, alone) == set(), f"after {act}"
    others, alike = [alone], False
    while len(others) < 8 and not alike:
        with FunctionRunner(function) as runner:
            found = [seen(runner, rows) for rows in QUIET]
        assert differing(found, alone) <= set(OF_PLACES), "where another process forks"
        alike = any(not differing(found, other) for other in others)
        others.append(found)
    assert alike == ARE_FIXED


ORDERS = """
class Thing:
    pass

def goes_through_a_set(rows):
    things = [Thing() for _ in range(1000)]
    place = {id(thing): number for number, thing in enumerate(things)}
    return hash(tuple(place[id(thing)] for thing in set(things))) % 2.0**40
"""


@pytest.mark.skipif(not ARE_FIXED, reason="the system draws where the memory of each process is")
@pytest.mark.parametrize("isolation", [PROCESS, SANDBOX])
def test_sets_of_objects_have_one_order_in_all_blocks(isolation: str) -> None:
    """In whichever process they are answered, and also in its first one.

    Rarely one object has another place, by what no block decides, so each is tried in several processes.
    """
    grid = Grid((0.0,), (2.0**40,), 1.0)
    function, found = Function("own.py:goes_through_a_set", grid, text=ORDERS, isolation=isolation), []
    for _ in range(6):
        with FunctionRunner(function) as runner:
            found.append([runner.ask(QUIET[0]) for _ in range(4)])
    (usual, often), *_ = Counter(answers[2] for answers in found).most_common()
    assert len(usual) == 8
    assert often > 1
    assert usual in [answers[0] for answers in found]
    assert any(len(set(answers)) == 1 for answers in found)


def test_places_are_fixed_for_processes_of_one_thread_alone() -> None:
    """And for as long as it starts them."""
    own = Path("/proc/thread-self/personality")
    before = own.read_text()
    with pytest.raises(OSError, match="none"), fixed_places():
        assert (own.read_text() != before) == ARE_FIXED
        raise OSError("none")
    assert own.read_text() == before
