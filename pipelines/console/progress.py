"""Show on a terminal what a run does, how far it is, and how long it will still take.

It is for whoever may read the files: it counts their row groups, and how many there are follows from the
number of rows. No log and no file has it.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

_WIDTH = 20
"""Characters of the bar."""

_LEAST_PART, _LEAST_SECONDS = 0.02, 2.0
"""What must be done, and for how long, before the time left is told."""


@dataclass(frozen=True)
class Step:
    """A part of a run that counts its pieces of work.

    Args:
        name: of the step, by which its pieces are counted.
        pieces: how many there are, at least one.
        kind: what a piece is, in the plural.
        weight: time that the step takes, relative to the other steps.
    """

    name: str
    pieces: int
    kind: str
    weight: float = 1.0


class Progress:
    """A line of a terminal for one run, until it is closed.

    Args:
        wanted: whether to show the line where standard error is a terminal.
        clock: returns seconds.
    """

    def __init__(self, wanted: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.shown, self._clock = wanted and sys.stderr.isatty(), clock
        self._steps: Sequence[Step] = ()
        self._part = 0.0
        self._first: tuple[float, float] | None = None
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Line

            self._line = Line(
                *(SpinnerColumn(), TextColumn("{task.description}", markup=False)),
                *(BarColumn(_WIDTH), TimeElapsedColumn()),
                console=Console(file=_terminal(), highlight=False, emoji=False),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._bar = self._line.add_task("Checking the job", total=None)
            self._line.start()

    def close(self) -> None:
        """Remove the line, if it is there."""
        if self.shown:
            self.shown = False
            with suppress(OSError):  # the terminal may be gone
                self._line.stop()

    def say(self, what: str) -> None:
        """Say what the run does, in a few words."""
        if self.shown:
            self._line.update(self._bar, description=what)

    def expect(self, steps: Sequence[Step]) -> None:
        """Name the steps of the run, in order; the bar shows them all."""
        self._steps = steps

    def show(self, done: Mapping[str, int]) -> None:
        """Show how many pieces of each step are done. A step before another that has begun is complete."""
        begun = [number for number, step in enumerate(self._steps) if done.get(step.name, 0) > 0]
        if not self.shown or not begun:
            return
        last = max(begun)
        here = self._steps[last]
        pieces = min(done[here.name], here.pieces)
        if pieces == here.pieces and last + 1 < len(self._steps):
            last, pieces = last + 1, 0
            here = self._steps[last]
        weights = [step.weight for step in self._steps]
        part = (sum(weights[:last]) + here.weight * pieces / here.pieces) / sum(weights)
        self._part = max(self._part, part)  # counts of an attempt that is repeated may begin again
        text = f"{here.name}: {pieces} of {here.pieces} {here.kind} (step {last + 1} of {len(self._steps)})"
        self._line.update(self._bar, description=text + self._left(), completed=self._part, total=1.0)

    def _left(self) -> str:
        """Return the time left if the run goes on as it did since the first pieces were done."""
        now = self._clock()
        then, part = self._first = self._first or (now, self._part)
        if self._part - part < _LEAST_PART or now - then < _LEAST_SECONDS:
            return ""
        return f", about {_duration((now - then) * (1 - self._part) / (self._part - part))} left"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep whatever else this process and its workers write to standard error off the terminal.

        Workers may log what they read, so it is discarded, as the logs of this process are.
        """
        if not self.shown or not _is_stderr():
            yield
            return
        sys.stderr.flush()
        terminal = os.dup(2)
        try:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _duration(seconds: float) -> str:
    """Return a time in words: seconds up to two minutes, then minutes up to two hours, then hours."""
    for unit, size in (("s", 1), ("min", 60)):
        if seconds < 120 * size:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{round(seconds / 3600)} h"


def _is_stderr() -> bool:
    """Return whether `sys.stderr` writes to the second file descriptor of the process."""
    with suppress(OSError, ValueError, AttributeError):
        return bool(sys.stderr.fileno() == 2)
    return False


def _terminal() -> TextIO:
    """Return a stream of its own to where standard error goes, which `Progress.alone` leaves alone."""
    if not _is_stderr():
        return sys.stderr
    return os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
