"""Tell a person at a terminal which round is done, and nothing more."""

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
from core.rounds import Block, Round, State
from pipelines.console.events import Events

_LISTENERS: dict[str, Callable[[str], None]] = {}


@dataclass(frozen=True)
class Announced:
    """A round that tells the listener of this process, where there is one, when it has released.

    Args:
        step: the round itself.
        listener: name of the listener; a worker in another process finds none by it.
    """

    step: Round
    listener: str

    @property
    def name(self) -> str:
        """See `Round.name`."""
        return self.step.name

    @property
    def floor(self) -> int | None:
        """See `Round.floor`."""
        return self.step.floor

    def summarize(self, block: Block, state: State) -> Any:
        """See `Round.summarize`."""
        return self.step.summarize(block, state)

    def release(self, aggregate: Any, state: State, noise: Noise) -> State:
        """See `Round.release`."""
        released = self.step.release(aggregate, state, noise)
        _LISTENERS.get(self.listener, lambda name: None)(self.name)
        return released


@contextmanager
def shown(rounds: Sequence[Round], events: Events) -> Iterator[Sequence[Round]]:
    """Return the rounds, announced one by one to `events` or on a terminal, where one of them listens."""
    if events.stream is not None:
        with _heard(rounds, lambda name: events.tell("round_released", round=name)) as announced:
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
    names = [step.name for step in rounds]
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        bar = progress.add_task(names[0], total=len(names))

        def finish(name: str) -> None:
            done = names.index(name) + 1
            progress.update(bar, completed=done, description=names[min(done, len(names) - 1)])

        with _heard(rounds, finish) as announced:
            yield announced


@contextmanager
def _heard(rounds: Sequence[Round], hear: Callable[[str], None]) -> Iterator[Sequence[Round]]:
    listener = uuid.uuid4().hex
    _LISTENERS[listener] = hear
    try:
        yield [Announced(step, listener) for step in rounds]
    finally:
        del _LISTENERS[listener]
