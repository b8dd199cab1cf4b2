"""Read Arrow IPC files, also called Feather: a piece is a record batch."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transforms.list_files import File


def read_arrow_schema(_: File, opened: pa.NativeFile) -> pa.Schema:
    """Return the schema of the file."""
    return pa.ipc.open_file(opened).schema


def count_batches(opened: pa.NativeFile) -> int:
    """Return the number of record batches."""
    return int(pa.ipc.open_file(opened).num_record_batches)


def start_batches(opened: pa.NativeFile) -> list[int]:
    """Return the first row of each record batch, for which one column is read."""
    reader = pa.ipc.open_file(opened, options=pa.ipc.IpcReadOptions(included_fields=[0]))
    rows = (reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
    return list(accumulate(rows, initial=0))[:-1]


def read_arrow(
    _: File, opened: pa.NativeFile, piece: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of a record batch.

    Raises:
        pa.ArrowException: the file is damaged. Its offsets and indices are checked.
    """
    schema = pa.ipc.open_file(opened).schema
    used = [schema.get_field_index(name) for name in columns]
    options = pa.ipc.IpcReadOptions(included_fields=used or [0])
    batch = pa.ipc.open_file(opened, options=options).get_batch(piece)
    if not columns:
        yield batch
        return
    arrays = [batch.column(name) for name in columns]
    for array in arrays:
        _validate(array)
    yield pa.RecordBatch.from_arrays(list(map(_fitting, arrays)), names=list(columns))


def _validate(column: pa.Array) -> None:
    """Check what is stored, but not whether texts are UTF-8: that may differ by row, and is no damage."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        pa.DictionaryArray.from_arrays(column.indices, column.dictionary)  # which checks the indices
        _validate(column.dictionary)
    else:
        _stored(column).validate(full=True)


def _stored(column: pa.Array) -> pa.Array:
    """Return the same bytes as a type that allows every value."""
    kind = column.type
    if pa.types.is_decimal(kind) and kind.bit_width > _WORD:
        return column.view(pa.binary(kind.byte_width))
    if pa.types.is_decimal(kind) or pa.types.is_date64(kind) or pa.types.is_time(kind):
        return column.view(pa.int32() if kind.bit_width < _WORD else pa.int64())
    return column.view(_STORED[kind]) if kind in _STORED else column


def _fitting(column: pa.Array) -> pa.Array:
    """Return a column in which values that its type does not allow are null, whatever the others are.

    They are dates with a part of a day, times outside of a day, and decimals of too many digits.
    """
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _fitting(column.storage))
    if pa.types.is_dictionary(kind):
        values, indices = _fitting(column.dictionary), column.indices
        if values.null_count:
            indices = pc.if_else(values.is_valid().take(indices), indices, pa.scalar(None, indices.type))
        return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
    allowed = _allowed(column)
    if allowed is None:
        return column
    stored = _stored(column)
    return pc.if_else(allowed, stored, pa.scalar(None, stored.type)).view(kind)


def _allowed(column: pa.Array) -> pa.Array | None:
    """Return which values a type allows; None for a type that allows every value."""
    kind = column.type
    if pa.types.is_date64(kind):
        stored = _stored(column)
        return pc.equal(stored, pc.multiply(pc.divide(stored, _DAY["ms"]), _DAY["ms"]))
    if pa.types.is_time(kind):
        return _between(_stored(column), 0, _DAY[kind.unit] - 1)
    if not pa.types.is_decimal(kind):
        return None
    if kind.bit_width > _WORD:
        whole = (pa.decimal128 if kind.bit_width == 2 * _WORD else pa.decimal256)(kind.precision, 0)
        most = pa.scalar(Decimal((0, (9,) * kind.precision, 0)), whole)
        return _between(column.view(whole), pc.negate(most), most)  # Arrow compares no negative scales
    return _between(_stored(column), 1 - 10**kind.precision, 10**kind.precision - 1)


def _between(values: pa.Array, least: Any, most: Any) -> pa.Array:
    return pc.and_(pc.greater_equal(values, least), pc.less_equal(values, most))


_WORD = 64
_DAY = {unit: 86_400 * parts for unit, parts in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))}
"""Units of a day."""

_STORED = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
