"""Standard streams that accept every character, and report trouble in one sentence."""

import os
import sys
from typing import Any

from core.errors import ShoalError


class StreamError(ShoalError, RuntimeError):
    """A standard stream cannot be written. The work that the command did before is kept."""


class GuardedStream:
    """A text stream that raises a `StreamError` where it cannot be written.

    A reader that ends early, such as `head`, has read enough. What follows is discarded, so that the command
    goes on and ends as it would have.

    Args:
        stream: the stream to write to.
        name: its name in the error.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name, self._left = stream, name, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> Any:
        """Write `text`.

        Raises:
            StreamError: the stream cannot be written.
        """
        try:
            return len(text) if self._left else self._stream.write(text)
        except BrokenPipeError:
            self._left = True
            return len(text)
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Flush the stream.

        Raises:
            StreamError: the stream cannot be written.
        """
        try:
            if not self._left:
                self._stream.flush()
        except BrokenPipeError:
            self._left = True
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> StreamError:
        return StreamError(f"The standard {self._name} stream cannot be written ({error.strerror}).")


def _open_descriptors() -> None:
    """Open the null device in place of each standard stream that is closed.

    The next file that is opened would get its number, and what libraries read or print would be of that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the system takes the lowest number


def guard_streams() -> None:
    """Guard both standard streams: escape characters, and replace a closed stream by the null device."""
    _open_descriptors()
    for attribute, name in (("stdout", "output"), ("stderr", "error")):
        stream = getattr(sys, attribute)
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (as long as the process)
        stream.reconfigure(errors="backslashreplace")
        setattr(sys, attribute, GuardedStream(stream, name))
