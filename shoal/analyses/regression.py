"""Regressions of the last column on all others: the slope of each, then optionally the intercept.

Each block runs in a process that is forked for it, and a fork takes longer the more was imported before. So
scikit-learn is imported for `logistic` and `quantile` alone, when a process looks them up here.
"""

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.analyses.rows import EXAMPLE, Floats, features_and_target

_BY_SCIKIT = ("logistic", "quantile")

_CONDITION = 1e-6
"""Singular values below this times the largest count as 0."""


def linear(rows: pa.Table, intercept: bool = False) -> Floats:
    """Fit ordinary least squares; of several best fits, the one of the smallest slopes.

    Returns:
        Slopes (features,), and the intercept.
    """
    features, target = features_and_target(rows)
    middle, level = features.mean(axis=0), target.mean()
    slopes = np.linalg.lstsq(features - middle, target - level, rcond=_CONDITION)[0]
    return np.append(slopes, level - middle @ slopes) if intercept else slopes


def __getattr__(name: str) -> Any:
    if name in _BY_SCIKIT:
        return getattr(import_module("shoal.analyses.scikit_regression"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


linear(EXAMPLE)
