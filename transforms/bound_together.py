"""Bound the contribution of a privacy unit in several questions at once: rows are read once."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.rounds import Block
from transforms.bound_units import UnitBounds, split_together
from transforms.gather_parts import GatherParts, Pieces
from transforms.open_source import Source
from transforms.plain_errors import plain_errors
from transforms.read_blocks import Descriptor, list_row_groups
from transforms.records import Records
from transforms.spill import Spill, Spilled

_LABEL = "Bounding units"

BoundedFor = tuple[int, Any]
"""The number of a question, and one shard of its records as the question's `UnitBounds.reader` takes it."""


@dataclass(frozen=True)
class BoundingOfQuestions:
    """How the rows of a unit become its records in each of several questions.

    The records are what the question's own `UnitBounds` says: a function of the rows of their unit alone. So
    all rows of one unit together change at most one record of a question with `Bounding`, and of one with
    `Contributing` at most as many records, in as many groups, as its bounds allow. The one salt of all
    questions does no harm, because both claims are true for every salt.

    Args:
        bounds: one for each question; see `split_together`.
    """

    bounds: tuple[UnitBounds, ...]

    @property
    def readers(self) -> "BoundedReaderOfQuestions":
        """How shards become the records of the questions."""
        return BoundedReaderOfQuestions(tuple(own.reader for own in self.bounds))

    @property
    def places(self) -> list[tuple[int, int]]:
        """The question of each part, and the number of the part among the shards of that question."""
        return [(number, shard) for number, own in enumerate(self.bounds) for shard in range(own.parts)]


@dataclass(frozen=True)
class BoundedReaderOfQuestions:
    """How shards become the records of several questions; see `transforms.records.RecordsOfQuestions`.

    Args:
        readers: one for each question.
    """

    readers: tuple[Records, ...]

    def blocks_of(self, element: BoundedFor, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Return the records of a shard, if its question is due."""
        number, bounded = element
        if number in due:
            yield from ((number, block) for block in self.readers[number].blocks(bounded))


@dataclasses.dataclass
class BoundTogether(beam.PTransform):
    """Make the records of all questions; see `BoundUnits`.

    Args:
        bounding: how the rows of a unit become its records.
    """

    bounding: BoundingOfQuestions

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return one `BoundedFor` for each shard of each question."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        split = partial(_split, self.bounding)
        return (
            descriptors
            | "Gather" >> GatherParts(split, len(self.bounding.places), _LABEL)
            | "Bound" >> beam.Map(_bound, self.bounding, self.spill)
            | "Keep" >> beam.Reshuffle()
        )


def bound_together_in_memory(source: Source, bounding: BoundingOfQuestions) -> list[list[Block]]:
    """Bound the whole source in this process; return the records of each question."""
    gathered: dict[int, list[bytes]] = {part: [] for part in range(len(bounding.places))}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for part, piece in _split(bounding, descriptor):
                gathered[part].append(piece)
    blocks: list[list[Block]] = [[] for _ in bounding.bounds]
    every = range(len(blocks))
    for part, pieces in gathered.items():
        for number, block in bounding.readers.blocks_of(_bound_part(bounding, part, pieces), every):
            blocks[number].append(block)
    return blocks


@no_annotations
def _bound(gathered: tuple[int, Pieces], bounding: BoundingOfQuestions, spill: Spill) -> BoundedFor:
    with plain_errors(_LABEL):
        number, bounded = _bound_part(bounding, *gathered)
        gathered[1].clear()  # runners hold an element until they have the next one
        return number, Spilled(spill, spill.put(bounded))


def _bound_part(bounding: BoundingOfQuestions, part: int, pieces: Iterable[bytes]) -> BoundedFor:
    number, shard = bounding.places[part]
    return number, bounding.bounds[number].bound(shard, pieces)


def _split(bounding: BoundingOfQuestions, descriptor: Descriptor) -> Iterator[tuple[int, bytes]]:
    """Read the row group of `descriptor` once; yield its rows by the part that they belong to."""
    for split in split_together(bounding.bounds, descriptor):
        before = 0
        for own, pieces in zip(bounding.bounds, split, strict=True):
            yield from ((before + shard, piece) for shard, piece in pieces)
            before += own.parts
