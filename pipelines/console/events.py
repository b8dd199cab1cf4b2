"""Log the events of a run as JSON lines. No field depends on rows."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

from pipelines.console.printable import as_json
from pipelines.console.streams import StreamError


@dataclass(frozen=True)
class Events:
    """A log of events. The keys time, severity and message are those that cloud loggers parse.

    Args:
        stream: receives one line per event; None disables the log.
        clock: returns the current time.
        about: fields of every line, such as the run id.
    """

    stream: TextIO | None
    clock: Callable[[], datetime]
    about: Mapping[str, Any] = field(default_factory=dict)

    def of(self, **about: Any) -> "Events":
        """Return the same log with more fields in every line."""
        return Events(self.stream, self.clock, {**self.about, **about})

    def emit(self, event: str, severity: str = "INFO", **facts: Any) -> None:
        """Write one event."""
        if self.stream is not None:
            line = {"time": self.clock().isoformat(), "severity": severity, "event": event}
            with suppress(OSError, StreamError):  # a closed stream must not end a run
                self.stream.write(as_json({**line, **self.about, **facts}) + "\n")
                self.stream.flush()
