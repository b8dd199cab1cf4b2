"""Put batches of rows together, whatever the dictionaries of their columns are."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def joined_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of at least one batch, one after the other.

    Arrow joins no dictionaries that differ if one has a null, or if all values together need larger indices.
    Whether they do depends on rows, which must not fail. So dictionaries that differ stay side by side here,
    and a value may be in the one that comes of it several times.

    Args:
        batches: with the same columns.
    """
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays([_joined(parts) for parts in columns], names=batches[0].schema.names)


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without dictionaries and metadata, so that their bytes do not follow from other rows."""
    columns = list(map(decoded_column, batch))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def decoded_column(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary, if it has one."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    if not all(pa.types.is_dictionary(part.type) for part in parts):
        return pa.concat_arrays(list(map(decoded_column, parts)))
    values, indices, first = [parts[0].dictionary], [], 0
    for part in parts:
        own, last = part.dictionary, values[-1]
        if _begins_with(own, last):  # a reader adds to a dictionary as it goes on
            values[-1] = own
        elif not _begins_with(last, own):
            first += len(last)
            values.append(own)
        known = part.indices.is_valid().to_numpy(zero_copy_only=False)
        places = part.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        indices.append(pa.array(places + first, mask=~known))
    return pa.DictionaryArray.from_arrays(pa.concat_arrays(indices), pa.concat_arrays(values))


def _begins_with(values: pa.Array, first: pa.Array) -> bool:
    return len(values) >= len(first) and bool(values.slice(0, len(first)).equals(first))
