"""The process that runs an untrusted function: it sees no rows, and forks a fresh child for each subsample.

It is started by `transforms.run_function`, with nothing but the standard library, numpy, Arrow and the
function's own module inside. Rows go from the asking process straight into the child, over a socket that
comes with the request, so that nothing of one subsample is ever in the memory of the next.
"""

import contextlib
import ctypes
import gc
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
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
_FIXED = 0x10  # MAP_FIXED of <sys/mman.h>
_TOLD = 1 << 14  # bytes of an error's text
_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p


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


def main(
    control: socket.socket, place: str, arguments: Mapping[str, Any], folder: str, limits: Limits
) -> None:
    """Import `place` (`module:callable`), then fork a child per request until the asking process is gone.

    Args:
        control: where requests come from.
        place: the function.
        arguments: its further arguments.
        folder: a folder of ours alone, with a home in it, which each child finds empty.
        limits: of one child.
    """
    if _LINUX:  # what the import or a child leaves running becomes ours, to be ended
        _libc.prctl(_SUBREAPER, 1, 0, 0, 0)
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
    _renew(folder)
    shared = _shared_memory()
    gc.collect()
    gc.freeze()  # children write to fewer of the pages that they share with us
    control.sendall(READY)
    while True:
        order, handed, _, _ = socket.recv_fds(control, 1, 1)
        if order != RUN:  # the asking process is gone, perhaps without having had time to clean up
            remove(folder)
            return
        child = os.fork()
        if child == 0:
            _run_child(function, handed[0], home_in(folder), shared, limits)
        os.close(handed[0])
        if control.recv(1) != END:
            os.kill(child, signal.SIGKILL)
            remove(folder)
            return
        _end_children([child])
        _renew(folder)  # where that fails, it is not the next one that bears it
        control.sendall(END)


def _run_child(
    function: Callable[..., Any],
    rows: int,
    home: str,
    shared: Sequence[tuple[int, int]],
    limits: Limits,
) -> None:
    """Answer and exit; nothing that happens here gets further."""
    try:
        os.setsid()
        if _LINUX:
            _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.chdir(home)
        os.dup2(rows, 3)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):  # the import may have left files there
            os.dup2(nothing, standard)
        os.closerange(4, 1 + max(map(int, os.listdir("/dev/fd"))))
        _copy_shared(shared)
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
        rows = pa.ipc.open_stream(stream.read()).read_all()
    value = np.asarray(function(rows), dtype=np.float64)
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


def _shared_memory() -> list[tuple[int, int]]:
    """Return address and bytes of all memory that a child would share with us, and write to."""
    if not _LINUX:
        return []
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        maps = [line.split()[:2] for line in file]
    ends = [[int(end, 16) for end in place.split("-")] for place, access in maps if access[1::2] == "ws"]
    return [(start, end - start) for start, end in ends]


def _copy_shared(shared: Sequence[tuple[int, int]]) -> None:
    """Put a copy of shared memory in its place, as a fork does with memory that is not shared."""
    for start, size in shared:
        content = (ctypes.c_char * size).from_address(start).raw
        access, how = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED
        put = _libc.mmap(ctypes.c_void_p(start), ctypes.c_size_t(size), access, how, -1, ctypes.c_long(0))
        if put != start:
            raise OSError("shared memory could not be copied")
        ctypes.memmove(start, content, size)


def _end_children(started: Sequence[int]) -> None:
    """Kill the processes that we started and whatever they did, so that nothing is there for the next one."""
    for child in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    while True:
        for pid in _children() if _LINUX else started:
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def home_in(folder: str) -> str:
    """Return the home of a child: its working folder, and where its temporary files go."""
    return os.path.join(folder, "home")


def _renew(folder: str) -> None:
    """Leave nothing in a folder but a new home, at the path where the old one was; only ours can read it."""
    remove(folder)
    os.mkdir(folder, 0o700)
    os.mkdir(home_in(folder))


def remove(folder: str) -> None:
    """Remove a folder, as deep and as locked as what wrote to it may have left it; not what it links to."""
    if os.path.islink(folder):  # chmod would follow it
        os.unlink(folder)
        return
    with contextlib.suppress(OSError):  # nearly always nothing was written
        os.rmdir(home_in(folder))
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
    _place, _arguments, _control, _folder, _seconds, _memory, _dimension, _tell, *sys.path = sys.argv[1:]
    main(
        socket.socket(fileno=int(_control)),
        _place,
        json.loads(_arguments),
        _folder,
        Limits(float(_seconds), int(_memory), int(_dimension), _tell == "tell"),
    )
