"""Translate errors of workers to sentences that contain nothing about rows."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import ShoalError, add_mark, kind_of


class RoundError(ShoalError, RuntimeError):
    """A step of the pipeline failed. The text contains nothing that depends on rows."""


@contextmanager
def plain_errors(step: str) -> Iterator[None]:
    """Replace an error of a worker by a sentence that contains nothing about rows, since engines log errors.

    A `ShoalError` is kept. An error of the operating system is reported by the system's text for its number,
    without a path. Other errors are reported by type and line only.
    """
    try:
        yield
    except ShoalError as error:
        add_mark(error)
        raise
    except MemoryError:
        raise add_mark(RoundError(f"{step} failed: the worker ran out of memory.")) from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
            raise add_mark(RoundError(f"{step} failed: {os.strerror(error.errno)}.")) from None
        raise add_mark(RoundError(f"{step} failed with {kind_of(error)}.")) from None
