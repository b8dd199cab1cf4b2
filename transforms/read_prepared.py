"""Read a row group in batches of prepared rows."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from transforms.list_files import File
from transforms.preparation import Preparation
from transforms.read_batches import read_batches


def read_prepared(
    preparation: Preparation,
    file: File,
    row_group: int,
    columns: Sequence[str],
    most: int,
    unit: str | None = None,
    order: str | None = None,
    keys: Sequence[str] = (),
) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
    """Read a row group in batches, and prepare all of its rows; see `read_batches`.

    The number of batches does not depend on which rows are kept.

    Args:
        preparation: how rows are prepared.
        file: the Parquet file.
        row_group: number of the row group.
        columns: used columns, of the file or made.
        most: most rows per batch.
        unit: optional column of the privacy unit, of the file or made.
        order: optional column that orders the rows of a unit, of the file or made.
        keys: key columns of groups, of the file or made.

    Returns:
        Of each batch the used columns, the unit, the order and the keys, and which rows to keep; None for all
        of them.

    Raises:
        InputError: the row group cannot be read, or lacks a column.
    """
    if not preparation:
        for batch in read_batches(file, row_group, columns, most, unit, order=order, others=keys):
            yield batch, None
        return
    names = list(dict.fromkeys((*columns, *filter(None, (unit, order)), *keys)))
    others = (*preparation.sources(names), *(key for key in keys if not preparation.makes(key)))
    used = [name for name in columns if not preparation.makes(name)]
    owner = None if unit is None or preparation.makes(unit) else unit
    ordered = None if order is None or preparation.makes(order) else order
    beside = preparation.bytes_beside(names)
    for batch in read_batches(
        file, row_group, used, most, owner, order=ordered, others=others, beside=beside
    ):
        yield preparation.prepare(batch, names)
