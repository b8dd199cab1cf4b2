"""End a process that has run Beam pipelines."""

import atexit
import os
import sys
from collections.abc import Callable


def leave_after(command: Callable[[], object]) -> None:
    """Run `command`, and then end the process with its exit code, leaving the interpreter as it is.

    Beam leaves gRPC calls and daemon threads behind. An interpreter that is taken apart stops the threads
    first, wherever they are, and may then wait forever for a lock that one of them held as it frees a call.
    What `command` registered with `atexit` still runs, so what Beam started is stopped.

    Args:
        command: returns, or raises as a program would: SystemExit for a code of its own.
    """
    code = 1

    def leave() -> None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    atexit.register(leave)  # the first to register is the last to run
    try:
        command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
