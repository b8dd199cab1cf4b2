"""Bound the contribution of a privacy unit in several questions at once: rows are read once."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.rounds import Block
from transforms.bound_units import (
    SPLIT_VALUES,
    Bounded,
    BoundedReader,
    Bounding,
    bound_shard,
    split_batch,
)
from transforms.gather_parts import GatherParts
from transforms.open_source import Source
from transforms.plain_errors import plain_errors
from transforms.read_blocks import Descriptor, list_row_groups
from transforms.split_units import read_keyed

_LABEL = "Bounding units"

BoundedFor = tuple[int, Bounded]
"""The number of a question, and one shard of its records."""


@dataclass(frozen=True)
class BoundingOfQuestions:
    """How the rows of a unit become its record in each of several questions.

    Each record is what the question's own `Bounding` says: a function of the rows of its unit alone. So all
    rows of one unit together change at most one record of each question.

    Args:
        boundings: one for each question, with one unit, one salt, one preparation of the rows, and at most
            one column that orders rows.
    """

    boundings: tuple[Bounding, ...]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The question of each part, and the number of the part among the shards of that question."""
        return [(number, shard) for number, own in enumerate(self.boundings) for shard in range(own.parts)]


@dataclass(frozen=True)
class BoundedReaderOfQuestions:
    """How shards become the records of several questions; see `transforms.records.RecordsOfQuestions`.

    Args:
        readers: one for each question.
    """

    readers: tuple[BoundedReader, ...]

    def blocks_of(self, element: BoundedFor, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Return the records of a shard, if its question is due."""
        number, bounded = element
        if number in due:
            yield from ((number, block) for block in self.readers[number].blocks(bounded))


@dataclasses.dataclass
class BoundTogether(beam.PTransform):
    """Make the records of all questions: at most one for each unit and question; see `BoundUnits`.

    Args:
        bounding: how the rows of a unit become its records.
    """

    bounding: BoundingOfQuestions

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return one `BoundedFor` for each shard of each question."""
        split = partial(split_together, self.bounding)
        return (
            descriptors
            | "Gather" >> GatherParts(split, len(self.bounding.places), _LABEL)
            | "Bound" >> beam.Map(_bound, self.bounding)
            | "Keep" >> beam.Reshuffle()
        )


def bound_together_in_memory(source: Source, bounding: BoundingOfQuestions) -> list[list[Block]]:
    """Bound the whole source in this process; return the records of each question."""
    gathered: dict[int, list[bytes]] = {part: [] for part in range(len(bounding.places))}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for part, piece in split_together(bounding, descriptor):
                gathered[part].append(piece)
    blocks: list[list[Block]] = [[] for _ in bounding.boundings]
    for part, pieces in gathered.items():
        number, shard = bounding.places[part]
        own = bounding.boundings[number]
        blocks[number] += BoundedReader(own.grid).blocks(bound_shard(own, shard, pieces))
    return blocks


@no_annotations
def _bound(gathered: tuple[int, list[bytes]], bounding: BoundingOfQuestions) -> BoundedFor:
    part, pieces = gathered
    with plain_errors(_LABEL):
        number, shard = bounding.places[part]
        return number, bound_shard(bounding.boundings[number], shard, pieces)


def split_together(bounding: BoundingOfQuestions, descriptor: Descriptor) -> Iterator[tuple[int, bytes]]:
    """Read the row group of `descriptor` once; yield its rows for each question by shard.

    Keys of units are made once for all questions. See `transforms.bound_units.split_points`.

    Raises:
        InputError: the row group cannot be read.
    """
    first = bounding.boundings[0]
    columns = list(dict.fromkeys(name for own in bounding.boundings for name in own.columns))
    order = next((own.order for own in bounding.boundings if own.order is not None), None)
    most = max(1, SPLIT_VALUES // (len(columns) + 1))
    read = read_keyed(descriptor, columns, first.unit, first.salt, most, order, first.preparation)
    for batch, keys, kept in read:
        if kept is not None:
            batch, keys = batch.filter(kept), keys.filter(kept)
        before = 0
        for own in bounding.boundings:
            for shard, piece in split_batch(own, batch, keys):
                yield before + shard, piece
            before += own.parts
