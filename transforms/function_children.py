"""The children of the process that forks for functions: how they start, and how all of them end."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable


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
        Whether there was no other one, so that this process did the same few things as always. If not, its
        memory follows from this subsample, and another process must fork the next child.
    """
    os.kill(child, signal.SIGKILL)  # it may not have a group yet
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:  # the usual case
        return True
    with contextlib.suppress(ChildProcessError):
        while True:  # what a killed one started is a child of this process once that one has ended
            _kill(children_of(os.getpid()))
            os.waitpid(-1, 0)
    return False


def _kill(processes: Iterable[int]) -> None:
    for pid in processes:
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            os.kill(pid, signal.SIGKILL)


def children_of(parent: int) -> list[int]:
    """Return the children of a process, including orphans of former children."""
    with open(f"/proc/{parent}/task/{parent}/children", "rb") as file:
        return [int(pid) for pid in file.read().split()]
