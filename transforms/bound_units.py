"""Bound the contribution of a privacy unit: all of its rows become at most one record."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.typehints.decorators import no_annotations
from numpy.typing import NDArray

from core.domain import Grid
from core.rounds import Block
from transforms.count_outside import outside
from transforms.gather_parts import GatherParts, Pieces
from transforms.heap import BLOCK_VALUES
from transforms.keep import Keep
from transforms.open_source import Source
from transforms.plain_errors import plain_errors
from transforms.point_words import point_words, stored
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_blocks import Descriptor, Reader, check_axes, list_row_groups, to_block
from transforms.records import Records
from transforms.reduce_units import reduce_units
from transforms.row_order import order_keys, order_words
from transforms.sorted_words import sorted_numbers
from transforms.spill import Spill, Spilled, fetched
from transforms.split_units import read_keyed
from transforms.unit_records import NumbersOfRows, kept_by, records_of_numbers
from transforms.unit_rows import ROWS, ShardRows, UnitRows, renumbered, words_of

Bounded = tuple[bytes, bytes, bytes]
"""Of one shard: points axis by axis as integers of `stored`, identities, and counts of `Block.outside`."""

_SHARDS = 64
"""Number of shards for gathering units. It is fixed, since it must not depend on the number of units."""

_SPLIT_VALUES = 1 << 22
"""Values that are split at a time: many, as each shard gets its own piece."""

_LABEL = "Bounding units"


@dataclass(frozen=True)
class Bounding:
    """How the rows of a unit become its record.

    The record of a unit is a function of the multiset of the grid points of its own rows, and with `order` of
    their values in that column. It does not depend on the places of rows, on other units, or on the division
    into files. Rows without a unit are skipped, and so are rows with a null, NaN or infinity in a used
    column. A unit without other rows has no record.

    So if two databases differ in all rows of one unit, their records differ in at most one. Under
    `add_or_remove_one` that is one record more or less, however many rows the unit has. Under `replace_one`
    both databases have the same number of records, which is public, and one unit has another record. Every
    sensitivity of a task with respect to one row therefore holds with respect to one unit. All of this is
    true for every salt, even a known one.

    The record of a unit is one of its rows, or computed from all of them; see
    `transforms.unit_records.kept_by`.

    Units are distinguished by their keys. Integers and similar values are their own keys. Text is replaced by
    128 bits of a keyed hash (AES), so that the cost of a row does not depend on the length of the text.
    `transforms.unit_keys.unit_keys` states the probability and the effect of a collision.

    The identity of a record is a number of its unit: the integer itself, or 64 bits of its key. So a Poisson
    sample contains either all of a unit or nothing, independently of other units. A given unit has the same
    identity as another unit with probability n / 2^64 over the salt. Both are then sampled together, but
    remain two records. For such a unit, sampling does not amplify privacy.

    Args:
        columns: used columns, one per axis.
        grid: the universe that rows are clamped and rounded to.
        unit: column of the privacy unit.
        keep: how the rows of a unit become one record.
        salt: 16 secret bytes.
        shards: number of shards for gathering units, at most 2^15.
        checked: whether to count the units that have a row left out, or a row moved to a bound, by column.
            Rows of nobody are not counted. The keys of units with such rows are in shards of their own. With
            `keep` of `count` no row is moved, and units are counted whose number of rows is.
        order: column that orders the rows of a unit, for `keep` of `last` alone.
        preparation: how rows are prepared. Rows that it does not keep are not counted by checks either.
    """

    columns: tuple[str, ...]
    grid: Grid
    unit: str
    keep: Keep
    salt: bytes = field(repr=False)
    shards: int = _SHARDS
    checked: bool = False
    order: str | None = None
    preparation: Preparation = AS_THEY_ARE

    @property
    def parts(self) -> int:
        """Number of all shards: those of records, then those of checks."""
        return 2 * self.shards if self.checked else self.shards

    @property
    def bounding(self) -> "Bounding":
        """See `UnitBounds.bounding`."""
        return self

    @property
    def key_columns(self) -> tuple[str, ...]:
        """See `UnitBounds.key_columns`."""
        return ()

    @property
    def reader(self) -> "BoundedReader":
        """See `UnitBounds.reader`."""
        return BoundedReader(self.grid)

    def split(self, batch: pa.RecordBatch, units: pa.Array) -> Iterator[tuple[int, bytes]]:
        """See `UnitBounds.split`."""
        return _split(self, batch, units)

    def bound(self, number: int, parts: Iterable[bytes]) -> Bounded:
        """See `UnitBounds.bound`, `bound` and `count_units`."""
        if number < self.shards:
            return bound(self, parts)
        return b"", b"", count_units(self, parts).astype("<i8").tobytes()

    @classmethod
    def of(cls, source: Source, grid: Grid, keep: Keep, salt: bytes, checked: bool = False) -> "Bounding":
        """Return the bounding of `source`.

        Raises:
            InputError: see `transforms.read_blocks.check_axes`.
        """
        check_axes(source, grid)
        return cls(
            source.columns,
            grid,
            str(source.unit),
            keep,
            salt,
            checked=checked,
            order=source.order,
            preparation=source.preparation,
        )


@dataclass(frozen=True)
class BoundedReader:
    """Read `Bounded` in blocks that fit the cache. There is at least one block, even without records.

    Args:
        grid: the universe.
    """

    grid: Grid

    def blocks(self, element: Bounded | Spilled) -> Iterator[Block]:
        """Return the records in their order."""
        bounded: Bounded = fetched(element)
        ids = np.frombuffer(bounded[1], dtype="<u8")
        points = np.frombuffer(bounded[0], dtype=stored(self.grid)).reshape(self.grid.dimension, len(ids)).T
        size = max(1, BLOCK_VALUES // self.grid.dimension)
        counts = np.frombuffer(bounded[2], dtype="<i8").astype(np.int64) if bounded[2] else None
        for start in range(0, max(1, len(ids)), size):
            part = points[start : start + size].astype(np.int64, order="F")
            yield Block(part, ids[start : start + size].astype(np.uint64), None if start else counts)


class UnitBounds(Protocol):
    """How the rows of a unit become its records: one record (`Bounding`), or several.

    Whatever it is, the records of a unit are a function of its own rows.
    """

    @property
    def bounding(self) -> Bounding:
        """Columns, grid, unit, salt, shards and the preparation of rows."""

    @property
    def parts(self) -> int:
        """Number of all shards."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key columns of groups."""

    @property
    def reader(self) -> Records:
        """How a shard's records are read."""

    def split(self, batch: pa.RecordBatch, units: pa.Array) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of a batch by shard as pieces; see `split_points`.

        Args:
            batch: the rows, with the columns that this needs and maybe others.
            units: keys of the units of the rows, shape (n,); null where a row has no unit.
        """

    def bound(self, number: int, parts: Iterable[bytes]) -> Any:
        """Return the records of a shard from its pieces, as `reader` takes them, or its counts of checks."""


@dataclasses.dataclass
class BoundUnits(beam.PTransform):
    """Make the records of all rounds.

    Only quantized values of used columns are gathered, as one piece per shard and part of a row group;
    see `GatherParts`. The records are materialized, so that every reader sees the same records of a unit.
    Where one process runs all steps they wait in a file, because its runner would hold copies of them.

    Args:
        bounds: how the rows of a unit become its records.
    """

    bounds: UnitBounds

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return one element per shard, even for an empty shard."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        return (
            descriptors
            | "Gather" >> GatherParts(partial(split_points, self.bounds), self.bounds.parts, _LABEL)
            | "Bound" >> beam.Map(_bound, self.bounds, self.spill)
            | "Keep" >> beam.Reshuffle()
        )


def bound_in_memory(source: Source, bounds: UnitBounds) -> Iterator[Block]:
    """Bound the whole source in this process: the in-memory version of `BoundUnits`."""
    gathered: dict[int, list[bytes]] = {number: [] for number in range(bounds.parts)}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for number, part in split_points(bounds, descriptor):
                gathered[number].append(part)
    for number, parts in gathered.items():
        yield from bounds.reader.blocks(bounds.bound(number, parts))


@no_annotations
def _bound(gathered: tuple[int, Pieces], bounds: UnitBounds, spill: Spill) -> Spilled:
    with plain_errors(_LABEL):
        bounded = Spilled(spill, spill.put(bounds.bound(*gathered)))
        gathered[1].clear()  # runners hold an element until they have the next one
        return bounded


def split_points(bounds: UnitBounds, descriptor: Descriptor) -> Iterator[tuple[int, bytes]]:
    """Read the row group of `descriptor`; yield its rows by shard as pieces of `ShardRows`.

    Every shard occurs once for each part that is read, with rows or without, because runners count elements.
    The shard of a row is a keyed hash of its unit, so all rows of a unit are in the same shard.

    Raises:
        InputError: the row group cannot be read.
    """
    return (piece for pieces in split_together([bounds], descriptor) for piece in pieces[0])


def split_together(
    bounds: Sequence[UnitBounds], descriptor: Descriptor
) -> Iterator[list[Iterator[tuple[int, bytes]]]]:
    """Read the row group of `descriptor` once; for each part that is read, split its rows by each bound.

    Keys of units are made once for all bounds; see `split_points`.

    Args:
        bounds: with one unit, one salt, one preparation of the rows, and at most one column that orders rows.
        descriptor: the location of the row group.

    Raises:
        InputError: the row group cannot be read.
    """
    single = [own.bounding for own in bounds]
    columns = list(dict.fromkeys(name for own in single for name in own.columns))
    keys = list(dict.fromkeys(name for own in bounds for name in own.key_columns))
    order = next((own.order for own in single if own.order is not None), None)
    most, first = max(1, _SPLIT_VALUES // (len(columns) + 1 + len(keys))), single[0]
    read = read_keyed(descriptor, columns, first.unit, first.salt, most, order, first.preparation, keys)
    for batch, units in read:
        yield [own.split(batch, units) for own in bounds]


def _split(bounding: Bounding, batch: pa.RecordBatch, keys: pa.Array) -> Iterator[tuple[int, bytes]]:
    reader = Reader(bounding.columns, bounding.grid)
    rows, odd = ShardRows(bounding.shards, bounding.salt), ShardRows(bounding.shards, bounding.salt)
    batch, keys = of_someone(batch, keys)
    for start in range(0, len(keys), ROWS):
        some, units = batch.slice(start, ROWS), keys.slice(start, ROWS)
        block = to_block(reader, some, np.arange(len(units), dtype=np.uint64))
        words = point_words(block.points, bounding.grid)
        if bounding.order is not None:
            order = order_words(order_keys(some.column(bounding.order)))
            words.extend(order[block.ids.astype(np.int64)].T)
        rows.add(units if len(block.ids) == len(units) else units.take(pa.array(block.ids)), words)
        if bounding.checked:
            add_outside(odd, bounding, some, units)
    yield from rows.pieces()
    if bounding.checked:
        yield from ((number + bounding.shards, piece) for number, piece in odd.pieces())


def of_someone(batch: pa.RecordBatch, keys: pa.Array) -> tuple[pa.RecordBatch, pa.Array]:
    """Return the rows that have a unit, and its keys."""
    return (batch.filter(keys.is_valid()), keys.drop_null()) if keys.null_count else (batch, keys)


def add_outside(odd: ShardRows, bounding: Bounding, batch: pa.RecordBatch, keys: pa.Array) -> None:
    """Add the units that have a row left out or moved to a bound: a bit for each count of checks."""
    found = outside(batch, bounding.columns, bounding.grid)
    if bounding.keep == "count":
        found[len(bounding.columns) :] = False
    some = np.flatnonzero(found.any(axis=0))
    bits = np.zeros((len(some), 8 * _check_words(bounding)), dtype=np.uint8)
    packed = np.packbits(found[:, some].T, axis=1, bitorder="little")
    bits[:, : packed.shape[1]] = packed
    odd.add(keys.take(pa.array(some)), list(bits.view("<u8").T))


def _check_words(bounding: Bounding) -> int:
    """Return the number of words that hold a bit for each count of checks."""
    return (2 * len(bounding.columns) + 63) // 64


def count_units(bounding: Bounding, parts: Iterable[bytes]) -> NDArray[np.int64]:
    """Return how many units have a row of each kind, shape (2 d,): a unit is counted once for a kind."""
    pieces = (words_of(part) for part in parts if part)
    counted = reduce_units(pieces, _OddUnits(bounding), bounding.salt)
    return sum(counted, np.zeros(2 * len(bounding.columns), dtype=np.int64))


@dataclass(frozen=True)
class _OddUnits:
    """Counts of units that have a row of each kind; see `transforms.reduce_units.Reduction`.

    Args:
        bounding: whose columns have two kinds each.
    """

    bounding: Bounding

    @property
    def words(self) -> int:
        return _check_words(self.bounding)

    @property
    def state_words(self) -> int:
        return self.words

    def whole(self, rows: UnitRows) -> NDArray[np.int64]:
        return self.finished(self.merged(rows))

    @property
    def apart(self) -> None:
        return None

    def state(self, rows: UnitRows, copies: NDArray[np.int64] | None) -> UnitRows:
        return rows

    def merged(self, state: UnitRows) -> list[NDArray[np.uint64]]:
        of_unit, first = renumbered(state)
        order = sorted_numbers(of_unit)
        begins = np.flatnonzero(np.diff(of_unit[order], prepend=-1))
        found = [np.bitwise_or.reduceat(word[order], begins) for word in state.words]
        return state.rows(first, found)

    def finished(self, merged: Sequence[NDArray[np.uint64]]) -> NDArray[np.int64]:
        found = np.stack(merged[len(merged) - self.words :], axis=1)
        bits = np.unpackbits(found.view(np.uint8), axis=1, bitorder="little")
        return bits[:, : 2 * len(self.bounding.columns)].sum(axis=0, dtype=np.int64)


def bound(bounding: Bounding, parts: Iterable[bytes]) -> Bounded:
    """Return the records of one shard, unit by unit.

    Rows are grouped by the key of their unit; see `unit_keys` for collisions.

    Args:
        bounding: how the rows of a unit become its record.
        parts: pieces of `split_points`, in any order.
    """
    grid, ordered, checks = bounding.grid, bounding.order is not None, b""
    numbers = bounding.keep == "count" and bounding.checked
    reduction: Any = (
        NumbersOfRows(grid, ordered, "count")
        if numbers
        else kept_by(bounding.keep, grid, bounding.salt, ordered)
    )
    pieces = (words_of(part) for part in parts if part)
    found = list(reduce_units(pieces, reduction, bounding.salt))
    if not found:
        return b"", b"", b""
    kept, ids = (np.concatenate(each) for each in zip(*found, strict=True))
    if numbers:
        checks = np.array([0, np.count_nonzero(grid.outside(kept, 0))], dtype="<i8").tobytes()
        kept = records_of_numbers(kept, grid)
    return kept.tobytes(order="F"), ids.tobytes(), checks
