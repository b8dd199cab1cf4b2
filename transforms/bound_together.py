"""Bound the contribution of a privacy unit in several questions at once: rows are read once."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.decorators import no_annotations

from core.rounds import Block
from transforms import contributions
from transforms.bound_units import (
    SPLIT_VALUES,
    Bounded,
    BoundedReader,
    Bounding,
    bound_shard,
    split_batch,
)
from transforms.contributions import Contributed, ContributedReader, Contributing, split_contributions
from transforms.gather_parts import GatherParts
from transforms.open_source import Source
from transforms.plain_errors import plain_errors
from transforms.read_blocks import Descriptor, list_row_groups
from transforms.split_units import read_keyed

_LABEL = "Bounding units"

BoundedFor = tuple[int, Bounded | Contributed]
"""The number of a question, and one shard of its records."""


@dataclass(frozen=True)
class BoundingOfQuestions:
    """How the rows of a unit become its records in each of several questions.

    The records are what the question's own `Bounding` or `Contributing` says: a function of the rows of their
    unit alone. So all rows of one unit together change at most one record of a question with `Bounding`, and
    of one with `Contributing` at most as many records, in as many groups, as its bounds allow. The one salt
    of all questions does no harm, because both claims are true for every salt.

    Args:
        boundings: one for each question, with one unit, one salt, one preparation of the rows, and at most
            one column that orders rows.
    """

    boundings: tuple[Bounding | Contributing, ...]

    @property
    def readers(self) -> "BoundedReaderOfQuestions":
        """How shards become the records of the questions."""
        return BoundedReaderOfQuestions(tuple(map(_reader_of, self.boundings)))

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

    readers: tuple[BoundedReader | ContributedReader, ...]

    def blocks_of(self, element: BoundedFor, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Return the records of a shard, if its question is due."""
        number, bounded = element
        if number in due:
            reader: Any = self.readers[number]
            yield from ((number, block) for block in reader.blocks(bounded))


def _reader_of(own: Bounding | Contributing) -> BoundedReader | ContributedReader:
    if isinstance(own, Contributing):
        return ContributedReader(own.bounding.grid.dimension, own.keys)
    return BoundedReader(own.grid)


@dataclasses.dataclass
class BoundTogether(beam.PTransform):
    """Make the records of all questions; see `BoundUnits` and `BoundContributions`.

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
    every = range(len(blocks))
    for part, pieces in gathered.items():
        for number, block in bounding.readers.blocks_of(_bound_part(bounding, part, pieces), every):
            blocks[number].append(block)
    return blocks


@no_annotations
def _bound(gathered: tuple[int, list[bytes]], bounding: BoundingOfQuestions) -> BoundedFor:
    with plain_errors(_LABEL):
        return _bound_part(bounding, *gathered)


def _bound_part(bounding: BoundingOfQuestions, part: int, pieces: Sequence[bytes]) -> BoundedFor:
    number, shard = bounding.places[part]
    own = bounding.boundings[number]
    if isinstance(own, Contributing):
        return number, contributions.bound_shard(own, shard, pieces)
    return number, bound_shard(own, shard, pieces)


def split_together(bounding: BoundingOfQuestions, descriptor: Descriptor) -> Iterator[tuple[int, bytes]]:
    """Read the row group of `descriptor` once; yield its rows for each question by shard.

    Keys of units are made once for all questions. See `transforms.bound_units.split_points`.

    Raises:
        InputError: the row group cannot be read.
    """
    single = [own.bounding if isinstance(own, Contributing) else own for own in bounding.boundings]
    groups = [own.key_columns for own in bounding.boundings if isinstance(own, Contributing)]
    first = single[0]
    columns = list(dict.fromkeys(name for own in single for name in own.columns))
    keys = list(dict.fromkeys(name for names in groups for name in names))
    order = next((own.order for own in single if own.order is not None), None)
    most = max(1, SPLIT_VALUES // (len(columns) + 1 + len(keys)))
    read = read_keyed(descriptor, columns, first.unit, first.salt, most, order, first.preparation, keys)
    for batch, units, kept in read:
        if kept is not None:
            batch, units = batch.filter(kept), units.filter(kept)
        before = 0
        for own in bounding.boundings:
            for shard, piece in _split_one(own, batch, units):
                yield before + shard, piece
            before += own.parts


def _split_one(
    own: Bounding | Contributing, batch: pa.RecordBatch, units: pa.Array
) -> Iterator[tuple[int, bytes]]:
    if isinstance(own, Contributing):
        return split_contributions(own, batch, units)
    return split_batch(own, batch, units)
