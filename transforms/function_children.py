"""The children of the process that forks for functions: how they start, and how all of them end."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from functools import partial


def fork(run: Callable[[], object]) -> int:
    """Start a child that runs a function and exits, whatever happens; return its number.

    There is no fork elsewhere. From Python 3.12 on, the first one at each place leaves a warning in memory.
    """
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(0)
    return child


def end_children(child: int) -> bool:
    """Kill the started process and all of its descendants, so that none is left for the next subsample.

    Returns:
        Whether this process did the same few things as always. If not, its memory follows from this
        subsample, and another process must fork the next child.
    """
    os.kill(child, signal.SIGKILL)  # it may not have a group yet
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    lost = False
    with contextlib.suppress(ChildProcessError):  # the usual case: there is no other one
        os.waitpid(-1, os.WNOHANG)
        parent = os.getpid()  # the killer might find another one, if this process is killed
        try:
            killer = fork(partial(_kill_until_none, parent))
        except OSError:  # they leave no room for it
            killer, lost = -1, True
        while True:
            if lost:
                _kill(children_of(parent))
            if os.waitpid(-1, os.WUNTRACED)[0] == killer:
                os.waitpid(-1, os.WNOHANG)
                lost = True  # they ended or stopped it
    return not lost


def _kill_until_none(parent: int) -> None:
    """Kill the other children of the process that forked this one, until it ends or has none."""
    while os.getppid() == parent and (others := set(children_of(parent)) - {os.getpid()}):
        _kill(others)
        time.sleep(1e-3)


def _kill(processes: Iterable[int]) -> None:
    for pid in processes:
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            os.kill(pid, signal.SIGKILL)


def children_of(parent: int) -> list[int]:
    """Return the children of a process, including orphans of former children."""
    with open(f"/proc/{parent}/task/{parent}/children", "rb") as file:
        return [int(pid) for pid in file.read().split()]
