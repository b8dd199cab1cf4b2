"""Give rows few enough at a time that their texts take little memory, with dictionaries and views or without.

Many rows of a dictionary, of views or of a joined table may have one long text, and plain texts are copies
of it. More than 2^31 bytes do not fit Arrow's offsets of 32 bits: some functions fail, and others overflow
without an error. Whether texts have so many bytes depends on rows, which must decide neither how a run ends
nor what becomes of other rows. So batches of all formats are cut here, before all else.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LONGEST = 1 << 24
"""Most bytes of a text. A longer one counts as missing, as a line of CSV does; see docs/files.md."""

TOGETHER = 1 << 26
"""Most bytes of the texts of rows that are prepared together, but for those of one row alone."""

_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

Ints = NDArray[np.int64]


def cut_batch(batch: pa.RecordBatch, beside: int = 0, every: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch, without views, in batches whose plain texts take at most `TOGETHER` bytes.

    Args:
        batch: n rows.
        beside: bytes of texts that a row gets when it is prepared.
        every: whether texts of any length stay, which are only written again.

    Returns:
        At least one batch. A dictionary has no values that no row has if it is larger than its rows.
    """
    places = [place for place, column in enumerate(batch.columns) if may_be_text(column.type)]
    if len(batch) * beside + sum(_most_bytes(batch.column(place)) for place in places) <= LONGEST:
        yield _with_columns(batch, {place: without_views(batch.column(place)) for place in places})
        return
    sizes = np.full(len(batch), beside, dtype=np.int64)
    for place in places:
        own = text_sizes(batch.column(place))
        if not every and own.max(initial=0) > LONGEST:
            batch = _with_columns(batch, {place: without_longer(batch.column(place))})
            own[own > LONGEST] = 0
        sizes += own
    for start, end in _cuts(sizes):
        part = batch.slice(start, end - start)
        yield _with_columns(part, {place: without_views(_used(part.column(place))) for place in places})


def _with_columns(batch: pa.RecordBatch, columns: dict[int, pa.Array]) -> pa.RecordBatch:
    """Return a batch with other columns. What its schema says of them beside their types stays."""
    for place, column in columns.items():
        field = batch.schema.field(place)
        field = field.with_type(column.type).with_nullable(field.nullable or column.null_count > 0)
        batch = batch.set_column(place, field, column)
    return batch


def may_be_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type has texts or bytes."""
    if isinstance(kind, pa.BaseExtensionType):
        return may_be_text(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return may_be_text(kind.value_type)
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or _is_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _most_bytes(column: pa.Array) -> int:
    """Return a number of bytes that plain texts of a column do not exceed, without a look at its rows."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if not pa.types.is_dictionary(column.type):
        return int(text_sizes(column).sum()) if _is_view(column.type) else column.nbytes
    whole = _most_bytes(column.dictionary)
    if whole * len(column) <= LONGEST:
        return whole * len(column)
    return max(whole, len(column) * most_bytes_of_one(column.dictionary))


def most_bytes_of_one(values: pa.Array) -> int:
    """Return the bytes of the longest of some texts, which may be the many values of a dictionary."""
    if isinstance(values, pa.ExtensionArray) or _is_view(values.type):
        return int(text_sizes(values).max(initial=0))
    return pc.max(pc.binary_length(values)).as_py() or 0


def text_sizes(column: pa.Array) -> Ints:
    """Return the bytes of the text of each row of a column of `may_be_text`, shape (n,), 0 of a null."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        places = _places(column)
        return np.append(text_sizes(column.dictionary), 0)[places]
    if _is_view(column.type):
        held = column.is_valid().to_numpy(zero_copy_only=False)
        return np.where(held, _views(column)[:, 0], 0).astype(np.int64)
    sizes = pc.fill_null(pc.binary_length(column), 0)
    return np.array(sizes.to_numpy(zero_copy_only=False), dtype=np.int64)


def _places(column: pa.DictionaryArray) -> Ints:
    """Return the place of each row in the dictionary, -1 of a null."""
    places = pc.fill_null(pc.cast(column.indices, pa.int64()), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False))


def _views(column: pa.Array) -> NDArray[np.int32]:
    """Return what Arrow stores of each text, of which the first word is its number of bytes: shape (n, 4)."""
    stored = column.buffers()[1]
    words = np.frombuffer(stored or b"", dtype=np.int32).reshape(-1, 4)
    return words[column.offset : column.offset + len(column)]


def _cuts(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Yield the first row of each part, and the one after its last."""
    ends, start = np.cumsum(sizes), 0
    while start == 0 or start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + TOGETHER, side="right")))
        yield start, end
        start = end


def without_longer(column: pa.Array) -> pa.Array:
    """Return a column of texts with null in place of each that is longer than `LONGEST`."""
    kind: Any = column.type
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, without_longer(column.storage))
    if pa.types.is_dictionary(kind):
        values = without_longer(column.dictionary)
        held = pc.fill_null(values.is_valid().take(column.indices), False)
        indices = pc.if_else(held, column.indices, pa.scalar(None, kind.index_type))
        return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
    long = text_sizes(column) > LONGEST
    if not _is_view(kind):
        return column.take(pa.array(np.arange(len(column)), mask=long))  # which frees the bytes of long texts
    held = column.is_valid().to_numpy(zero_copy_only=False) & ~long
    words, bits = np.where(held[:, None], _views(column), 0), np.packbits(held, bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(words.astype(np.int32)), *column.buffers()[2:]]
    return pa.Array.from_buffers(kind, len(column), buffers)


def _used(column: pa.Array) -> pa.Array:
    """Return a column whose dictionary, if it has one, has no more values than rows, or takes few bytes."""
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column
    values = column.dictionary
    if len(values) <= len(column) and _most_bytes(values) <= TOGETHER:
        return column
    places = _places(column)
    used, place = np.unique(places[places >= 0], return_inverse=True)
    indices = np.zeros(len(column), dtype=np.int64)
    indices[places >= 0] = place
    told = pc.cast(pa.array(indices, mask=places < 0), kind.index_type)
    return pa.DictionaryArray.from_arrays(told, _taken(values, used), ordered=kind.ordered)


def _taken(values: pa.Array, some: Ints) -> pa.Array:
    """Return some texts, of which Arrow takes no views."""
    if not _is_view(values.type):
        return values.take(pa.array(some))
    held = values.is_valid().to_numpy(zero_copy_only=False)[some]
    buffers = [pa.py_buffer(np.packbits(held, bitorder="little")), pa.py_buffer(_views(values)[some].copy())]
    return pa.Array.from_buffers(values.type, len(some), [*buffers, *values.buffers()[2:]])


def without_views(column: pa.Array) -> pa.Array:
    """Return a column without views of texts, of which Arrow has few functions.

    Raises:
        pa.ArrowException: the file is damaged.
    """
    if pa.types.is_dictionary(column.type) and _is_view(column.type.value_type):
        return pa.DictionaryArray.from_arrays(column.indices, without_views(column.dictionary))
    if not _is_view(column.type):
        return column
    stored = column.view(pa.binary_view())
    stored.validate(full=True)
    return pc.cast(stored, pa.large_binary()).view(_VIEWS[column.type])
