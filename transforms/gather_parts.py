"""Gather the pieces that elements are split into by part. Empty parts are gathered, too.

Pieces wait in a file where the whole pipeline runs in this process, and in the runner's shuffle elsewhere.
`transforms.spill` has the file.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from transforms.count_done import count_done
from transforms.plain_errors import plain_errors
from transforms.spill import Spill

GATHERED = "gather rows"
"""The step that counts row groups; see `count_done`."""


@dataclasses.dataclass
class GatherParts(beam.PTransform):
    """Make one element of each part: its number, and its `Pieces`.

    Each element gives one element for every part, so the number of elements does not depend on rows.

    Args:
        split: returns the pieces of an element with the numbers of their parts: of the row group of a
            descriptor, or of a part that was gathered before.
        parts: number of parts, numbered from 0.
        step_name: name of this step in errors; see `plain_errors`.
        counted: the step as which elements are counted; see `count_done`.
    """

    split: Callable[[Any], Iterable[tuple[int, Any]]]
    parts: int
    step_name: str
    counted: str = GATHERED

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take descriptors of `ReadBlocks`, or parts; return the parts."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        split = beam.FlatMap(_split, self.split, self.parts, self.step_name, self.counted, self.spill)
        gathered = elements | "Split" >> split | "Group" >> beam.GroupByKey()
        return gathered | "List" >> beam.Map(_list, self.step_name, self.spill)


@dataclasses.dataclass
class Pieces:
    """The pieces of a part in any order, each read when it comes, as often as they are iterated.

    A step that fails half-way is repeated with the same pieces by some runners.

    Args:
        kept: of each piece, what the spill returned.
        spill: of the pipeline.
    """

    kept: list[Any] | None
    spill: Spill

    def __iter__(self) -> Iterator[Any]:
        if self.kept is None:
            raise RuntimeError("The pieces of a part were let go.")
        return map(self.spill.get, self.kept)

    def clear(self) -> None:
        """Hold the pieces no longer, once the step has ended as it should. Then they cannot be read again."""
        self.kept = None


@no_annotations
def _split(
    element: Any,
    split: Callable[[Any], Iterable[tuple[int, Any]]],
    parts: int,
    step_name: str,
    counted: str,
    spill: Spill,
) -> Iterator[tuple[int, list[Any]]]:
    with plain_errors(step_name):
        pieces: dict[int, list[Any]] = {number: [] for number in range(parts)}
        for number, piece in split(element):
            pieces[number].append(spill.put(piece))
        count_done(counted)
        yield from pieces.items()


@no_annotations
def _list(gathered: tuple[int, Iterable[list[Any]]], step_name: str, spill: Spill) -> tuple[int, Pieces]:
    number, lists = gathered
    with plain_errors(step_name):
        return number, Pieces([piece for pieces in lists for piece in pieces], spill)
