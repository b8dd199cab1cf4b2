"""Clusters of the complete rows, in an order that is the same in all subsamples.

An answer is a vector, but clusters have no order. Each subsample must therefore order its clusters by a
public rule. With `anchors`, public points such as the released centers of a k_means job, each cluster is
matched to an anchor so that the total distance is smallest (earthmover). All subsamples get the same order if
their centers vary less than the gap between the best matching and the second best. Without anchors, clusters
are sorted by the first column, and ties by the next columns. For one column, this is the earthmover matching
of any two subsamples. For more columns, the order is the same if clusters are farther apart on the first
column than their centers vary, so put such a column first. With two columns or more, no order is a continuous
function of the centers.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from shoal.analyses.rows import EXAMPLE, Floats, complete

_STARTS = 4

Anchors = Sequence[Sequence[float]]


def k_means(rows: pa.Table, k: int = 2, anchors: Anchors | None = None) -> Floats:
    """Find k centers.

    Args:
        rows: the subsample.
        k: number of centers.
        anchors: k public points (k, columns), data units, to which centers are matched.

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
        anchors: k public points (k, columns), data units, to which means are matched.

    Returns:
        Per component in order its weight, means and standard deviations, (k (1 + 2 columns),).
    """
    fitted = GaussianMixture(k, covariance_type="diag", n_init=_STARTS, random_state=0).fit(complete(rows))
    parts = np.column_stack([fitted.weights_, fitted.means_, np.sqrt(fitted.covariances_)])
    return np.asarray(parts[match(fitted.means_, anchors)].ravel())


def match(centers: Floats, anchors: Anchors | None) -> NDArray[np.intp]:
    """Return the indices of the centers in the order of the anchors or of the columns, shape (k,).

    Raises:
        ValueError: the anchors have another shape than the centers.
    """
    if anchors is None:
        return np.lexsort(centers.T[::-1])
    points = np.asarray(anchors, dtype=np.float64)
    if points.shape != centers.shape:
        raise ValueError(f"anchors have shape {points.shape}, but centers {centers.shape}")
    return np.asarray(linear_sum_assignment(cdist(points, centers))[1])


for _analysis in (k_means, gaussian_mixture):
    _analysis(EXAMPLE)
