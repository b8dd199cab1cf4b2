"""Report the progress of a run: which rounds have been released, and nothing else."""

import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from core.noise import Noise
from core.rounds import Block, Examination, Round, State, examination_of
from pipelines.console.events import Events

_LISTENERS: dict[str, Callable[[str], None]] = {}


@dataclass(frozen=True)
class Announced:
    """A round that notifies a listener in this process when it has released.

    Args:
        round_: the wrapped round.
        listener: name of the listener. A worker in another process has no listener of this name.
    """

    round_: Round
    listener: str

    @property
    def name(self) -> str:
        """See `Round.name`."""
        return self.round_.name

    @property
    def purpose(self) -> str:
        """See `Round.purpose`."""
        return self.round_.purpose

    @property
    def floor(self) -> int | None:
        """See `Round.floor`."""
        return self.round_.floor

    @property
    def examination(self) -> Examination | None:
        """See `Round`."""
        return examination_of(self.round_)

    def summarize(self, block: Block, state: State) -> Any:
        """See `Round.summarize`."""
        return self.round_.summarize(block, state)

    def release(self, aggregate: Any, state: State, noise: Noise) -> State:
        """See `Round.release`."""
        released = self.round_.release(aggregate, state, noise)
        _LISTENERS.get(self.listener, lambda name: None)(self.name)
        return released


@contextmanager
def with_progress(rounds: Sequence[Round], events: Events) -> Iterator[Sequence[Round]]:
    """Yield rounds that report their releases to `events` or on a terminal, if there is either."""
    if events.stream is not None:
        with _with_listener(rounds, lambda name: events.emit("round_released", round=name)) as announced:
            yield announced
        return
    if not sys.stderr.isatty():
        yield rounds
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    names = [round_.name for round_ in rounds]
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        bar = progress.add_task(names[0], total=len(names))

        def finish(name: str) -> None:
            done = names.index(name) + 1
            progress.update(bar, completed=done, description=names[min(done, len(names) - 1)])

        with _with_listener(rounds, finish) as announced:
            yield announced


@contextmanager
def _with_listener(rounds: Sequence[Round], listen: Callable[[str], None]) -> Iterator[Sequence[Round]]:
    listener = uuid.uuid4().hex
    _LISTENERS[listener] = listen
    try:
        yield [Announced(round_, listener) for round_ in rounds]
    finally:
        del _LISTENERS[listener]
