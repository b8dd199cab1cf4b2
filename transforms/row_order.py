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


def last_rows(keys: pa.Array, of_unit: NDArray[np.int64], units: int) -> NDArray[np.intp]:
    """Return the indices of those rows of each unit that no other row of the unit follows.

    A unit has several such rows where their values are equal. A row without a value comes before all rows
    that have one.

    Args:
        keys: shape (n,), see `order_keys`.
        of_unit: shape (n,), index of the unit of each row: from 0 to units - 1, each at least once.
        units: number of units.
    """
    held = pc.is_valid(keys).to_numpy(zero_copy_only=False).astype(np.uint64)
    values = pc.fill_null(keys, pa.scalar(0, pa.uint64())).to_numpy(zero_copy_only=False)
    last = np.arange(len(of_unit))
    for part in (held, values):
        greatest = np.zeros(units, dtype=np.uint64)
        np.maximum.at(greatest, of_unit[last], part[last])
        last = last[part[last] == greatest[of_unit[last]]]
    return last
