"""Split the rows into disjoint random blocks, all rows of a unit into one: columnar, as Arrow streams."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.sampling import siphash
from transforms.list_files import File
from transforms.read_batches import read_batches
from transforms.read_blocks import Descriptor, row_ids
from transforms.unit_keys import unit_ids, unit_keys

_BLOCKS = 0x626C6F636B73
"""Tweak of the hash that chooses blocks, which no sampling of records uses."""

_ROWS = 1 << 20
"""Rows split at a time: many, since each part of each block is a stream of its own."""

_SHARDS = 256
"""Parts in which blocks are gathered. Fixed, as nothing may depend on which blocks have rows."""


@dataclass(frozen=True)
class Splitting:
    """How rows become blocks.

    Without a unit a row is known by where it stands, so that one row less moves those after it on: that one
    row touches one block then holds of the blocks' distribution under a secret salt, not for each salt.

    Args:
        columns: those that the function is to see; of any numeric kind, and with their nulls.
        unit: column that says whose row it is; None where every row is one person's.
        blocks: number of blocks.
        salt: 16 secret bytes that choose the block of each unit.
    """

    columns: tuple[str, ...]
    unit: str | None
    blocks: int
    salt: bytes = field(repr=False)

    @property
    def shards(self) -> int:
        """Number of parts in which blocks are gathered; block b is in part b mod shards."""
        return min(self.blocks, _SHARDS)


@dataclass(frozen=True, order=True)
class Shard:
    """Rows from one place of the blocks of one part; in order of these places a block's rows have one order.

    Args:
        file: name of the file.
        first_row: index in the file of the first row that was split together with these.
        rows: an Arrow IPC stream for each of the blocks that have rows here, by number.
    """

    file: str
    first_row: int
    rows: tuple[tuple[int, bytes], ...] = field(repr=False)


def split_rows(splitting: Splitting, descriptor: Descriptor) -> Iterator[tuple[int, Shard]]:
    """Read what `descriptor` names, and return its rows by the part that their block is in.

    Each part is there once for every `_ROWS` rows, however they fall. The block of a row is a keyed hash of
    its unit, or of the row's identity: the same however files are cut into row groups, and the same for all
    rows of a unit. A row whose unit is null is no record.

    Raises:
        InputError: the row group cannot be read.
    """
    if descriptor.row_group is None:
        return
    row, file = descriptor.first_row, descriptor.file
    batches: Iterator[tuple[pa.RecordBatch, pa.Array | None]]
    if splitting.unit is None:
        read = read_batches(file, descriptor.row_group, splitting.columns, _ROWS)
        batches = ((batch, None) for batch in read)
    else:
        batches = read_keyed(descriptor, splitting.columns, splitting.unit, splitting.salt, _ROWS)
    for batch, keys in batches:
        yield from _split(splitting, batch, keys, file, row)
        row += batch.num_rows


def _split(
    splitting: Splitting, batch: pa.RecordBatch, keys: pa.Array | None, file: File, row: int
) -> Iterator[tuple[int, Shard]]:
    if keys is None:
        ids = row_ids(file, row, batch.num_rows)
    else:
        valid = pc.is_valid(keys)
        batch, ids = batch.filter(valid), unit_ids(keys.filter(valid))
    block = (siphash(ids, splitting.salt, _BLOCKS) % np.uint64(splitting.blocks)).astype(np.int64)
    order = np.argsort(block, kind="stable")
    ends = np.cumsum(np.bincount(block, minlength=splitting.blocks)).tolist()
    rows = _bare(batch.select(list(splitting.columns)))

    def of_block(number: int) -> bytes:
        # Taken, not sliced: of a slice the next rows are written too, up to a multiple of 8 bytes.
        return stream(rows.take(pa.array(order[starts[number] : ends[number]])))

    starts = [0, *ends[:-1]]
    for part in range(splitting.shards):
        numbers = range(part, splitting.blocks, splitting.shards)
        held = tuple((number, of_block(number)) for number in numbers if ends[number] > starts[number])
        yield part, Shard(file.name, row, held)


def _bare(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the values and names alone: metadata of a file may tell of all of its rows."""
    return pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names)


def gather(splitting: Splitting, part: int, shards: Iterable[Shard]) -> Iterator[tuple[int, bytes]]:
    """Return every block of a part with its rows as an Arrow stream, which is empty where it has no rows.

    The stream is of one batch, so that its bytes are the same however files are cut into row groups: where
    they are cut, rows of other units decide.
    """
    gathered: dict[int, list[bytes]] = {n: [] for n in range(part, splitting.blocks, splitting.shards)}
    for shard in sorted(shards):
        for number, rows in shard.rows:
            gathered[number].append(rows)
    for number, streams in gathered.items():
        yield number, _join(streams) if streams else b""


def _join(streams: list[bytes]) -> bytes:
    rows = pa.concat_tables([pa.ipc.open_stream(part).read_all() for part in streams]).combine_chunks()
    return stream(rows.to_batches()[0])


def stream(batch: pa.RecordBatch) -> bytes:
    """Return rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def read_keyed(
    descriptor: Descriptor, columns: Sequence[str], unit: str, salt: bytes, most: int
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Read a row group `most` rows at a time, with a key in place of each unit as soon as it is read.

    So texts of units are in memory for as few rows as `read_batches` reads at a time, and keys for `most`.

    Returns:
        Columns and keys, all but the last of `most` rows.

    Raises:
        InputError: the row group cannot be read.
    """
    if descriptor.row_group is None:
        return
    held: list[pa.RecordBatch] = []
    for batch in read_batches(descriptor.file, descriptor.row_group, columns, most, unit):
        keys = unit_keys(batch.column(unit), salt)
        arrays = [*(batch.column(column) for column in columns), keys]
        held.append(pa.RecordBatch.from_arrays(arrays, names=[*columns, ""]))
        if sum(map(len, held)) >= most:
            joined = pa.concat_batches(held)
            yield _apart(joined.slice(0, most))
            held = [joined.slice(most)] if len(joined) > most else []
    if held:
        yield _apart(pa.concat_batches(held))


def _apart(keyed: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    last = keyed.num_columns - 1
    return keyed.select(list(range(last))), keyed.column(last)
