"""Convert the rows of a subsample to numpy arrays.

The other modules of this folder call their analyses once on `EXAMPLE` when they are imported. So libraries
are initialized before a process is forked for each subsample.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXAMPLE = pa.table({"a": np.arange(16.0) % 5, "b": np.arange(16.0) % 3, "c": np.arange(16.0) % 2})


def complete(rows: pa.Table) -> Floats:
    """Return the rows without a null, NaN or infinity, shape (n, columns), data units."""
    columns = [pc.cast(column, pa.float64(), safe=False).to_numpy() for column in rows.columns]
    values = np.stack(columns, axis=1)
    return np.asarray(values[np.isfinite(values).all(axis=1)])


def features_and_target(rows: pa.Table) -> tuple[Floats, Floats]:
    """Return all columns but the last, shape (n, features), and the last, shape (n,).

    Raises:
        ValueError: there are too few complete rows for a regression.
    """
    values = complete(rows)
    if len(values) <= values.shape[1]:
        raise ValueError(f"{len(values)} complete rows are too few for {values.shape[1]} columns")
    return values[:, :-1], values[:, -1]
