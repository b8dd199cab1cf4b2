"""Find the rows that are left out or moved to a bound of the domain, by column."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.domain import Grid

_DAY = 86_400_000
"""Milliseconds of a day, in which Arrow's date64 counts."""


def numbers(column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a column as int64, uint64 or float64, and which of its values are finite numbers."""
    if not pa.types.is_integer(column.type):
        floats = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return floats, np.isfinite(floats)
    kind = pa.uint64() if pa.types.is_unsigned_integer(column.type) else pa.int64()
    held = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return pc.fill_null(pc.cast(column, kind), pa.scalar(0, kind)).to_numpy(zero_copy_only=False), held


def on_axis(column: pa.Array, grid: Grid, axis: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a column in the data units of an axis, and which of its values are finite.

    On an axis of dates or timestamps these are whole steps, of which those before the lower bound are -1, and
    those after the upper bound one more than the last; see `core.times.Times.points`.
    """
    times = grid.times
    if times is None or times.lower[axis] is None:
        return numbers(column)
    held = pc.is_valid(column).to_numpy(zero_copy_only=False)
    native = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    whole = pc.fill_null(column.cast(native), pa.scalar(0, native)).to_numpy(zero_copy_only=False)
    ticks, tick = whole.astype(np.int64), "D"
    if pa.types.is_date64(column.type):
        ticks //= _DAY  # rounded down, so that a time of the day, which should not be there, changes nothing
    elif pa.types.is_timestamp(column.type):
        tick = column.type.unit
    return times.points(ticks, tick, axis), held


def outside(batch: pa.RecordBatch, columns: Sequence[str], grid: Grid) -> NDArray[np.bool_]:
    """Return which rows are left out because of each column, then which are moved to a bound of each column.

    A row is left out because of every column in which it has a null, NaN or infinity. Only a row that is not
    left out is moved. A ball of the domain moves rows, too, which is not counted.

    Args:
        batch: n rows.
        columns: the d used columns.
        grid: the universe.

    Returns:
        Shape (2 d, n).
    """
    found = np.zeros((2, len(columns), batch.num_rows), dtype=np.bool_)
    for axis, column in enumerate(columns):
        values, held = on_axis(batch.column(column), grid, axis)
        found[0, axis] = ~held
        found[1, axis] = held & grid.outside(values, axis)
    found[1] &= ~found[0].any(axis=0)
    return found.reshape(2 * len(columns), batch.num_rows)
