"""Read Arrow IPC files, also called Feather: a piece is a record batch."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

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
    arrays = [_plain(batch.column(name)) for name in columns]
    for array in arrays:
        _validate(array)
    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without views of texts, of which Arrow has few functions."""
    if column.type not in _VIEWS:
        return column
    stored = column.view(pa.binary_view())
    stored.validate(full=True)
    return pc.cast(stored, pa.large_binary()).view(_VIEWS[column.type])


def _validate(column: pa.Array) -> None:
    """Check what is stored, but not whether texts are UTF-8: that may differ by row, and is no damage."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        pa.DictionaryArray.from_arrays(column.indices, column.dictionary)  # which checks the indices
        _validate(column.dictionary)
    else:
        stored = column.view(_STORED[column.type]) if column.type in _STORED else column
        stored.validate(full=True)


_STORED = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
