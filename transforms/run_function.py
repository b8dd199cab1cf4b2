"""Run an untrusted function on subsamples. Whatever it does, the answer is a point of a grid, or none.

The function sees one subsample at a time. Each subsample gets a process of its own. It is forked from a
process that has imported the module of the function and never sees rows. It has an empty folder, no open
files, no memory that the import shared, and limits of time and memory, and its output is discarded. The
process and its descendants are killed before the next subsample. So one record affects one answer, which is
what the privacy of sample and aggregate requires. After an exception, a timeout, a crash or an answer of a
wrong shape, the subsample has no answer. State that a function keeps in its module, its folder or its
children ends with the process. Files elsewhere, such as in /dev/shm, end in a sandbox alone.

Fork and end of a process cost more than a simple fit. So one process answers many subsamples by the
functions of `SHARING`. These are parts of Shoal, which keep nothing, and whose answers follow from the rows
to the last bit, wherever these lie in memory. A module of another folder that has the name of theirs shares
nothing. Only an answer is taken from there: after anything else a process of its own answers the subsample,
as it would have done. What that process alone could fail at are its limits of memory and time. So a subsample
is only sent to the shared one where it is far from both.

This protects against faulty functions, not against malicious ones. The function runs as the user of the
worker, and processes leave traces. A malicious function can read the input, write files elsewhere, use the
network, access other processes of that user or exhaust the machine. From the clock, process ids and kernel
objects, it can find out what ran before. So it can leak rows, or pass them from one subsample to another.
Containers without network and writable storage prevent leaks to the outside, but not from one subsample to
another.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.domain import Grid
from core.errors import ShoalError
from transforms.function_memory import fixed_places
from transforms.function_messages import (
    DENIED,
    END,
    FAILED,
    PROCESS,
    READY,
    RUN,
    SANDBOX,
    SHARE,
    SHARING,
    blocking_pair,
    exchange,
)
from transforms.function_process import home_in, remove
from transforms.sandbox import shown_of

_PROGRAM = f"{__package__}.function_process"
_LEAST, _EACH_BYTE, _EACH_VALUE = 1 << 26, 4, 128
"""Bytes that the functions of `SHARING` surely need less than half of: by themselves, for each byte of the
rows, and for each value, of which they have at most eight copies as floats."""

_FIRST, _EACH_SECOND = 1 << 18, 1 << 22
"""Values, times columns, which these functions surely answer in half a second of processor time; and how many
of them take as long as the least subsample does."""

_START = 120.0
"""Seconds within which the module of the function must be imported."""

_PATIENCE, _LEAST_PATIENCE = 10.0, 60.0
"""Elapsed time of a subsample at most: times its processor time, and seconds at least.

The limit of processor time is the same on a busy machine. The limit of elapsed time is only met by functions
that wait for something, share a core with more than ten others, or start processes of their own.
"""

_END = 10.0
"""Seconds within which a child must be killed; otherwise the process that forked it is replaced."""

_HERE = str(Path(__file__).resolve().parents[1 + __package__.count(".")])
"""The folder of Shoal's own packages."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_FOLDERS = ("HOME", "TMPDIR", "JOBLIB_TEMP_FOLDER")
"""What is the home of a block. joblib would write arrays to /dev/shm, and leave them if it is ended."""


class FunctionError(ShoalError, ValueError):
    """The function cannot be imported, or cannot run on this machine. No row was read."""


@dataclass(frozen=True)
class Function:
    """A function of one subsample, with its limits. All of this is public.

    Args:
        place: `module:name`, importable on the workers, or `FILE:name` where the text of the file is given.
            The function takes a `pyarrow.Table` and returns a vector (d,), or a number where d is 1.
        grid: the universe of its answers.
        arguments: keyword arguments; JSON values.
        seconds: limit of processor time per subsample, of each of its processes.
        megabytes: limit of the memory per subsample, and of the size of each file.
        constant_time: whether each subsample takes the whole time limit. It is then a limit of elapsed time,
            too. Cleaning up after a function that was killed may take additional time.
        text: of the file; None for a module.
        isolation: `process`, or `sandbox`; see `transforms.sandbox`.
        unseen: local files and folders that must not be in a sandbox.
    """

    place: str
    grid: Grid
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 60.0
    megabytes: int = 1000
    constant_time: bool = False
    text: str | None = None
    isolation: str = PROCESS
    unseen: tuple[str, ...] = ()

    @property
    def shares(self) -> bool:
        """Whether one process may answer many subsamples."""
        return self.place in SHARING and self.text is None and not self.constant_time

    @property
    def patience(self) -> float:
        """Limit of elapsed time per subsample, seconds."""
        return self.seconds if self.constant_time else max(_PATIENCE * self.seconds, _LEAST_PATIENCE)

    def answer(self, raw: bytes) -> NDArray[np.int64] | None:
        """Return the grid point (d,) nearest to an answer, or None if it is not a finite point."""
        if len(raw) != 8 * self.grid.dimension:
            return None
        value = np.frombuffer(raw, dtype=np.float64)
        return self.grid.quantize(value[None, :])[0] if np.isfinite(value).all() else None


