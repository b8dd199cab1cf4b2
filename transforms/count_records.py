"""Rows that stand for several records: how many, and the records themselves.

A row with the count c becomes c records with its values. One record more or less is then a count that is
higher or lower by one. A count is clamped, which changes it by no more than that, so it is at most one record
of the task, and every sensitivity of the task holds as it is.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transforms.count_outside import numbers
from transforms.group_keys import without_long

MOST_COPIES = 1 << 20
"""Most records of a row. A larger count counts as this."""
MOST_FILES = 1 << 12
"""Most files of an input with counts."""

_COPY_BITS, _ROW_BITS = 20, 32
_FILE_PLACE = 40  # of the number of the file in the identity of a row


def records_of(column: pa.Array) -> NDArray[np.int64]:
    """Return how many records each row stands for: from 0, also for null and below 0, to `MOST_COPIES`."""
    values, _ = numbers(column)
    return np.clip(values, 0, MOST_COPIES).astype(np.int64)


def copies(
    batch: pa.RecordBatch, ids: NDArray[np.uint64], count: str, most: int
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.uint64]]]:
    """Give each row as often as its count says, as batches of at most `most` records; at least one batch.

    Texts that are too long for a key become null before, since records of one row repeat them: Arrow's 32-bit
    offsets overflow without an error, and the keys of all rows of the batch would then be other bytes.

    Args:
        batch: n rows.
        ids: identity of each row, shape (n,); see `transforms.read_blocks.row_ids`.
        count: the column of the counts, integers.
        most: most records of a batch.

    Returns:
        Batches with the identity of each record, made of its row and the number of its copy.
    """
    counts = records_of(batch.column(count))
    ends = np.cumsum(counts)
    total = int(counts.sum())
    short = pa.RecordBatch.from_arrays(list(map(without_long, batch.columns)), names=batch.schema.names)
    for first in range(0, max(1, total), most):
        places = np.arange(first, min(first + most, total))
        rows = np.searchsorted(ends, places, side="right")
        yield short.take(pa.array(rows)), _copy_ids(ids[rows], places - (ends[rows] - counts[rows]))


def _copy_ids(ids: NDArray[np.uint64], copy: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return identities of copies of rows, unique for up to 2^12 files of 2^32 rows of 2^20 records."""
    file = (ids >> np.uint64(_FILE_PLACE)) << np.uint64(_COPY_BITS + _ROW_BITS)
    row = (ids & np.uint64((1 << _ROW_BITS) - 1)) << np.uint64(_COPY_BITS)
    return np.asarray(file | row | copy.astype(np.uint64), np.uint64)
