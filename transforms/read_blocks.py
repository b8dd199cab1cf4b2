"""Read row groups as blocks of grid points. Only descriptors pass through the runner, never rows."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.typehints.decorators import no_annotations
from numpy.typing import NDArray

from core.domain import Grid
from core.rounds import Block
from core.sampling import renamed
from transforms.count_outside import on_axis, outside
from transforms.count_records import copies
from transforms.group_keys import GroupKeys
from transforms.heap import BLOCK_VALUES
from transforms.list_files import File, Held, InputError
from transforms.open_source import Source
from transforms.plain_errors import plain_errors
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_batches import first_rows
from transforms.read_prepared import read_prepared
from transforms.spread import KEYED, Keyed, Spread

_KEY = 3
"""Coordinates that take about as much memory as one key: its text, and what sorts it."""


@dataclass(frozen=True)
class Descriptor:
    """The location of a part of the database.

    Args:
        file: the file.
        row_group: number of the row group, or of another piece; None for a file without any.
        first_row: index in the file of the first row of the piece.
    """

    file: File
    row_group: int | None
    first_row: int


def check_axes(source: Source, grid: Grid) -> None:
    """Check that columns can be read as axes.

    Raises:
        InputError: the grid does not have one axis per column, or an axis of a float64 column has bounds that
            float64 cannot represent.
    """
    if len(source.columns) != grid.columns:
        raise InputError(
            f"input.columns has {len(source.columns)} columns and domain {grid.columns} axes: "
            "give one axis per column."
        )
    for axis, column in enumerate(source.columns):
        if grid.wide and column in source.inexact and not grid.serves_floats(axis):
            raise InputError(
                f"input.columns: {column} does not contain integers, and the bounds {grid.lower[axis]} "
                f"and {grid.upper[axis]} of its axis are not both within 2^53, where float64 is exact."
            )


@dataclass(frozen=True)
class Reader:
    """How row groups become records.

    Args:
        columns: used columns, one per axis; no other column is read.
        grid: the universe that rows are clamped and rounded to.
        checked: whether blocks also count rows that are left out or moved to a bound, of those that the
            preparation keeps.
        preparation: how rows are prepared.
        groups: how rows become members of groups; rows without a group are left out. None without groups.
        apart: whether the counts of checked blocks are by group, of public keys: shape (groups, 2 d).
        count: column of how many records a row stands for; None where each row is one.
    """

    columns: tuple[str, ...]
    grid: Grid
    checked: bool = False
    preparation: Preparation = AS_THEY_ARE
    groups: GroupKeys | None = None
    apart: bool = False
    count: str | None = None

    @classmethod
    def of(cls, source: Source, grid: Grid, checked: bool = False) -> "Reader":
        """Return the reader of `source`.

        Raises:
            InputError: see `check_axes`, or the source has a privacy unit, whose rows must be bounded first.
        """
        check_axes(source, grid)
        if source.unit is not None:
            raise InputError(
                f"input.unit is {source.unit}: its rows must be bounded to one record before they are read."
            )
        made = (source.preparation, source.groups)
        return cls(source.columns, grid, checked, *made, count=source.count)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that are read beside the axes: keys of groups, and the count."""
        keys = () if self.groups is None else self.groups.columns
        return keys if self.count is None else (*keys, self.count)

    def blocks(self, element: Descriptor) -> Iterator[Block]:
        """See `read_blocks`."""
        return read_blocks(self, element)


