"""Clusters of the complete rows, told apart across subsamples by the first column.

An answer is a vector, but clusters have no order. Theirs here is that of their centers in the first column:
with one column, that matches the clusters of two subsamples at the least total distance (earthmover); with
more, it does where the clusters lie farther apart on the first column than a center moves between subsamples.
Put such a column first.
"""

import numpy as np
import pyarrow as pa
from sklearn.cluster import KMeans  # type: ignore[import-untyped]
from sklearn.mixture import GaussianMixture  # type: ignore[import-untyped]

from pipelines.analyses.rows import EXAMPLE, Floats, complete

_STARTS = 4


def k_means(rows: pa.Table, k: int = 2) -> Floats:
    """Find k centers.

    Returns:
        Centers in order, one after the other, (k columns,).
    """
    centers = KMeans(k, n_init=_STARTS, random_state=0).fit(complete(rows)).cluster_centers_
    return np.asarray(centers[np.argsort(centers[:, 0], kind="stable")].ravel())


def gaussian_mixture(rows: pa.Table, k: int = 2) -> Floats:
    """Fit a mixture of k Gaussians with axes along the columns.

    Returns:
        Per component in order its weight, means and standard deviations, (k (1 + 2 columns),).
    """
    fitted = GaussianMixture(k, covariance_type="diag", n_init=_STARTS, random_state=0).fit(complete(rows))
    parts = np.column_stack([fitted.weights_, fitted.means_, np.sqrt(fitted.covariances_)])
    return np.asarray(parts[np.argsort(fitted.means_[:, 0], kind="stable")].ravel())


for _analysis in (k_means, gaussian_mixture):
    _analysis(EXAMPLE)
