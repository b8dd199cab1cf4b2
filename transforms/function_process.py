"""The process that runs an untrusted function: it sees no rows, and forks a fresh child for each subsample.

It is started by `transforms.run_function`, with nothing but the standard library, numpy, Arrow and the
function's own module inside. Rows go from the asking process straight into the child, over a socket that
comes with the request, so that nothing of one subsample is ever in the memory of the next.
"""

import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

READY, FAILED, RUN, END = b"r", b"f", b"g", b"e"
"""What is said on the control socket: started or not, run a child, its end has come (and was carried out)."""

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_TOLD = 1 << 14  # bytes of an error's text
_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Limits:
    """What one child may take.

    Args:
        seconds: of processor time.
        memory: bytes above what was mapped before the rows came.
        dimension: length of an answer.
        tell: whether the text of an error may be told; only for rows that are no one's.
    """

    seconds: float
    memory: int
    dimension: int
    tell: bool


def main(control: socket.socket, place: str, arguments: Mapping[str, Any], limits: Limits) -> None:
    """Import `place` (`module:callable`), then fork a child per request until the asking process is gone."""
    try:
        module, name = place.split(":")
        function = getattr(import_module(module), name)
        if not callable(function):
            raise TypeError(f"{name} is not callable")
        function = partial(function, **arguments)
    except BaseException as error:
        said = f"{type(error).__name__}: {error}" if limits.tell else type(error).__name__
        control.sendall(FAILED + said.encode()[:_TOLD])
        return
    if _LINUX:  # what a child leaves running becomes ours, to be ended
        _libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    gc.collect()
    gc.freeze()  # children write to fewer of the pages that they share with us
    folder = tempfile.mkdtemp()
    control.sendall(READY)
    while True:
        order, handed, _, _ = socket.recv_fds(control, 1, 1)
        if order != RUN:  # the asking process is gone, perhaps without having had time to clean up
            remove(folder)
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(folder))
            return
        child = os.fork()
        if child == 0:
            _run_child(function, handed[0], folder, limits)
        os.close(handed[0])
        if control.recv(1) != END:
            os.kill(child, signal.SIGKILL)
            remove(folder)
            return
        _end_children(child)
        remove(folder)
        folder = tempfile.mkdtemp()  # where that fails, it is not the next one that bears it
        control.sendall(END)


def _run_child(function: Callable[..., Any], rows: int, folder: str, limits: Limits) -> None:
    """Answer and exit; nothing that happens here gets further."""
    try:
        os.setsid()
        if _LINUX:
            _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.chdir(folder)
        os.environ.update(HOME=folder, TMPDIR=folder)
        tempfile.tempdir = folder
        os.dup2(rows, 3)
        os.closerange(4, 1 << 16)
        _limit(limits)
        with socket.socket(fileno=3) as asked:
            try:
                answer = _answer(function, asked, limits.dimension)
            except BaseException as error:
                if not limits.tell:
                    raise
                # Longer than any answer, so that it can't be taken for one.
                answer = bytes(8 * limits.dimension) + f" {type(error).__name__}: {error}".encode()[:_TOLD]
            asked.sendall(answer)
    finally:
        os._exit(0)


def _answer(function: Callable[..., Any], asked: socket.socket, dimension: int) -> bytes:
    with asked.makefile("rb") as stream:
        source = pa.BufferReader(stream.read())
    parts = []
    while source.tell() < source.size():
        with pa.ipc.open_stream(source) as reader:
            parts.append(reader.read_all())
    value = np.asarray(function(pa.concat_tables(parts).combine_chunks()), dtype=np.float64)
    if value.shape != (dimension,) and not (dimension == 1 and value.shape == ()):
        raise ValueError(f"the answer has shape {value.shape}, but params.outputs {dimension} axes")
    return value.tobytes()


def _limit(limits: Limits) -> None:
    seconds = int(limits.seconds) + 1
    for what, most in (
        (resource.RLIMIT_CORE, 0),  # a core file would hold rows
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits.memory),
        (resource.RLIMIT_AS, _mapped() + limits.memory if _LINUX else resource.RLIM_INFINITY),
    ):
        with contextlib.suppress(OSError, ValueError):  # where the hard limit is lower already
            resource.setrlimit(what, (most, most))


def _mapped() -> int:
    """Return the bytes of address space that this process has taken."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _end_children(child: int) -> None:
    """Kill the child and whatever it has started, so that nothing of it is there for the next one."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    while True:
        for pid in _children() if _LINUX else [child]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def remove(folder: str) -> None:
    """Remove a folder, as deep and as locked as what wrote to it may have left it; not what it links to."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return
    for command in (["chmod", "-R", "u+rwx", folder], ["rm", "-rf", folder]):
        with contextlib.suppress(OSError):
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _children() -> list[int]:
    """Return the processes that are ours to wait for: of one that ends we inherit those that it started."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


if __name__ == "__main__":
    _place, _arguments, _control, _seconds, _memory, _dimension, _tell, *sys.path = sys.argv[1:]
    main(
        socket.socket(fileno=int(_control)),
        _place,
        json.loads(_arguments),
        Limits(float(_seconds), int(_memory), int(_dimension), _tell == "tell"),
    )
