"""Errors of workers as sentences that hold nothing of any row."""

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import ShoalError, add_mark


class RoundError(ShoalError, RuntimeError):
    """A step failed; the text holds nothing that depends on rows."""


@contextmanager
def plain_errors(what: str) -> Iterator[None]:
    """Replace an error of a worker by one sentence that holds nothing of any row: engines log its text.

    A `ShoalError` is such a sentence already. Of an error of the operating system, the sentence has the
    system's word for its number, and no path. Of any other error it has kind and place alone.
    """
    try:
        yield
    except ShoalError as error:
        add_mark(error)
        raise
    except MemoryError:
        raise add_mark(RoundError(f"{what} failed: the worker ran out of memory.")) from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
            raise add_mark(RoundError(f"{what} failed: {os.strerror(error.errno)}.")) from None
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"
        raise add_mark(RoundError(f"{what} failed with {type(error).__name__} at {place}.")) from None
