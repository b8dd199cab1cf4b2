"""A fit of a fraction of a second, as people bring them: trees, none of them private."""

import numpy as np
import pyarrow as pa
from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

from shoal.analyses.rows import Floats, features_and_target


def importances(rows: pa.Table) -> Floats:
    """Return how much each column but the last has to say about the last, shape (features,)."""
    fitted = RandomForestRegressor(20, random_state=0).fit(*features_and_target(rows))
    return np.asarray(fitted.feature_importances_)
