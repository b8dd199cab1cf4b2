"""Run a round whose release is made in parts, each by a task of its own: no process holds all keys.

Pieces of sparse counts wait in a file where the whole pipeline runs in this process, and in the runner's
shuffle elsewhere. `transforms.spill` has the file.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.noise import Noise
from core.rounds import RoundInParts, State
from transforms.count_done import count_done
from transforms.plain_errors import plain_errors
from transforms.records import Drawn, Records, check_marks
from transforms.spill import Spill

_CELLS = 1 << 16
"""Cells that a worker collects before it sends them on, at most, and those of one more block."""

_GROUPS = 16
"""Most elements that are made of a descriptor. Each holds the pieces of several parts, if there are more.

A runner takes some 4 kB for each until all are gathered, and as many workers at most release parts.
"""


@dataclass(frozen=True)
class Pieces:
    """What a descriptor has for a group of parts, of which every `_GROUPS`th part is one.

    Args:
        parts: for each part of the group, its spilled counts.
        mark: of the state from which they were made.
    """

    parts: list[list[Any]]
    mark: bytes


@dataclasses.dataclass
class DrawParts(beam.PTransform):
    """Run the last round of a task where it is a `RoundInParts`.

    The noise of a part is drawn in one step, and the part is kept by a Reshuffle. A consumer that is retried
    then reads the same draw. Without a spill a part is in memory once more while it is kept.

    Every descriptor gives one element for each group of parts, and every part is there, also empty. So the
    numbers of elements do not depend on rows.

    Args:
        round_: the round.
        drawn: the state before it, one `Drawn`, or a collection of one.
        noise: source of randomness.
        reader: how elements become records.
        keep: makes of the number and the state of a part what is kept.
    """

    round_: RoundInParts
    drawn: beam.PCollection | Drawn
    noise: Noise
    reader: Records
    keep: Callable[[int, State], Any]

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take at least one element for `reader`; return what is kept of each part."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        drawn = self.drawn if isinstance(self.drawn, Drawn) else beam.pvalue.AsSingleton(self.drawn)
        return (
            elements
            | "Summarize" >> beam.FlatMap(_summarize, self.reader, self.round_, drawn, self.spill)
            | "Group" >> beam.GroupByKey()
            | "Release" >> beam.FlatMap(_release, self.round_, drawn, self.noise, self.keep, self.spill)
            | "Keep" >> beam.Reshuffle()
            | "Load" >> beam.Map(_load, self.spill)
        )


@no_annotations
def _summarize(
    element: Any, reader: Records, round_: RoundInParts, drawn: Drawn, spill: Spill
) -> Iterator[tuple[int, Pieces]]:
    with plain_errors(f"Round {round_.name}"):
        parts: list[list[Any]] = [[] for _ in range(round_.parts)]

        def send() -> None:
            total = type(waiting[0]).merged(waiting)
            for part, shard in zip(parts, total.split(len(parts)), strict=True):
                part.append(spill.put(shard))
            waiting.clear()

        waiting: list[Any] = []
        for block in reader.blocks(element):
            waiting.append(round_.summarize(block, drawn.state))
            if sum(map(len, waiting)) > _CELLS:
                send()
        if waiting:
            send()
        count_done(round_.name)
        groups = min(len(parts), _GROUPS)
        yield from ((group, Pieces(parts[group::groups], drawn.mark)) for group in range(groups))


@no_annotations
def _release(
    gathered: tuple[int, Iterable[Pieces]],
    round_: RoundInParts,
    drawn: Drawn,
    noise: Noise,
    keep: Callable[[int, State], Any],
    spill: Spill,
) -> Iterator[Any]:
    group, sent = gathered[0], list(gathered[1])
    with plain_errors(f"Round {round_.name}"):
        for pieces in sent:
            check_marks(pieces.mark, drawn.mark)
        for place, number in enumerate(range(group, round_.parts, min(round_.parts, _GROUPS))):
            counts = (spill.get(piece) for pieces in sent for piece in pieces.parts[place])
            total = _total(counts, round_.floor)
            yield spill.put(keep(number, round_.release_part(number, total, drawn.state, noise)))


def _total(counts: Iterable[Any], floor: int | None) -> Any:
    """Add counts up, of which few are held at a time, and as many again as their sum has cells."""
    held: list[Any] = []
    for piece in counts:
        held.append(piece)
        if len(held) > 1 and sum(map(len, held)) > max(_CELLS, 2 * len(held[0])):
            held = [type(piece).merged(held)]
    total = type(held[0]).merged(held)
    return total if floor is None else total.above(floor)


@no_annotations
def _load(kept: Any, spill: Spill) -> Any:
    with plain_errors("Keep"):
        return spill.get(kept)
