"""Several quantiles from noisy counts of ever finer cells, down a tree."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.budget import calibrate
from core.counted_points import ReadsRanks, StoredOrder, order_of
from core.draws import Charged, Draw, Laplace, charged
from core.noise import Noise
from core.quantiles.descent import Shape, descend, shapes
from core.quantiles.found import FoundQuantiles, in_order, promised
from core.quantiles.params import Quantiles
from core.task import Accuracy, Method
from core.tightness import Tightness

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


_TIGHTNESS = Tightness(
    "The promised rank error allows for ranks that are sums of counts on every level of the tree, and adds "
    "up the failures of all quantiles and of both values about each as if their noise had nothing in common. "
    "Where rows spread, quantiles share counts, and errors are usually two to four times smaller.",
    reached=False,
)


@dataclass(frozen=True)
class CountsDownTheTree(ReadsRanks):
    """All quantiles from noisy counts of ever finer cells; see `descend`.

    For its interval each quantile is also sought at ranks `error` lower and higher. That is free, because the
    nodes counted on a level remain disjoint. With probability 1 - failure no rank is missed by more.

    Sensitivity: the nodes counted on one level are disjoint, so their counts are a histogram. Adding or
    removing a record changes one of them by 1. Replacing a record changes up to two of them by 1.

    Args:
        probabilities: ascending, in (0, 1).
        size: number of grid points.
        shape: the tree.
        counts: noise of the counts of each level.
        total_is_public: whether the number of records may be used: `replace_one`.
        error: see above.
    """

    probabilities: tuple[float, ...]
    size: int
    shape: Shape
    counts: tuple[Laplace, ...]
    total_is_public: bool
    error: float
    purpose: ClassVar[str] = "where the quantiles lie"
    name: str = "quantiles"

    @property
    def points(self) -> int:
        """See `ReadsRanks.points`."""
        return self.size

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.counts

    def release(self, aggregate: Counts | StoredOrder, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order, wanted = order_of(aggregate), np.array(self.probabilities)
        root = 0.0, float(order.total) if self.total_is_public else None

        def add(counts: Ints, level: int) -> Ints:
            return self.counts[level].add(counts, noise)

        def ranks(total: float) -> Floats:
            return np.concatenate([wanted * total + shift for shift in (0, -self.error, self.error)])

        found = descend(order, (0, self.size), self.shape, root, ranks, add)
        steps, lows, highs = (part.tolist() for part in np.split(np.array(found), 3))
        return in_order(self.probabilities, steps, lows, highs)


class Tree(Method[Quantiles]):
    """Counts down a tree, of the shape with the smallest typical error.

    Laplace noise only: Gaussian noise would need more levels than ln(1 / delta) to be smaller.
    """

    name: ClassVar[str] = "tree"
    calibrated: ClassVar[bool] = False

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._best,)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`; all quantiles share the failure probability."""
        tree = self._best
        return promised(tree.error, _typical(tree), _typical(tree), _TIGHTNESS)

    @cached_property
    def _best(self) -> CountsDownTheTree:
        params, size = self.setting.params, self.setting.grid.extents[0] + 1
        best = min((self._calibrated(shape) for shape in shapes(size)), key=_typical)
        given = params.probabilities
        between = None if best.total_is_public else (given[0], given[-1])
        error = best.shape.largest_error(best.counts[0].scale, params.failure, len(given), between)
        return replace(best, error=error)

    def _calibrated(self, shape: Shape) -> CountsDownTheTree:
        """Return the tree of this shape with the noise that spends the budget."""
        budget = self.setting.budget
        share = calibrate(budget, lambda share: charged((self._with(shape, share),)))
        return self._with(shape, share)

    def _with(self, shape: Shape, share: float) -> CountsDownTheTree:
        setting, size = self.setting, self.setting.grid.extents[0] + 1
        epsilon = share * setting.budget.epsilon / shape.levels
        counts = tuple(
            Laplace.of(f"counts of level {i + 1}", epsilon, setting.neighbors.changes)
            for i in range(shape.levels)
        )
        public = setting.neighbors.name == "replace_one"
        return CountsDownTheTree(setting.params.probabilities, size, shape, counts, public, error=0)


def _typical(tree: CountsDownTheTree) -> float:
    """Return the standard deviation of a rank; see `Shape.variance`. Composition may allow smaller scales."""
    return tree.counts[0].scale / tree.shape.levels * math.sqrt(tree.shape.variance)
