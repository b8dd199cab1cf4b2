"""Split the rows into disjoint random blocks, all rows of a unit into one: columnar, as Arrow streams."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import siphash
from transforms.open_source import File
from transforms.read_blocks import Descriptor, open_parquet, row_ids

U64 = NDArray[np.uint64]

_BLOCKS = 0x626C6F636B73
"""Tweak of the hash that chooses blocks, which no sampling of records uses."""

_LONG = 256
"""Bytes of a text beyond which it is hashed by itself: step by step, a single one would hold up all."""

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
    row, unit = descriptor.first_row, splitting.unit
    read = list(dict.fromkeys([*splitting.columns, *([unit] if unit else [])]))
    with open_parquet(descriptor.file) as parquet:
        for batch in parquet.iter_batches(
            _ROWS, row_groups=[descriptor.row_group], columns=read, use_threads=False
        ):
            yield from _split(splitting, batch, descriptor.file, row)
            row += batch.num_rows


def _split(splitting: Splitting, batch: pa.RecordBatch, file: File, row: int) -> Iterator[tuple[int, Shard]]:
    if splitting.unit is None:
        ids = row_ids(file, row, batch.num_rows)
    else:
        units = plain_units(batch.column(splitting.unit))
        valid = pc.is_valid(units)
        batch, ids = batch.filter(valid), unit_ids(units.filter(valid), splitting.salt)
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


def plain_units(units: pa.Array) -> pa.Array:
    """Return units as int64 or large_binary, equal where they are, and only there, among units of one kind.

    Args:
        units: shape (n,), of a type that `transforms.open_source.unit_kind` knows.
    """
    if isinstance(units, pa.ExtensionArray):
        units = units.storage
    if pa.types.is_dictionary(units.type):
        units = units.dictionary_decode()
    kind = units.type
    if pa.types.is_unsigned_integer(kind):
        return pc.cast(units, pa.uint64()).view(pa.int64())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        units = pc.cast(units, pa.int32())
    if pa.types.is_integer(units.type) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        return pc.cast(units, pa.int64())
    if pa.types.is_decimal(kind):
        units = pc.cast(pc.cast(units, pa.decimal256(76, kind.scale)), pa.large_string())
    return pc.cast(units, pa.large_binary())


def unit_ids(units: pa.Array, salt: bytes) -> U64:
    """Return a number for each unit, equal for equal units of one kind.

    Units of text or bytes get a keyed hash: unequal ones may get the same number, once in 2^64.

    Args:
        units: shape (n,), without nulls, of a type that `transforms.open_source.unit_kind` knows.
        salt: 16 secret bytes.

    Returns:
        Shape (n,), uint64.
    """
    plain = plain_units(units)
    if pa.types.is_integer(plain.type):
        return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.int64).view(np.uint64)
    return _hash_text(plain, salt)


def _hash_text(texts: pa.Array, salt: bytes) -> U64:
    """Chain the hash along the 8-byte words of each text, beginning with its length; long ones one by one."""
    _, offsets_, data_ = texts.buffers()
    offsets = np.frombuffer(offsets_, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(data_ or b"", dtype=np.uint8)
    lengths = np.diff(offsets)
    state = siphash(lengths.astype(np.uint64), salt, _BLOCKS)
    long = np.flatnonzero(lengths > _LONG)
    for i in long:
        digest = blake2b(data[offsets[i] : offsets[i + 1]].tobytes(), key=salt, digest_size=8).digest()
        state[i] = int.from_bytes(digest, "little")
    longer = np.flatnonzero(lengths <= _LONG)
    for word in range(int(lengths[longer].max(initial=0) + 7) // 8):
        longer = longer[lengths[longer] > 8 * word]
        at = offsets[longer, None] + 8 * word + np.arange(8)
        inside = at < offsets[longer + 1, None]
        letters: Any = np.where(inside, data[np.where(inside, at, 0)], 0).astype(np.uint8)
        state[longer] = siphash(state[longer] ^ letters.view("<u8")[:, 0], salt, _BLOCKS)
    return state
