"""The process that runs an untrusted function. It sees no rows, and forks a child for each subsample.

`transforms.run_function` starts it, on Linux alone. It imports only the standard library, numpy, Arrow and
the module of the function. Each request comes with a socket, over which the rows go directly from the
requesting process to the child. So the memory of a child never contains anything of an earlier subsample,
unless that process asks for a child that is shared.

What a child finds must not follow from other subsamples, not even where free memory begins: last bits of
sums may follow from addresses. So between two children this process does the same few things, in Python's own
small blocks of memory. What a subsample has written is removed by a child. Where one has left processes, this
process ends them and then itself; another one has its memory at the same places, by
`function_memory.fixed_places`.
"""

import contextlib
import ctypes
import gc
import json
import math
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from transforms.function_children import end_children, fork
from transforms.function_memory import copy_shared, mapped, shared_memory, use_huge_pages
from transforms.function_messages import END, FAILED, LENGTH, READY, RUN, SANDBOX, SHARE, received
from transforms.sandbox import own_folder

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_SOCKET = 4  # bytes of the number of a file
_JOB_MODULE = "job_function"  # no other module has this name
_MOST_ERROR_BYTES = 1 << 14  # bytes of an error's text
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Limits:
    """Limits of one child.

    Args:
        seconds: of processor time, of each of its processes.
        memory: bytes in addition to those mapped before the rows arrive.
        dimension: length of an answer.
        report_errors: whether to return the texts of errors; only for made-up rows.
        sandbox: whether this process is in a sandbox, in which each child has a folder of its own.
    """

    seconds: float
    memory: int
    dimension: int
    report_errors: bool
    sandbox: bool


def main(
    control: socket.socket,
    place: str,
    arguments: int,
    length: int | None,
    folder: str,
    limits: Limits,
) -> None:
    """Import `place`, then fork a child per request until the requesting process ends.

    Whatever ends it, perhaps the requesting process without cleaning up, the folder is removed: it may hold
    what a function wrote of its rows.

    Args:
        control: socket of the requests.
        place: the function, `module:name`, or `FILE:name`.
        arguments: bytes of its keyword arguments as JSON, which come first on the socket.
        length: bytes of the text of the file, which come next; None for a module.
        folder: a private folder; it contains the home of the children, which is emptied for each child.
        limits: of each child.
    """
    with contextlib.ExitStack() as ending:
        if limits.sandbox:
            os.mkdir(home_in(folder))
        else:
            ending.callback(remove, folder)
        # Orphans of the import and of children become children of this process, which kills them.
        _libc.prctl(_SUBREAPER, 1, 0, 0, 0)
        # All blocks share these numbers, also where this process has replaced another one.
        np.random.seed(0)  # noqa: NPY002  (functions use this generator)
        try:
            given = json.loads(received(control, arguments))
            module, _, name = place.rpartition(":")
            own = import_module(module) if length is None else _run_text(module, received(control, length))
            function = getattr(own, name)
            if not callable(function):
                raise TypeError(f"{name} is not callable")
            function, keeps_nothing = partial(function, **given), _lies_here(own)
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}" if limits.report_errors else type(error).__name__
            control.sendall(FAILED + problem.encode()[:_MOST_ERROR_BYTES])
            return
        _use_libraries()
        if not limits.sandbox:
            _renew(folder)
        end_children(fork(os.getpid))  # one that does nothing, and the processes that the import left
        shared = shared_memory()
        gc.collect()
        gc.freeze()  # fewer shared pages are copied when children write to them
        use_huge_pages()
        control.sendall(READY)
        while _answers(control, function, folder, shared, limits, keeps_nothing):
            pass


def _answers(
    control: socket.socket,
    function: Callable[..., Any],
    folder: str,
    shared: Sequence[tuple[int, int]],
    limits: Limits,
    keeps_nothing: bool,
) -> bool:
    """Fork a child for the next request, and end it when it is told; return whether another may come."""
    order, handed, _, _ = control.recvmsg(1, socket.CMSG_SPACE(_SOCKET))
    if order not in (RUN, SHARE):  # the requesting process ended
        return False
    rows = int.from_bytes(handed[0][2], sys.byteorder)  # `recv_fds` turns round the order of free memory
    many = order == SHARE and keeps_nothing
    child = fork(partial(_run_child, function, rows, folder, shared, limits, many))
    os.close(rows)
    if control.recv(1) != END:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)  # it writes no more
        return False
    if not end_children(child):
        return False
    if not limits.sandbox:
        _renew(folder)  # before the next request, which it must not delay
    control.sendall(END)
    return True


def _use_libraries() -> None:
    """Do what libraries do at their first use in a process, and not when they are imported.

    Each child would do it again: Arrow imports pandas, if it is installed, in a third of a second, and
    scikit-learn looks for plugins among all packages that are installed, in 4 ms.
    """
    pa.array([0.0]).to_numpy()
    if "sklearn" in sys.modules:
        with contextlib.suppress(Exception):  # another module may have this name
            import_module("sklearn.utils").check_array([[0.0]])


