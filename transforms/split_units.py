"""Split the rows into disjoint random subsamples, of each group. A unit is in one subsample of a group."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import siphash
from transforms.group_keys import GroupKeys, without_long
from transforms.joined_batches import decoded, joined_batches
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_blocks import Descriptor, in_this_run, row_ids
from transforms.read_prepared import read_prepared
from transforms.unit_keys import unit_ids, unit_keys

Ints = NDArray[np.int64]

_SUBSAMPLES = 0x626C6F636B73
"""Tweak of the hash that chooses subsamples. No sampling of records uses it."""

_ROWS = 1 << 18
"""Rows that are split at a time: many, because each of up to 256 parts gets a stream of its own."""

_SHARDS = 256
"""Most parts for gathering subsamples. The number must not depend on which subsamples have rows."""


@dataclass(frozen=True)
class Splitting:
    """How rows become subsamples.

    Without a unit, a row is identified by its position, and removing a row shifts the rows after it. The
    claim that one row affects one subsample is then about their distribution over the secret salt. With a
    unit, the claim is true for every salt.

    Args:
        columns: columns that the function receives, of any numeric type and with nulls.
        unit: column of the privacy unit; None where each row is a unit of its own.
        subsamples: number of subsamples, of each group.
        salt: 16 secret bytes that choose the subsample of each unit.
        preparation: how rows are prepared.
        keys: how rows become members of groups, with public keys; None without groups.
        groups: most groups of a unit.
        mixed: columns of numbers that have other types in other files, and the type that they get.
    """

    columns: tuple[str, ...]
    unit: str | None
    subsamples: int
    salt: bytes = field(repr=False)
    preparation: Preparation = AS_THEY_ARE
    keys: GroupKeys | None = None
    groups: int = 1
    mixed: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def total(self) -> int:
        """Number of the subsamples of all groups."""
        return self.subsamples * (1 if self.keys is None else len(self.keys.labels or ()))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key columns of groups."""
        return () if self.keys is None else self.keys.columns

    @property
    def chooses_groups(self) -> bool:
        """Whether the rows of a unit must meet first, since it keeps some of its groups."""
        return self.keys is not None and self.unit is not None

    @property
    def shards(self) -> int:
        """Number of parts in which subsamples are gathered; subsample s is in part s mod shards."""
        return min(self.total, _SHARDS)

    def numbers(self, part: int) -> range:
        """Return the subsamples of a part."""
        return range(part, self.total, self.shards)


@dataclass(frozen=True, order=True)
class Shard:
    """Rows of the subsamples of one part that were split together. Sorting shards puts rows in one order.

    Args:
        file: number of the file.
        first_row: orders what is split of one file. It is the index of the first row, or less.
        counts: number of rows of each subsample of the part.
        rows: Arrow IPC stream of the rows, subsample by subsample; empty without rows.
    """

    file: int
    first_row: int
    counts: tuple[int, ...] = field(repr=False)
    rows: bytes = field(repr=False)


def split_rows(splitting: Splitting, descriptor: Descriptor) -> Iterator[tuple[int, Shard]]:
    """Read the row group of `descriptor`; yield its rows by the part of their subsample.

    Every part occurs once for every `_ROWS` rows, with rows or without. The subsample of a row is a keyed
    hash of its unit, or of the identity of the row. So it is the same for all rows of a unit, and does not
    depend on the division of files into row groups. Rows whose unit is null, and rows that the preparation
    does not keep, are skipped.

    Raises:
        InputError: the row group cannot be read.
    """
    for batch, ids, groups, row in read_split(splitting, descriptor):
        yield from split_batch(splitting, batch, ids, groups, descriptor.file.number, row)


def read_split(
    splitting: Splitting, descriptor: Descriptor
) -> Iterator[tuple[pa.RecordBatch, pa.Array, Ints, int]]:
    """Read the rows that are split, up to `_ROWS` at a time.

    Returns:
        Of each batch the rows; keys of their units, or identities of the rows; their groups, of which -1 is
        none; and a number that orders what is split of one file.

    Raises:
        InputError: the row group cannot be read.
    """
    row, columns = descriptor.first_row, splitting.columns
    preparation, keys = splitting.preparation, splitting.key_columns
    read = read_keyed(descriptor, columns, splitting.unit, splitting.salt, _ROWS, None, preparation, keys)
    for batch, owners in read:
        held = pc.is_valid(owners)
        own = batch.filter(held)
        yield own, owners.filter(held), _groups(splitting, own), row
        row += batch.num_rows


def _groups(splitting: Splitting, batch: pa.RecordBatch) -> Ints:
    if splitting.keys is None:
        return np.zeros(batch.num_rows, dtype=np.int64)
    return splitting.keys.read(batch)[0]


