"""Tell whoever watches from afar what a run does: a JSON line an event, no figure that depends on rows."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

from pipelines.console.printable import as_json
from pipelines.console.streams import StreamError


@dataclass(frozen=True)
class Events:
    """Where events go, and what each of them says of the run.

    The keys are those that cloud loggers read by themselves: time, severity, message.

    Args:
        stream: takes a line an event; None keeps silent.
        clock: tells the time.
        about: facts in every line, such as the run id.
    """

    stream: TextIO | None
    clock: Callable[[], datetime]
    about: Mapping[str, Any] = field(default_factory=dict)

    def of(self, **about: Any) -> "Events":
        """Return the same with more facts in every line."""
        return Events(self.stream, self.clock, {**self.about, **about})

    def tell(self, event: str, severity: str = "INFO", **facts: Any) -> None:
        """Write one event."""
        if self.stream is not None:
            line = {"time": self.clock().isoformat(), "severity": severity, "event": event}
            with suppress(OSError, StreamError):  # whoever read it may be gone, which must not end a run
                self.stream.write(as_json({**line, **self.about, **facts}) + "\n")
                self.stream.flush()
