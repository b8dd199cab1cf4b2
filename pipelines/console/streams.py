"""Standard streams that never harm a run: any name can be written, and whoever reads them may go away."""

import os
import sys
from typing import Any

from core.errors import ShoalError


class StreamError(ShoalError, RuntimeError):
    """A standard stream cannot be written. What the command did before stands."""


class Steady:
    """A text stream whose failure is one sentence.

    Args:
        stream: what is written to.
        name: what the sentence calls it.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> Any:
        """Write `text`.

        Raises:
            StreamError: the stream cannot be written.
        """
        try:
            return self._stream.write(text)
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Hand on what was written.

        Raises:
            StreamError: the stream cannot be written.
        """
        try:
            self._stream.flush()
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> StreamError:
        return StreamError(f"The standard {self._name} stream cannot be written ({error.strerror}).")


def steady_streams() -> None:
    """Replace a closed stream by one that forgets, and let every character be written, some as escapes."""
    for attribute, name in (("stdout", "output"), ("stderr", "error")):
        stream = getattr(sys, attribute)
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (as long as the process)
        stream.reconfigure(errors="backslashreplace")
        setattr(sys, attribute, Steady(stream, name))