def split_batch(
    splitting: Splitting, batch: pa.RecordBatch, owners: pa.Array, groups: Ints, file: int, row: int
) -> Iterator[tuple[int, Shard]]:
    """Yield rows by the part of their subsample.

    Args:
        splitting: how rows become subsamples.
        batch: the rows.
        owners: keys of their units, or identities of the rows, shape (n,).
        groups: their groups, -1 for none, shape (n,).
        file: number of the file.
        row: orders what is split of one file.
    """
    subsample = (
        siphash(unit_ids(owners), splitting.salt, _SUBSAMPLES) % np.uint64(splitting.subsamples)
    ).astype(np.int64)
    kept = np.flatnonzero(groups >= 0)
    subsample = (subsample + groups * splitting.subsamples)[kept]
    part, place = subsample % splitting.shards, subsample // splitting.shards
    most = len(splitting.numbers(0))
    cell = part * most + place
    order = np.argsort(cell, kind="stable")
    counts = np.bincount(cell, minlength=splitting.shards * most).reshape(splitting.shards, most)
    rows = decoded(seen(splitting, batch).take(pa.array(kept[order])))
    start = 0
    for number, held in enumerate(counts.tolist()):
        size = sum(held)
        yield number, Shard(file, row, tuple(held), stream(rows.slice(start, size)) if size else b"")
        start += size


def seen(splitting: Splitting, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns that the function sees, each of one type for all files."""
    own = batch.select(list(splitting.columns))
    for name, kind in splitting.mixed:
        place = own.schema.get_field_index(name)
        own = own.set_column(place, name, pc.cast(own.column(place), kind, safe=False))
    return own


def gather(splitting: Splitting, part: int, shards: Iterable[Shard]) -> Iterator[tuple[int, bytes]]:
    """Yield every subsample of a part with its rows as an Arrow stream, which is empty without rows.

    The stream consists of one batch. So its bytes do not depend on the division of files into row groups,
    which depends on rows of other units.
    """
    pieces: dict[int, list[pa.RecordBatch]] = {number: [] for number in splitting.numbers(part)}
    for shard in sorted(shards):
        if shard.rows:
            rows, start = pa.ipc.open_stream(shard.rows).read_next_batch(), 0
            for number, count in zip(pieces, shard.counts, strict=False):
                if count:
                    pieces[number].append(rows.slice(start, count))
                start += count
    for number in list(pieces):
        own = pieces.pop(number)
        yield number, _join(own) if own else b""


def _join(pieces: list[pa.RecordBatch]) -> bytes:
    # Concatenation copies even a single slice. Arrow writes a slice with some of the next rows, as padding.
    return stream(pa.concat_batches(pieces))


def stream(batch: pa.RecordBatch) -> bytes:
    """Return rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def read_keyed(
    descriptor: Descriptor,
    columns: Sequence[str],
    unit: str | None,
    salt: bytes,
    most: int,
    order: str | None = None,
    preparation: Preparation = AS_THEY_ARE,
    groups: Sequence[str] = (),
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Read a row group `most` rows at a time, and replace units by their keys.

    The texts of units, and long texts of groups, are in memory for one batch of `read_batches` only, and keys
    for `most` rows.

    Args:
        descriptor: the location of the row group.
        columns: used columns.
        unit: column of the privacy unit; None where each row has its identity instead.
        salt: 16 secret bytes.
        most: rows that are yielded at a time.
        order: optional column that orders the rows of a unit; it is yielded with the used columns.
        preparation: how rows are prepared.
        groups: key columns of groups, which are yielded, too; see `transforms.group_keys.without_long`.

    Returns:
        Columns and keys of those of `most` rows that the preparation keeps; the last ones are of fewer rows.
        So their number does not depend on which rows are kept.

    Raises:
        InputError: the row group cannot be read.
    """
    if descriptor.row_group is None:
        return
    pieces: list[pa.RecordBatch] = []
    names = list(dict.fromkeys((*columns, *filter(None, (order,)), *groups)))
    file, row_group, row = descriptor.file, descriptor.row_group, descriptor.first_row
    for batch, kept in read_prepared(preparation, file, row_group, columns, most, unit, order, groups):
        read_ = {name: batch.column(name) for name in names}
        arrays = [without_long(each) if name in groups else each for name, each in read_.items()]
        if unit is None:
            arrays.append(pa.array(in_this_run(file, row_ids(file, row, len(batch)))))
        else:
            arrays.append(unit_keys(batch.column(unit), salt))
        row += len(batch)
        if kept is not None:
            arrays.append(kept)
        pieces.append(pa.RecordBatch.from_arrays(arrays, names=[*names, "", ""][: len(arrays)]))
        if sum(map(len, pieces)) >= most:
            joined = joined_batches(pieces)
            yield _apart(joined.slice(0, most), len(names))
            pieces = [joined.slice(most)] if len(joined) > most else []
    if pieces:
        yield _apart(joined_batches(pieces), len(names))


def _apart(keyed: pa.RecordBatch, columns: int) -> tuple[pa.RecordBatch, pa.Array]:
    """Return the columns and the keys, after which may stand which rows to keep."""
    if keyed.num_columns > columns + 1:
        keyed = keyed.filter(keyed.column(columns + 1))
    return keyed.select(list(range(columns))), keyed.column(columns)
