"""Regressions of the last column on all others: the slope of each, then optionally the intercept.

Each block runs in a process that is forked for it, and a fork takes longer the more was imported before. So
scikit-learn is imported for `logistic` and `quantile` alone, when a process looks them up here.
"""

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.analyses.rows import EXAMPLE, Floats, features_and_target, unit_columns

_BY_SCIKIT = ("logistic", "quantile")

_CONDITION = 1e-6
"""Features, in standard deviations, count as dependent where what sets one apart is shorter than this."""


def linear(rows: pa.Table, intercept: bool = False) -> Floats:
    """Fit ordinary least squares.

    Of several best fits it is the one whose slopes, each times the standard deviation of its feature, have
    the smallest sum of squares. A feature that does not vary has slope 0.

    The features and the target are put at right angles to the feature that varies most, again and again
    (modified Gram-Schmidt with pivoting; Bjorck, BIT 7, 1967).

    Returns:
        Slopes (features,), and the intercept.
    """
    features, target = features_and_target(rows)
    middle, length, left = unit_columns(np.column_stack([features, target]))
    p = features.shape[1]
    order = np.arange(p + 1)
    equations = np.zeros((p, p + 1))  # of the slopes in standard deviations
    for k in range(p):
        squares = (left[k:p] * left[k:p]).sum(axis=1)
        chosen = k + int(np.argmax(squares))
        if not squares[chosen - k] > _CONDITION**2:
            equations = equations[:k]
            break
        left[[k, chosen]], order[[k, chosen]] = left[[chosen, k]], order[[chosen, k]]
        along = left[k] / np.sqrt(squares[chosen - k])
        equations[k, order[k:]] = (left[k:] * along).sum(axis=1)
        left[k + 1 :] -= equations[k, order[k + 1 :], None] * along
    slopes = _smallest(equations)
    slopes *= length[p] / np.where(length[:p] > 0, length[:p], 1.0)
    return np.append(slopes, middle[p] - (middle[:p] * slopes).sum()) if intercept else slopes


def _smallest(equations: Floats) -> Floats:
    """Return the shortest solution (p,) of independent equations (k, p + 1), the last column on the right."""
    solved: list[Floats] = []
    for equation in equations:
        left = equation.copy()
        for other in solved:  # at right angles to the others, of length 1
            left -= (left[:-1] * other[:-1]).sum() * other
        solved.append(left / np.sqrt((left[:-1] * left[:-1]).sum()))
    return sum((each[-1] * each[:-1] for each in solved), np.zeros(equations.shape[1] - 1))


def __getattr__(name: str) -> Any:
    if name in _BY_SCIKIT:
        return getattr(import_module("shoal.analyses.scikit_regression"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


linear(EXAMPLE)
