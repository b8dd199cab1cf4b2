"""Gather what descriptors are split into, by the number of a part; every part is there, also an empty one."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from transforms.plain_errors import plain_errors
from transforms.read_blocks import Descriptor


@dataclasses.dataclass
class GatherParts(beam.PTransform):
    """Make one element of each part, (its number, the list of its pieces in any order).

    Each descriptor gives one element for every part, however its rows fall, so that how many elements there
    are says nothing of the rows.

    Args:
        split: reads what a descriptor names; returns pieces with the numbers of their parts.
        parts: how many parts there are, numbered from 0.
        step: what this is called where it fails; see `plain_errors`.
    """

    split: Callable[[Descriptor], Iterable[tuple[int, Any]]]
    parts: int
    step: str

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return the parts."""
        split = beam.FlatMap(_split, self.split, self.parts, self.step)
        return descriptors | "Split" >> split | "Group" >> beam.GroupByKey() | "List" >> beam.Map(_list)


@no_annotations
def _split(
    descriptor: Descriptor,
    split: Callable[[Descriptor], Iterable[tuple[int, Any]]],
    parts: int,
    step: str,
) -> Iterator[tuple[int, list[Any]]]:
    with plain_errors(step):
        pieces: dict[int, list[Any]] = {number: [] for number in range(parts)}
        for number, piece in split(descriptor):
            pieces[number].append(piece)
        yield from pieces.items()


@no_annotations
def _list(gathered: tuple[int, Iterable[list[Any]]]) -> tuple[int, list[Any]]:
    number, lists = gathered
    return number, [piece for pieces in lists for piece in pieces]
