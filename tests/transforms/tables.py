"""Parquet files for tests."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.domain import Grid

UNIT_SQUARE = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10)


def write(path: Path, row_group_size: int | None = None, **columns: object) -> Path:
    """Write a table of `columns` at `path`, folders made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


def write_points(folder: Path, rows: Sequence[int], row_groups: int, seed: int = 0) -> Path:
    """Write a file of clustered points x, y per entry of `rows`, in `row_groups`; one row in 50 is bad."""
    rng = np.random.default_rng(seed)
    for number, n in enumerate(rows):
        x, y = rng.normal([[0.4], [0.6]], 0.1, size=(2, n))
        x[::50] = [np.nan, np.inf, -np.inf][number % 3]
        size = max(1, -(-n // row_groups))
        write(folder / f"day={number}" / "part.parquet", size, x=x, name=["a"] * n, y=y.astype(np.float32))
    return folder
