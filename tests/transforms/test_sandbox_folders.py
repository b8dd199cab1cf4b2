"""The folders that a block may write to in a sandbox are its own, empty at first, and of bounded size."""

import sys

import pyarrow as pa
import pytest

from core.domain import Grid
from transforms.function_messages import SANDBOX
from transforms.run_function import Function, FunctionRunner
from transforms.split_units import stream

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

ROWS = stream(pa.record_batch({"x": [0.25, 0.75]}))
COUNTS = Grid((0.0,), (1024.0,), 1.0)
MEGABYTES = 300

CODE = """
import os, pathlib


def leaves(rows, place):
    before = len(os.listdir(place))
    (pathlib.Path(place) / "left").write_text("secret")
    return before + 10 * (len(os.listdir(place)) - before)


def has_room(rows, place):
    device, above = (os.stat(each).st_dev for each in (place, "/dev"))
    own = os.statvfs(place)
    return own.f_blocks * own.f_frsize / (1 << 20) if device != above else 1024


def fills(rows, place):
    written = 0
    try:
        with open(f"{place}/large", "wb", buffering=0) as file:
            while written < 1024:
                written += file.write(bytes(1 << 20)) / (1 << 20)
    except OSError:
        pass
    return written
"""


def answers(what: str, place: str, times: int = 1) -> list[float]:
    function = Function(f"f.py:{what}", COUNTS, {"place": place}, 20.0, MEGABYTES, False, CODE, SANDBOX)
    with FunctionRunner(function) as asked:
        found = [asked.run(ROWS) for _ in range(times)]
    return [float("nan") if each is None else float(each[0]) for each in found]


@pytest.mark.parametrize("place", [".", "/dev/shm"])
def test_what_a_block_writes_it_sees_and_the_next_does_not(place: str) -> None:
    """One file after it was written, and none before."""
    assert answers("leaves", place, times=3) == [10.0] * 3


@pytest.mark.parametrize("place", [".", "/dev/shm"])
def test_a_folder_is_a_file_system_of_a_block_that_holds_as_much_as_its_memory(place: str) -> None:
    assert answers("has_room", place) == [MEGABYTES]
    assert 0 < answers("fills", place)[0] <= MEGABYTES
