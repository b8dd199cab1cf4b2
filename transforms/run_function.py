"""Run a function that nobody trusts on subsamples: whatever it does, the answer is a point of a grid.

What is kept from the function: other subsamples. Each is answered by a process of its own, forked from one
that has imported the function's module and never sees rows, in an empty folder, without open files or shared
memory, with its output thrown away, within limits of time and memory; it and what it started are killed
before the next. So one record touches one answer, and that is all the privacy of sample and aggregate needs:
exceptions, timeouts, crashes and answers that are no numbers of the right shape all become the public
default, and state that a function keeps in its module, its files or its children ends with it.

What is not: the function runs as the user that runs the worker, and a process leaves traces. A hostile one
can read the input itself, write to files elsewhere, open the network, reach into other processes of that
user, starve the machine, or tell from the clock, from process numbers and from the kernel's accounts and
objects what ran before. So it can carry rows out, or from one subsample to another. It need not be right, nor
private; it must not be at work for someone else. Containers without network and with nothing to write to keep
rows from being carried out, not from one subsample to another.
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
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid
from core.errors import ShoalError
from transforms.function_process import END, FAILED, READY, RUN, home_in, remove

_START = 120.0
"""Seconds in which the function's module must have been imported."""

_END = 10.0
"""Seconds in which a child must have been ended, or the process that forked it is replaced."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class FunctionError(ShoalError, ValueError):
    """The function cannot be imported; no row was read."""


@dataclass(frozen=True)
class Function:
    """A function of one subsample, and what it may take; all of it public.

    Args:
        place: `module:callable`, importable on the workers; it takes a `pyarrow.Table` and returns a
            vector (d,), or a number where d is 1.
        grid: the universe of its answers.
        arguments: further arguments, by name; JSON values.
        default: what is answered where the function fails, data units, shape (d,); None is the middle.
        seconds: time per subsample, of the clock and of the processor.
        megabytes: memory per subsample, and size of any file it writes.
        constant_time: whether a subsample takes all of its time, however soon the function is done. To clean
            up after one that uses its time up takes longer, by what it left.
    """

    place: str
    grid: Grid
    arguments: Mapping[str, Any] = field(default_factory=dict)
    default: tuple[float, ...] | None = None
    seconds: float = 60.0
    megabytes: int = 1000
    constant_time: bool = False

    @property
    def default_answer(self) -> NDArray[np.int64]:
        """The default, grid steps (d,)."""
        if self.default is None:
            return np.array(self.grid.bounding_center, dtype=np.int64)
        return self.grid.quantize(np.array([self.default]))[0]

    def answer(self, raw: bytes) -> NDArray[np.int64]:
        """Return the grid point (d,) nearest to what came back, the default where that is no finite point."""
        if len(raw) != 8 * self.grid.dimension:
            return self.default_answer
        value = np.frombuffer(raw, dtype=np.float64)
        return self.grid.quantize(value[None, :])[0] if np.isfinite(value).all() else self.default_answer


class FunctionRunner:
    """Keep the process that forks for `function`, and ask it; for one thread at a time.

    Args:
        function: what to run.
        tell: whether errors come back as text, which is only for rows that are no one's.

    Raises:
        FunctionError: the function cannot be imported.
    """

    def __init__(self, function: Function, *, tell: bool = False) -> None:
        self.function, self._tell = function, tell
        self._control: socket.socket | None = None
        self._start()

    def run(self, rows: bytes) -> NDArray[np.int64]:
        """Return the function's answer on a subsample, grid steps (d,); never raises on what it does.

        Args:
            rows: an Arrow IPC stream; empty for a subsample without rows, whose answer is the default.
        """
        return self.function.answer(self.ask(rows))

    def ask(self, rows: bytes) -> bytes:
        """Return what the function answers as it came: d float64; anything else is a failure."""
        began, seconds = time.monotonic(), self.function.seconds
        ready = self._is_started()  # what an earlier subsample did to the process takes no time of this one
        raw = self._ask(rows, time.monotonic() + seconds) if rows and ready else b""
        if self.function.constant_time:
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        return raw

    def close(self) -> None:
        """End the process."""
        if self._control is not None:
            self._control.close()
            self._control = None
            self._process.kill()
            self._process.wait()
            remove(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(ImportError):  # Python itself is ending; the process ends as its socket closes
            self.close()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        function, self._folder = self.function, tempfile.mkdtemp(prefix="shoal-")
        os.mkdir(home_in(self._folder))
        with theirs:
            limits = (self._folder, function.seconds, function.megabytes << 20, function.grid.dimension)
            arguments = json.dumps(dict(function.arguments))
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "transforms.function_process", function.place, arguments),
                    *(str(value) for value in (theirs.fileno(), *limits, "tell" if self._tell else "hide")),
                    *sys.path,
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(home_in(self._folder)),
                start_new_session=True,
            )
        self._control = ours
        ours.settimeout(_START)
        said = _receive(ours, 1 << 16) if (first := _receive(ours, 1)) == FAILED else b""
        if first != READY:
            self.close()
            why = said.decode(errors="replace") or "the process ended, or took too long"
            if said and not (self._tell or why.isidentifier()):  # the module names its errors as it likes
                why = "it raised an error of no plain name"
            raise FunctionError(f"params.function is {function.place}, which cannot be imported: {why}.")
        ours.settimeout(_END)

    def _is_started(self) -> bool:
        if self._control is None:
            try:
                self._start()
            except (
                FunctionError,
                OSError,
            ):  # it could be started before: what changed that is not to be seen
                return False
        return True

    def _ask(self, rows: bytes, deadline: float) -> bytes:
        control: Any = self._control
        ours, theirs = socket.socketpair()
        with ours:
            try:
                with theirs:
                    socket.send_fds(control, [RUN], [theirs.fileno()])
                raw = _exchange(ours, rows, 8 * self.function.grid.dimension, deadline, self._tell)
                control.sendall(END)
                ended = control.recv(1) == END
            except OSError:
                raw, ended = b"", False
        if not ended:
            self.close()
        return raw


def _exchange(asked: socket.socket, rows: bytes, size: int, deadline: float, tell: bool) -> bytes:
    """Send the rows and return what comes back until it is closed; empty where that takes too long."""
    answer, most = b"", (1 << 16 if tell else size)  # what the function left running may hold the other end
    try:
        asked.settimeout(max(1e-3, deadline - time.monotonic()))
        asked.sendall(rows)
        asked.shutdown(socket.SHUT_WR)
        while len(answer) < most:
            asked.settimeout(max(1e-3, deadline - time.monotonic()))
            part = asked.recv(most - len(answer))
            if not part:
                return answer
            answer += part
    except OSError:
        return b""
    return answer


def _receive(control: socket.socket, most: int) -> bytes:
    try:
        return control.recv(most)
    except OSError:
        return b""


def _environment(home: str) -> dict[str, str]:
    """Return what the process may know of ours: where programs are, and one thread per worker.

    Hashes are not random, so that a step that is repeated repeats its answers where the function itself does.
    Nor is bytecode written, which would tell what an earlier subsample imported.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    one_thread = dict.fromkeys(_THREADS, "1")
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    python = {"PYTHONPATH": here, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **one_thread, **python, "HOME": home, "TMPDIR": home}
