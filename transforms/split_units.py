"""Split the rows into disjoint random blocks, all rows of a unit into one: columnar, as Arrow streams."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import siphash
from transforms.open_source import File
from transforms.read_blocks import Descriptor, _open, _row_ids

U64 = NDArray[np.uint64]

_BLOCKS = 0x626C6F636B73
"""Tweak of the hash that chooses blocks, which no sampling of records uses."""

_ROWS = 1 << 20
"""Rows split at a time: many, since each part of each block is a stream of its own."""


@dataclass(frozen=True)
class Splitting:
    """How rows become blocks.

    Args:
        columns: those that the function is to see; of any numeric kind, and with their nulls.
        unit: column that says whose row it is; None where every row is one person's.
        blocks: number of blocks.
        salt: 16 secret bytes that choose the block of each unit.
    """

    columns: tuple[str, ...]
    unit: str | None
    blocks: int
    salt: bytes


@dataclass(frozen=True, order=True)
class Shard:
    """Rows of one block from one place; in order of these places a block's rows have one order.

    Args:
        file: name of the file.
        first_row: index in the file of the first row that was split together with these.
        rows: an Arrow IPC stream.
    """

    file: str
    first_row: int
    rows: bytes


def split_rows(splitting: Splitting, descriptor: Descriptor) -> Iterator[tuple[int, Shard]]:
    """Read what `descriptor` names, and return its rows by block.

    The block of a row is a keyed hash of its unit, or of the row's identity: the same however files are cut
    into row groups, and the same for all rows of a unit. A row whose unit is null is no record.

    Raises:
        InputError: the row group cannot be read.
    """
    if descriptor.row_group is None:
        return
    row, unit = descriptor.first_row, splitting.unit
    read = list(dict.fromkeys([*splitting.columns, *([unit] if unit else [])]))
    with _open(descriptor.file) as parquet:
        for batch in parquet.iter_batches(
            _ROWS, row_groups=[descriptor.row_group], columns=read, use_threads=False
        ):
            yield from _split(splitting, batch, descriptor.file, row)
            row += batch.num_rows


def _split(splitting: Splitting, batch: pa.RecordBatch, file: File, row: int) -> Iterator[tuple[int, Shard]]:
    if splitting.unit is None:
        ids = _row_ids(file, row, batch.num_rows)
    else:
        batch = batch.filter(pc.is_valid(batch.column(splitting.unit)))
        ids = unit_ids(batch.column(splitting.unit), splitting.salt)
    block = (siphash(ids, splitting.salt, _BLOCKS) % np.uint64(splitting.blocks)).astype(np.int64)
    order = np.argsort(block, kind="stable")
    rows = batch.select(list(splitting.columns)).take(pa.array(order))
    ends = np.cumsum(np.bincount(block, minlength=splitting.blocks)).tolist()
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > start:
            yield number, Shard(file.name, row, stream(rows.slice(start, end - start)))


def stream(batch: pa.RecordBatch) -> bytes:
    """Return rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def unit_ids(units: pa.Array, salt: bytes) -> U64:
    """Return a number for each unit, equal for equal values of one type.

    That unequal values may get the same number, once in 2^64, only puts them into the same block.

    Args:
        units: shape (n,), without nulls, of a type that `transforms.open_source` admits for a unit.
        salt: 16 secret bytes.

    Returns:
        Shape (n,), uint64.
    """
    if pa.types.is_dictionary(units.type):
        units = units.dictionary_decode()
    if pa.types.is_integer(units.type) or pa.types.is_boolean(units.type):
        numbers = pc.cast(units, pa.uint64(), safe=False)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.uint64)
    if not (pa.types.is_binary(units.type) or pa.types.is_large_binary(units.type)):
        units = pc.cast(units, pa.large_string())
    return _hash_text(pc.cast(units, pa.large_binary()), salt)


def _hash_text(texts: pa.Array, salt: bytes) -> U64:
    """Chain the hash along the 8-byte words of each text, beginning with its length."""
    _, offsets_, data_ = texts.buffers()
    offsets = np.frombuffer(offsets_, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(data_ or b"", dtype=np.uint8)
    lengths = np.diff(offsets)
    state = siphash(lengths.astype(np.uint64), salt, _BLOCKS)
    for word in range(int(lengths.max(initial=0) + 7) // 8):
        longer = np.flatnonzero(lengths > 8 * word)
        at = offsets[longer, None] + 8 * word + np.arange(8)
        inside = at < offsets[longer + 1, None]
        letters: Any = np.where(inside, data[np.where(inside, at, 0)], 0).astype(np.uint8)
        state[longer] = siphash(state[longer] ^ letters.view("<u8")[:, 0], salt, _BLOCKS)
    return state
