"""Clusters of the complete rows, matched across subsamples that cannot see each other.

An answer is a vector, but clusters have no order, so each subsample puts its own in one that others share.
With `anchors`, public points such as the released centers of a k_means job, clusters are matched to these at
the least total distance (earthmover). It is one order wherever centers move less between subsamples than
what separates the least matching from the next. Without anchors, the order is that of the first column,
ties by the next ones: with one column, that is the earthmover matching of any two subsamples; with more, it
holds where clusters lie farther apart on the first column than a center moves. Put such a column first.
No order is continuous in all centers of two columns or more, so something public has to choose.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans  # type: ignore[import-untyped]
from sklearn.mixture import GaussianMixture  # type: ignore[import-untyped]

from pipelines.analyses.rows import EXAMPLE, Floats, complete

_STARTS = 4

Anchors = Sequence[Sequence[float]]


def k_means(rows: pa.Table, k: int = 2, anchors: Anchors | None = None) -> Floats:
    """Find k centers.

    Args:
        rows: the subsample.
        k: number of centers.
        anchors: k public points (k, columns), data units, that centers are matched to.

    Returns:
        Centers in order, one after the other, (k columns,).
    """
    centers = KMeans(k, n_init=_STARTS, random_state=0).fit(complete(rows)).cluster_centers_
    return np.asarray(centers[match(centers, anchors)].ravel())


def gaussian_mixture(rows: pa.Table, k: int = 2, anchors: Anchors | None = None) -> Floats:
    """Fit a mixture of k Gaussians with axes along the columns.

    Args:
        rows: the subsample.
        k: number of components.
        anchors: k public points (k, columns), data units, that means are matched to.

    Returns:
        Per component in order its weight, means and standard deviations, (k (1 + 2 columns),).
    """
    fitted = GaussianMixture(k, covariance_type="diag", n_init=_STARTS, random_state=0).fit(complete(rows))
    parts = np.column_stack([fitted.weights_, fitted.means_, np.sqrt(fitted.covariances_)])
    return np.asarray(parts[match(fitted.means_, anchors)].ravel())


def match(centers: Floats, anchors: Anchors | None) -> NDArray[np.intp]:
    """Return the centers' numbers in their order: that of the anchors, or of the columns; shape (k,).

    Raises:
        ValueError: there is not one anchor for each center.
    """
    if anchors is None:
        return np.lexsort(centers.T[::-1])
    points = np.asarray(anchors, dtype=np.float64)
    if points.shape != centers.shape:
        raise ValueError(f"anchors have shape {points.shape}, but centers {centers.shape}")
    return np.asarray(linear_sum_assignment(cdist(points, centers))[1])


for _analysis in (k_means, gaussian_mixture):
    _analysis(EXAMPLE)
