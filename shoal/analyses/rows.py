"""Convert the rows of a subsample to numpy arrays.

The other modules of this folder call their analyses once on `EXAMPLE` when they are imported. So libraries
are initialized before a process is forked for each subsample.

One process may answer many subsamples by `association` and `regression.linear`; see
`transforms.run_function`. So their answers must follow from the rows to the last bit. They compute by numpy's
operations on single values and its sums, whose order follows from shapes alone. They call no BLAS and no
LAPACK, whose last bits may follow from where in memory something lies, and so from what lay there before.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDING = 1e-14
"""Values of a column differ by rounding alone where they do so by less than this times the largest one.

The mean of n equal values is off by at most some log2(n) + 20 roundings, each of 1.1e-16.
"""

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


def unit_columns(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the middle and the length of each column about it, and the columns of length 1.

    Args:
        values: shape (n, columns).

    Returns:
        Means (columns,); lengths (columns,), 0 for a column whose values differ by no more than rounding; and
        the columns less their means and divided by their lengths, shape (columns, n), 0 for such a column.

    Raises:
        ValueError: the sum of a column is not finite.
    """
    columns = np.ascontiguousarray(values.T)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = columns.sum(axis=1) / columns.shape[1]
        centered = columns - middle[:, None]
    widest = np.abs(centered).max(axis=1, initial=0.0)
    if not np.isfinite(widest).all():
        raise ValueError("the sum of a column is out of range")
    varies = widest > _ROUNDING * np.abs(columns).max(axis=1, initial=0.0)
    widest[~varies] = 0.0
    centered /= np.where(varies, widest, np.inf)[:, None]  # no square is out of range then
    length = np.sqrt((centered * centered).sum(axis=1))
    centered /= np.where(varies, length, 1.0)[:, None]
    return middle, widest * length, centered