class FunctionRunner:
    """Evaluate `function` with a forking process; for one thread at a time.

    Args:
        function: the function.
        report_errors: whether to return the texts of errors, and to limit elapsed time like processor time;
            only for made-up rows.

    Raises:
        FunctionError: the function cannot be imported, the machine is not Linux, or a sandbox would show what
            it must not.
    """

    def __init__(self, function: Function, *, report_errors: bool = False) -> None:
        self.function, self._report_errors = function, report_errors
        self._control: socket.socket | None = None
        self._child: socket.socket | None = None
        if sys.platform != "linux":  # what limits, ends and clears processes is Linux's
            raise FunctionError(
                f"params.function runs in processes that need Linux, and this machine is {sys.platform}: "
                "run the job on a machine or in a container with Linux. Its plan is the same anywhere."
            )
        if function.isolation == SANDBOX:
            _check_unseen(function)
        self._start()

    def run(self, rows: bytes) -> NDArray[np.int64] | None:
        """Return the answer for a subsample, grid steps (d,), or None. No error of the function is raised.

        Args:
            rows: an Arrow IPC stream; empty for a subsample without rows, which has no answer.
        """
        return self.function.answer(self.ask(rows))

    def ask(self, rows: bytes) -> bytes:
        """Return the raw answer: the bytes of d float64 values, or of another length after a failure."""
        began, seconds = time.monotonic(), self.function.seconds
        patience = seconds if self._report_errors else self.function.patience
        ready = self._is_started()  # a restart after an earlier subsample does not count for this one
        raw = self._ask(rows, patience) if rows and ready else b""
        if self.function.constant_time:
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        return raw

    def close(self) -> None:
        """End the process."""
        if self._control is not None:
            self._control.close()
            if self._child is not None:
                self._child.close()
            self._control = self._child = None
            self._process.kill()
            self._process.wait()
            remove(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(ImportError):  # at exit of Python; the process ends when its socket closes
            self.close()

    def _start(self) -> None:
        ours, theirs = blocking_pair()
        function, self._folder = self.function, tempfile.mkdtemp(prefix="shoal-")
        os.mkdir(home_in(self._folder))
        with theirs:
            limits = (self._folder, function.seconds, function.megabytes << 20, function.grid.dimension)
            arguments = json.dumps(dict(function.arguments)).encode()  # the system takes 128 KB in a command
            text = b"" if function.text is None else function.text.encode()
            number, home = f"{theirs.fileno():06}", home_in(self._folder)  # of one length, as all of these
            inside = function.isolation == SANDBOX
            length = "module" if function.text is None else len(text)
            errors = "report" if self._report_errors else "hide"
            command = [
                *(sys.executable, "-P", "-m"),
                *((f"{__package__}.sandbox", number, self._folder) if inside else (_PROGRAM,)),
                *map(str, (function.place, len(arguments), length, number, *limits, errors)),
                function.isolation,
                *(_real(place) if inside else place for place in sys.path),
            ]
            try:
                with fixed_places():
                    self._process = subprocess.Popen(
                        command,
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=_environment(home),
                        start_new_session=True,
                    )
            except OSError as error:
                ours.close()
                remove(self._folder)
                why = os.strerror(error.errno or 0)
                raise FunctionError(
                    f"params.function is {function.place}, but no process can be started for it ({why})."
                ) from None
        self._control = ours
        ours.settimeout(_START)
        with suppress(OSError):  # the process ended, which the next line finds
            ours.sendall(arguments + text)
        first = _receive(ours, 1)
        if first == DENIED:
            self.close()
            raise FunctionError(
                "params.isolation is sandbox, but this machine does not allow it: its kernel must let users "
                "make namespaces, which many containers forbid. Allow it there, or use isolation: process."
            )
        problem = _receive(ours, 1 << 16) if first == FAILED else b""
        if first != READY:
            self.close()
            why = problem.decode(errors="replace") or "the process ended, or took too long"
            if problem and not (
                self._report_errors or why.isidentifier()
            ):  # the module names its errors as it likes
                why = "it raised an error of no plain name"
            advice = _advice(why, function.isolation)
            if not self._report_errors:
                advice += " `shoal check-function` prints the whole error."
            raise FunctionError(
                f"params.function is {function.place}, but that cannot be imported: {why}.{advice}"
            )
        ours.settimeout(_END)
        self._ask_for_nothing()

    def _ask_for_nothing(self) -> None:
        """Ask for a child and end it, so that the first one that is used finds what later ones find."""
        control: Any = self._control
        self._child, theirs = blocking_pair()
        with theirs, suppress(OSError):  # the next request finds that the process ended
            socket.send_fds(control, [RUN], [theirs.fileno()])
        self._end_child()

    def _is_started(self) -> bool:
        if self._control is None:
            try:
                self._start()
            except (
                FunctionError,
                OSError,
            ):  # it started before; the reason must stay hidden
                return False
        return self._control is not None  # its first child may have been the last

    def _ask(self, rows: bytes, patience: float) -> bytes:
        if self._may_share(rows):
            raw = self._exchange(SHARE, rows, patience)
            if len(raw) == 8 * self.function.grid.dimension:
                return raw
        self._end_child()
        if not self._is_started():
            return b""
        raw = self._exchange(RUN, rows, patience)
        self._end_child()
        return raw

    def _may_share(self, rows: bytes) -> bool:
        """Return whether a shared process may answer: it and another one are far from their limits."""
        function = self.function
        if not function.shares or self._report_errors:
            return False
        batch = pa.ipc.open_stream(rows).read_next_batch()
        values = batch.num_rows * batch.num_columns
        memory = _LEAST + _EACH_BYTE * len(rows) + _EACH_VALUE * values
        time = _FIRST + values * batch.num_columns
        return memory <= function.megabytes << 20 and time <= function.seconds * _EACH_SECOND

    def _exchange(self, order: bytes, rows: bytes, patience: float) -> bytes:
        """Send the rows to the child, or to a new one if there is none; return its response."""
        control: Any = self._control
        size = 1 << 16 if self._report_errors else 8 * self.function.grid.dimension
        try:
            if self._child is None:
                self._child, theirs = blocking_pair()
                with theirs:
                    socket.send_fds(control, [order], [theirs.fileno()])
            return exchange(self._child, rows, size, time.monotonic() + patience)
        except OSError:
            return b""
        except BaseException:  # its answer may come, but not to the next rows
            self.close()
            raise

    def _end_child(self) -> None:
        """End the child if there is one, or else the process that forked it."""
        if self._child is None:
            return
        control: Any = self._control
        try:
            control.sendall(END)
            ended = control.recv(1) == END
        except OSError:
            ended = False
        self._child.close()
        self._child = None
        if not ended:
            self.close()


def _check_unseen(function: Function) -> None:
    """Check that no file of the job, and none of the worker's temporary ones, is where Python finds modules.

    Raises:
        FunctionError: one is.
    """
    found = shown_of((*function.unseen, tempfile.gettempdir()), [_HERE])
    if found is not None:
        place, shown = found
        raise FunctionError(
            f"params.isolation is sandbox, which shows {shown} to the function for its modules, and {place} "
            "is there: move it elsewhere."
        )


def _real(place: str) -> str:
    """Return the real path of a folder of Python's path: a sandbox has no links on the way to it."""
    return os.path.realpath(place) if os.path.isabs(place) else place


def _advice(why: str, isolation: str) -> str:
    if not why.startswith("ModuleNotFoundError"):
        return ""
    advice = (
        " Shoal finds modules that are installed in its environment or lie in a folder of PYTHONPATH, here "
        "and on every worker."
    )
    if isolation == SANDBOX:
        advice += " In a sandbox a package in such a folder needs a file __init__.py."
    return advice


def _receive(control: socket.socket, most: int) -> bytes:
    try:
        return control.recv(most)
    except OSError:
        return b""


def _environment(home: str) -> dict[str, str]:
    """Return the environment of the process: the paths of programs, and one thread for numeric libraries.

    Hashes of strings are not randomized, so that a deterministic function gives the same answer when a step
    is repeated. No bytecode is written, since it would show which modules an earlier subsample imported.
    Memory is allocated in huge pages, where the system has them: the first use of a page takes long. Arrow
    has no allocator of its own, which would draw where its memory is.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    one_thread = dict.fromkeys(_THREADS, "1")
    python = {"PYTHONPATH": _HERE, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    memory = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    return {**kept, **one_thread, **python, **memory, **dict.fromkeys(_FOLDERS, home)}