@dataclass(frozen=True)
class ReaderOfQuestions:
    """How row groups become the records of several questions; see `transforms.records.RecordsOfQuestions`.

    Args:
        readers: one for each question.
    """

    readers: tuple[Reader, ...]

    def blocks_of(self, element: Descriptor, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """See `read_together`."""
        return read_together({number: self.readers[number] for number in due}, element)


@dataclasses.dataclass
class ReadBlocks(beam.PTransform):
    """Make the PCollection of descriptors, from which every round reads the rows again.

    Workers list the row groups, so the graph of the job contains no number of rows.
    """

    source: Source

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Return one `Descriptor` per row group, at least one per file, spread over the workers."""
        return (
            pipeline
            | "Start" >> beam.Impulse()
            | "RowGroups" >> beam.FlatMap(_numbered, self.source.files).with_output_types(KEYED)
            | "Spread" >> Spread()
            | "Descriptor" >> beam.FlatMap(_descriptor).with_output_types(Descriptor)
        )


@no_annotations
def _numbered(_: bytes, files: Sequence[File]) -> Iterator[Keyed]:
    """Return the descriptors of all files, each with its number."""
    return enumerate(chain.from_iterable(map(list_row_groups, files)))


@no_annotations
def _descriptor(numbered: Keyed) -> list[Descriptor]:
    return [numbered[1]]


def list_row_groups(file: File) -> list[Descriptor]:
    """Return the descriptors of a file's row groups, at least one.

    Raises:
        InputError: the file's footer cannot be read.
    """
    with plain_errors("Reading"):
        starts = first_rows(file)
    return [Descriptor(file, i, start) for i, start in enumerate(starts)] or [Descriptor(file, None, 0)]


def read_blocks(reader: Reader, descriptor: Descriptor) -> Iterator[Block]:
    """Read the row group of `descriptor` in blocks that fit the cache. There is at least one block.

    Rows that the preparation does not keep, and rows with a null, NaN or infinity in a used column, are
    skipped. The identity of a record consists of the number of its file and the index of its row in the file,
    where skipped rows count. So it does not depend on the division of the file into row groups. With a count
    it also has the number of the copy, so that each record of a row is sampled by itself.

    Raises:
        InputError: the row group cannot be read.
    """
    return (block for _, block in read_together({0: reader}, descriptor))


def read_together(readers: Mapping[int, Reader], descriptor: Descriptor) -> Iterator[tuple[int, Block]]:
    """Read the row group of `descriptor` once, as the records of several questions; see `read_blocks`.

    Questions on the same columns and the same grid share their blocks.

    Args:
        readers: how rows become records, by the number of the question.
        descriptor: the location of the row group.

    Returns:
        Numbers of questions with blocks of their records; at least one block for each.

    Raises:
        InputError: the row group cannot be read.
    """
    row = descriptor.first_row
    if descriptor.row_group is not None:
        alike: dict[Reader, list[int]] = {}
        for number, reader in readers.items():
            alike.setdefault(reader, []).append(number)
        columns = list(dict.fromkeys(name for reader in alike for name in reader.columns))
        most = max(1, BLOCK_VALUES // max(len(reader.columns) + _KEY * len(reader.keys) for reader in alike))
        preparation = next(iter(alike)).preparation
        keys = list(dict.fromkeys(key for reader in alike for key in reader.keys))
        read = read_prepared(preparation, descriptor.file, descriptor.row_group, columns, most, keys=keys)
        for batch, kept in read:
            ids, rows = row_ids(descriptor.file, row, batch.num_rows), batch.num_rows
            if kept is not None:
                batch, ids = batch.filter(kept), pc.filter(pa.array(ids), kept).to_numpy()
            for some, their_ids in _records(next(iter(alike)), batch, ids, most):
                for reader, numbers in alike.items():
                    block = _block_of(reader, some, in_this_run(descriptor.file, their_ids))
                    yield from ((number, block) for number in numbers)
            row += rows
        pa.default_memory_pool().release_unused()  # which Arrow keeps for each thread
    if row == descriptor.first_row:
        for number, reader in readers.items():
            block = Block(np.empty((0, reader.grid.dimension), np.int64), np.empty(0, np.uint64))
            if reader.groups is not None:
                block = dataclasses.replace(block, groups=np.empty(0, np.int64), labels=np.empty(0, "S1"))
            yield number, block


def _records(
    reader: Reader, batch: pa.RecordBatch, ids: NDArray[np.uint64], most: int
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.uint64]]]:
    """Return the batch, or with a count its records in batches."""
    return iter([(batch, ids)]) if reader.count is None else copies(batch, ids, reader.count, most)


def _block_of(reader: Reader, batch: pa.RecordBatch, ids: NDArray[np.uint64]) -> Block:
    """Return the records of `batch`, with the counts of its checks."""
    block = to_block(reader, batch, ids)
    if not reader.checked:
        return block
    found = outside(batch, reader.columns, reader.grid)
    if reader.apart and reader.groups is not None:
        return dataclasses.replace(block, outside=_by_group(reader.groups, batch, found))
    return dataclasses.replace(block, outside=np.count_nonzero(found, axis=1).astype(np.int64))


def _by_group(keys: GroupKeys, batch: pa.RecordBatch, found: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many rows of each group were found, for each kind.

    Args:
        keys: the groups, by public keys.
        batch: n rows.
        found: shape (kinds, n).

    Returns:
        Shape (groups, kinds).
    """
    counts = np.zeros((len(keys.labels or ()), len(found)), dtype=np.int64)
    some = np.flatnonzero(found.any(axis=0))
    groups, _ = keys.read(batch.take(pa.array(some)))
    for kind, rows in enumerate(found[:, some]):
        np.add.at(counts[:, kind], groups[rows & (groups >= 0)], 1)
    return counts


def read_in_memory(source: Source, grid: Grid) -> Iterator[Block]:
    """Read the whole source in this process: the in-memory version of `ReadBlocks`."""
    reader = Reader.of(source, grid)
    for file in source.files:
        for descriptor in list_row_groups(file):
            yield from read_blocks(reader, descriptor)


def to_block(reader: Reader, batch: pa.RecordBatch, ids: NDArray[np.uint64]) -> Block:
    """Return the records of `batch`: the rows without null, NaN or infinity, on the grid, with their ids.

    With groups, only rows that have one are records.
    """
    if reader.groups is not None:
        return _grouped_block(reader, reader.groups, batch, ids)
    if reader.grid.wide or reader.grid.times is not None:
        return _exact_block(reader, batch, ids)
    # Column-major order: numpy then iterates along the rows, and the points keep this order.
    values = np.empty((batch.num_rows, len(reader.columns)), order="F")
    finite = np.ones(batch.num_rows, dtype=np.bool_)
    for axis, column in enumerate(reader.columns):
        floats = pc.cast(batch.column(column), pa.float64(), safe=False)
        values[:, axis] = floats.to_numpy(zero_copy_only=False)  # a null becomes NaN
        finite &= np.isfinite(values[:, axis])
    if not finite.all():
        values, ids = np.asfortranarray(values[finite]), ids[finite]
    return Block(reader.grid.quantize(values), ids)


def _grouped_block(reader: Reader, keys: GroupKeys, batch: pa.RecordBatch, ids: NDArray[np.uint64]) -> Block:
    groups, labels = keys.read(batch)
    rows = np.arange(batch.num_rows, dtype=np.uint64)
    if (groups < 0).any():
        rows = rows[groups >= 0]
        batch = batch.take(pa.array(rows))
    block = to_block(dataclasses.replace(reader, groups=None), batch, rows)
    kept = block.ids
    return dataclasses.replace(block, ids=ids[kept], groups=groups[kept], labels=labels)


def _exact_block(reader: Reader, batch: pa.RecordBatch, ids: NDArray[np.uint64]) -> Block:
    """Make a block without converting integers or times to float64, which would round them."""
    used = [on_axis(batch.column(name), reader.grid, axis) for axis, name in enumerate(reader.columns)]
    finite = np.logical_and.reduce([held for _, held in used])
    points = np.empty((np.count_nonzero(finite), len(used)), np.int64, order="F")
    for axis, (values, _) in enumerate(used):
        points[:, axis] = reader.grid.quantize_axis(values[finite], axis)
    return Block(points, ids[finite])


def row_ids(file: File, first: int, rows: int) -> NDArray[np.uint64]:
    """Return the identities of `rows` rows from `first` on, unique for up to 2^24 files of 2^40 rows.

    They contain the number of the file and not a hash of its name. Otherwise someone who names files could
    find names whose rows collide, and records with the same identity are sampled together.
    """
    return np.arange(first, first + rows, dtype=np.uint64) + np.uint64(file.number << 40)


def in_this_run(file: File, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the identities of records of a file, by which they are sampled; see `core.sampling.renamed`."""
    return renamed(ids, file.names) if isinstance(file, Held) else ids
