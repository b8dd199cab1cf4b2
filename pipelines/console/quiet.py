"""Suppress what libraries log, warn of and print.

All of that is set for the whole process, while several threads may run jobs. So what the first of them
suppresses stays suppressed until the last one has ended.
"""

import io
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stderr
from typing import TextIO

_LOCK = threading.RLock()


def shared(
    context: Callable[[], AbstractContextManager[object]],
) -> Callable[[], AbstractContextManager[None]]:
    """Return a context that all threads share: the first one enters it, and the last one leaves it."""
    held = ExitStack()
    inside = 0

    @contextmanager
    def entered() -> Iterator[None]:
        nonlocal inside
        with _LOCK:
            if not inside:
                held.enter_context(context())
            inside += 1
        try:
            yield
        finally:
            with _LOCK:
                inside -= 1
                if not inside:
                    held.close()

    return entered


@contextmanager
def _without_logs() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


quiet = shared(_without_logs)
"""Suppress the logs and warnings of Beam, also those of its import. They may quote rows."""

without_stderr = shared(lambda: redirect_stderr(io.StringIO()))
"""Suppress what libraries print to standard error."""


@contextmanager
def stderr_in(stream: TextIO) -> Iterator[None]:
    """Let this thread, and no other meanwhile, print standard error to a stream, for a short time."""
    with _LOCK, redirect_stderr(stream):
        yield
