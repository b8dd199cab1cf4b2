"""Associations of columns: correlations, and the threshold of one column that predicts another."""

import numpy as np
import pyarrow as pa

from shoal.analyses.rows import Floats, complete, features_and_target, unit_columns


def correlation(rows: pa.Table) -> Floats:
    """Compute Pearson's correlation of every pair of columns; it is NaN for a constant column.

    Returns:
        Pairs in order (0, 1), (0, 2), ..., (1, 2), ..., shape (columns (columns - 1) / 2,).

    Raises:
        ValueError: there are too few complete rows for a correlation.
    """
    values = complete(rows)
    if len(values) < 2:  # a sum over no rows is 0, which is no correlation
        raise ValueError(f"{len(values)} complete rows are too few for a correlation")
    _, length, columns = unit_columns(values)
    columns[length == 0] = np.nan
    pairs = [(each * columns[i + 1 :]).sum(axis=1) for i, each in enumerate(columns)]
    return np.clip(np.concatenate(pairs), -1.0, 1.0)


def threshold(rows: pa.Table) -> float:
    """Find the threshold of the first column that best predicts whether the last column is above 0.

    The threshold minimizes the errors on the rows, as a PAC learner of thresholds does (Valiant 1984). It
    lies in the middle between two rows. The lowest of several best thresholds is taken.

    Returns:
        One number, data units.
    """
    features, target = features_and_target(rows)
    order = np.argsort(features[:, 0], kind="stable")
    values, positive = features[order, 0], target[order] > 0
    # errors[i]: the i lowest rows are predicted to be negative, the others positive
    errors = np.append(0, np.cumsum(np.where(positive, 1, -1)))
    between = [*np.flatnonzero(np.append(True, values[1:] > values[:-1])).tolist(), len(values)]
    best = between[int(np.argmin(errors[between]))]
    if best == 0:
        return float(np.nextafter(values[0], -np.inf))
    return float(values[best - 1] / 2 + values[min(best, len(values) - 1)] / 2)
