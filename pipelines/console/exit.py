"""End a process that has run Beam pipelines."""

import atexit
import os
import sys
from collections.abc import Callable


def exit_after(command: Callable[[], object]) -> None:
    """Run `command`, then end the process with its exit code without finalizing the interpreter.

    Beam leaves gRPC calls and daemon threads behind. Python's finalization stops the threads first, and may
    then wait forever for a lock that one of them holds. The functions that `command` registered with `atexit`
    still run, so the processes that Beam started are stopped.

    Args:
        command: raises SystemExit to end with a certain exit code.
    """
    code = 1

    def end_process() -> None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    atexit.register(end_process)  # the first to register is the last to run
    try:
        command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