def _lies_here(module: ModuleType) -> bool:
    """Return whether a module that is named like one of Shoal is that one, and not one of another folder."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    own = os.path.join(root, *module.__name__.split(".")) + ".py"
    return os.path.realpath(getattr(module, "__file__", None) or "") == own


def _run_text(file: str, text: bytearray) -> ModuleType:
    """Return the module that the text of a file makes. It is no file here, and imports no file beside it."""
    module = ModuleType(_JOB_MODULE)
    sys.modules[_JOB_MODULE] = module
    exec(compile(bytes(text), file, "exec", dont_inherit=True), module.__dict__)
    return module


def _run_child(
    function: Callable[..., Any],
    rows: int,
    folder: str,
    shared: Sequence[tuple[int, int]],
    limits: Limits,
    many: bool,
) -> None:
    """Send the answer of a subsample, or one after the other those of many."""
    os.setsid()
    _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if limits.sandbox:
        own_folder(folder, limits.memory)
        os.mkdir(home_in(folder))
    os.chdir(home_in(folder))
    os.dup2(rows, 3)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):  # the import may have opened files there
        os.dup2(nothing, standard)
    os.closerange(4, 1 + max(map(int, os.listdir("/dev/fd"))))
    copy_shared(shared)
    _limit(limits, many)
    with socket.socket(fileno=3) as asked:
        asked.setblocking(True)  # the module may have set a default timeout
        answers = True
        while answers:
            try:
                answer = _answer(function, asked, limits)
            except BaseException as error:
                if not limits.report_errors:
                    raise
                # Longer than any answer, so that it can't be mistaken for one.
                answer = (
                    bytes(8 * limits.dimension)
                    + f" {type(error).__name__}: {error}".encode()[:_MOST_ERROR_BYTES]
                )
            asked.sendall(answer)
            answers = many


def _answer(function: Callable[..., Any], asked: socket.socket, limits: Limits) -> bytes:
    """Return the answer for the rows that come next. Their time counts from here."""
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    rows = pa.ipc.open_stream(received(asked, int.from_bytes(received(asked, LENGTH)))).read_all()
    value, dimension = np.asarray(function(rows), dtype=np.float64), limits.dimension
    if value.shape != (dimension,) and not (dimension == 1 and value.shape == ()):
        raise ValueError(f"the answer has shape {value.shape}, but params.outputs {dimension} axes")
    return value.tobytes()


def _limit(limits: Limits, many: bool) -> None:
    """Limit the process, and the processes that it starts.

    Their processor time is limited in whole seconds, rounded up. The timer limits that of this process
    exactly: its signal ends the process. A function may stop the timer, but not change the limits. Where it
    answers many subsamples, the timer alone limits the time of each.
    """
    seconds = resource.RLIM_INFINITY if many else math.ceil(limits.seconds)
    for what, most in (
        (resource.RLIMIT_CORE, 0),  # a core file would hold rows
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits.memory),
        (resource.RLIMIT_AS, mapped() + limits.memory),
    ):
        with contextlib.suppress(OSError, ValueError):  # where the hard limit is lower already
            resource.setrlimit(what, (most, most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def home_in(folder: str) -> str:
    """Return the home of the children: the folder for their work and temporary files."""
    return os.path.join(folder, "home")


def _renew(folder: str) -> None:
    """Replace a folder by an empty private one with a new home."""
    if not _is_removed(folder):
        os.waitpid(fork(partial(remove, folder)), 0)
    os.mkdir(folder, 0o700)
    os.mkdir(home_in(folder))


def remove(folder: str) -> None:
    """Remove a folder, however deep it is and whatever its permissions are. Links are not followed."""
    if os.path.islink(folder):
        os.unlink(folder)
    elif not _is_removed(folder):
        for command in (["chmod", "-R", "u+rwx", folder], ["rm", "-rf", folder]):
            with contextlib.suppress(OSError):
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _is_removed(folder: str) -> bool:
    """Remove a folder in which nothing was written, and no link; return whether it was one.

    It changes neither the order of free memory, as `islink` does, nor the counts of the garbage collector, as
    `suppress` does. A function can see both.
    """
    try:
        inside = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        os.rmdir("home", dir_fd=inside)
        os.rmdir(folder)
    except OSError:
        return False
    finally:
        os.close(inside)
    return True


if __name__ == "__main__":
    (
        _place,
        _arguments,
        _length,
        _control,
        _folder,
        _seconds,
        _memory,
        _dimension,
        _report_errors,
        _isolation,
        *sys.path,
    ) = sys.argv[1:]
    main(
        socket.socket(fileno=int(_control)),
        _place,
        int(_arguments),
        None if _length == "module" else int(_length),
        _folder,
        Limits(
            float(_seconds), int(_memory), int(_dimension), _report_errors == "report", _isolation == SANDBOX
        ),
    )
