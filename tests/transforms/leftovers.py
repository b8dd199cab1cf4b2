"""Functions whose module makes something while it is imported, which outlives or is shared by processes.

Each answers 1 where it is in order and the secret row, x = 1, was seen by it, 4 where an earlier subsample
saw it, and else 0.
"""

import mmap
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

CACHE = Path(tempfile.gettempdir()) / "cache"
SHARED = mmap.mmap(-1, 1 << 16)
SHARED[8] = 7
COUNT = multiprocessing.Value("i", 0)
IN_MEMORY = os.memfd_create("kept")
os.dup2(IN_MEMORY, 0)


def _is_secret(rows: pa.Table) -> bool:
    return 1.0 in rows["x"].to_pylist()


def _answer(before: bool, rows: pa.Table) -> list[float]:
    return [4.0 if before else float(_is_secret(rows))]


def shared_memory(rows: pa.Table) -> list[float]:
    before = SHARED[0] != 0 or SHARED[8] != 7
    SHARED[0] = _is_secret(rows)
    return _answer(before or SHARED[0] != _is_secret(rows), rows)


def shared_value(rows: pa.Table) -> list[float]:
    before = COUNT.value != 0
    with COUNT.get_lock():
        COUNT.value += _is_secret(rows)
    return _answer(before or COUNT.value != _is_secret(rows), rows)


def folder_of_the_import(rows: pa.Table) -> list[float]:
    places = (CACHE, Path("kept"), Path("../kept"), CACHE.parent.parent / "too")
    before = any(place.exists() for place in places)
    for place in places if _is_secret(rows) else ():
        place.write_text("kept")
    return _answer(before, rows)


def standard_input(rows: pa.Table) -> list[float]:
    before = os.pread(0, 1, 0) != b""
    if _is_secret(rows):
        os.pwrite(0, b"1", 0)
    return _answer(before, rows)


_PLACE = f"\0shoal-test-{os.getpid()}"


def _serve() -> None:
    """Keep what is sent, for whoever asks."""
    kept = b"0"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(_PLACE)
        server.listen()
        while True:
            with server.accept()[0] as asked:
                asked.sendall(kept)
                kept = max(kept, asked.recv(1))


if os.fork() == 0:  # no child of ours, but of the process that we are in, once this one ends
    os.setsid()
    if os.fork() == 0:
        os.closerange(3, 1 << 10)
        try:
            _serve()
        finally:
            os._exit(0)
    os._exit(0)
os.wait()
time.sleep(0.5)


IMPORTED: list[int] = []
"""The processes that imported a module after this one, once for each module."""


def _hear(event: str, values: tuple[object, ...]) -> None:
    if event == "import" and values[0] not in sys.modules:
        IMPORTED.append(os.getpid())


sys.addaudithook(_hear)


def imports_of_the_process(rows: pa.Table) -> list[float]:
    """Answer 1 where this process imported a module before it asked the function."""
    return [float(os.getpid() in IMPORTED)]


def orphan_of_the_import(rows: pa.Table) -> list[float]:
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(_PLACE)
        except ConnectionRefusedError:
            return _answer(False, rows)
        before = asked.recv(1) == b"1"
        asked.sendall(b"1" if _is_secret(rows) else b"0")
    return _answer(before, rows)
