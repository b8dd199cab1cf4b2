"""Order the rows of a unit by a column of times or sequence numbers."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)


def is_ordering(kind: pa.DataType) -> bool:
    """Return whether a column of this type can order rows: integers, timestamps and dates can."""
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_timestamp, pa.types.is_date))


def order_keys(column: pa.Array) -> pa.Array:
    """Return each value as an unsigned integer, in the same order.

    Args:
        column: shape (n,), of a type that `is_ordering` knows.

    Returns:
        Shape (n,), uint64; null where the value is null.
    """
    if pa.types.is_unsigned_integer(column.type):
        return pc.cast(column, pa.uint64())
    if pa.types.is_date32(column.type):
        column = pc.cast(column, pa.int32())
    missing = pc.is_null(column).to_numpy(zero_copy_only=False)
    values: NDArray[Any] = pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy(zero_copy_only=False)
    return pa.array(values.astype(np.int64).view(np.uint64) ^ _SIGN, mask=missing)


def order_words(keys: pa.Array) -> U64:
    """Return keys as pairs of words that have the same order: 0, 0 for a null, or 1 and the key.

    Args:
        keys: shape (n,), see `order_keys`.

    Returns:
        Shape (n, 2).
    """
    held = pc.is_valid(keys).to_numpy(zero_copy_only=False).astype(np.uint64)
    values = pc.fill_null(keys, pa.scalar(0, pa.uint64())).to_numpy(zero_copy_only=False)
    return np.stack([held, values], axis=1)
