"""Regressions by scikit-learn; `shoal.analyses.regression` has them under the same names."""

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression, QuantileRegressor

from shoal.analyses.rows import EXAMPLE, Floats, features_and_target


def logistic(rows: pa.Table, intercept: bool = False, penalty: float = 1.0) -> Floats:
    """Fit the log odds that the last column is above 0, with an L2 penalty on slopes.

    Returns:
        Slopes (features,), and the intercept.

    Raises:
        ValueError: all rows have the same label.
    """
    features, target = features_and_target(rows)
    fitted = LogisticRegression(C=1 / penalty).fit(features, target > 0)
    return _coefficients(fitted.coef_[0], fitted.intercept_[0], intercept)


def quantile(rows: pa.Table, probability: float = 0.5, intercept: bool = False) -> Floats:
    """Fit the conditional quantile of a probability, without penalty.

    Returns:
        Slopes (features,), and the intercept.
    """
    fitted = QuantileRegressor(quantile=probability, alpha=0.0).fit(*features_and_target(rows))
    return _coefficients(fitted.coef_, fitted.intercept_, intercept)


def _coefficients(slopes: Floats, intercept: float, wanted: bool) -> Floats:
    return np.append(slopes, intercept) if wanted else slopes


for _analysis in (logistic, quantile):
    _analysis(EXAMPLE)
