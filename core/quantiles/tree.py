"""Several quantiles from noisy counts of ever finer cells, down a tree."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from core.aggregate import Counts
from core.budget import calibrate
from core.draws import Charged, Draw, Laplace, charged
from core.gaps import Order
from core.noise import Noise
from core.quantiles.cells import largest_sum
from core.quantiles.found import FoundQuantiles, in_order, promised
from core.quantiles.params import Quantiles
from core.rounds import Block
from core.task import Accuracy, Method

Floats = NDArray[np.float64]
Nodes = dict[int, tuple[float, float | None]]
"""First point of each node: the records before it and in it, as far as known."""


@dataclass(frozen=True)
class CountsDownTheTree:
    """All quantiles from noisy counts of ever finer cells.

    The grid points are the leaves of a tree of equal fan-out. From the root down:

    1. Count the children of every node that holds a quantile, with noise.
    2. Shift the counts of a node's children evenly, so that they sum to the node's count.
    3. Move each quantile to the child where the sum of the counts reaches the quantile's rank.

    Sensitivity: the children counted on one level are disjoint, so their counts are a histogram. Adding or
    removing a record changes one of them by 1. Replacing a record changes up to two of them by 1.

    Args:
        probabilities: ascending, in (0, 1).
        size: number of grid points.
        fan_out: children of a node.
        counts: noise of the counts of each level.
        total_is_public: whether the number of records may be used: `replace_one`.
    """

    probabilities: tuple[float, ...]
    size: int
    fan_out: int
    counts: tuple[Laplace, ...]
    total_is_public: bool
    purpose: ClassVar[str] = "where the quantiles lie"
    name: str = "quantiles"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.counts

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order = Order.of_counts(aggregate)
        width = self.fan_out ** len(self.counts)
        total = float(order.total) if self.total_is_public else None
        nodes: Nodes = {0: (0.0, total)}
        steps = [0] * len(self.probabilities)
        ranks: Floats | None = None
        for level in self.counts:
            width //= self.fan_out
            children = self._children(order, nodes, width, level, noise)
            if ranks is None:
                before, inside = children[0][0]
                ranks = np.array(self.probabilities) * (before[-1] + inside[-1])
            nodes = {}
            for i, rank in enumerate(ranks):
                (before, inside), starts = children[steps[i]]
                child = int(np.searchsorted(scipy.optimize.isotonic_regression(before).x[1:], rank))
                steps[i] = starts[child]
                nodes[steps[i]] = float(before[child]), float(inside[child])
        return in_order(self.probabilities, steps)

    def _children(
        self, order: Order, nodes: Nodes, width: int, level: Laplace, noise: Noise
    ) -> dict[int, tuple[tuple[Floats, Floats], list[int]]]:
        """Count the children of all nodes: records before each child and in each, and where they start."""
        starts, exact = [], []
        for first in nodes:
            here = [s for s in range(first, first + width * self.fan_out, width) if s < self.size]
            below = [order.below(start) for start in [*here, min(self.size, here[-1] + width)]]
            starts.append(here)
            exact.append(np.diff(np.array(below)))
        noisy = level.add(np.concatenate(exact), noise).astype(np.float64)
        parts = np.split(noisy, np.cumsum([len(here) for here in starts[:-1]]))
        children = {}
        for (first, (before, total)), here, counts in zip(nodes.items(), starts, parts, strict=True):
            if total is not None:
                counts += (total - counts.sum()) / len(counts)
            children[first] = (before + np.append(0.0, np.cumsum(counts[:-1])), counts), here
        return children


def levels_of(size: int, fan_out: int) -> int:
    """Levels of a tree of this fan-out over `size` leaves."""
    levels, width = 0, 1
    while width < size:
        levels, width = levels + 1, width * fan_out
    return levels


class Tree(Method[Quantiles]):
    """Counts down a tree, with the fan-out of the smallest typical error.

    Laplace noise only: Gaussian noise would need more levels than ln(1 / delta) to be smaller.
    """

    name: ClassVar[str] = "tree"
    calibrated: ClassVar[bool] = False

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._best,)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        A leaf is chosen where the noisy centered rank changes its sign. So the error is at most the noise at
        the leaf's edges. The noise at an edge lies between the noise at its parent's two edges, plus the
        noise of a bridge over the parent's children. The squares of the bridge's weights sum to at most a
        quarter of the fan-out. At the root the weights are at most 1.
        """
        tree, params = self._best, self.setting.params
        amount = tree.fan_out * (1 + (len(tree.counts) - 1) / 4)
        log = math.log(2 * len(params.probabilities) / params.failure) + math.log(tree.size)
        return promised(largest_sum((amount,), (tree.counts[0].scale,), log), _typical(tree))

    @cached_property
    def _best(self) -> CountsDownTheTree:
        size = self.setting.grid.extents[0] + 1
        return min((self._calibrated(fan_out) for fan_out in _fan_outs(size)), key=_typical)

    def _calibrated(self, fan_out: int) -> CountsDownTheTree:
        """Return the tree of this fan-out with the noise that spends the budget."""
        budget = self.setting.budget
        share = calibrate(budget, lambda share: charged((self._with(fan_out, share),)))
        return self._with(fan_out, share)

    def _with(self, fan_out: int, share: float) -> CountsDownTheTree:
        setting, size = self.setting, self.setting.grid.extents[0] + 1
        levels = levels_of(size, fan_out)
        epsilon = share * setting.budget.epsilon / levels
        counts = tuple(
            Laplace.of(f"counts of level {i + 1}", epsilon, setting.neighbors.changes) for i in range(levels)
        )
        public = setting.neighbors.name == "replace_one"
        return CountsDownTheTree(setting.params.probabilities, size, fan_out, counts, public)


def _typical(tree: CountsDownTheTree) -> float:
    """Return the standard deviation of a rank, from the average variance over all edges.

    In units of the variance of one count, a level adds 1/6 per child to the variance, and the root 1/3 per
    child, if every edge may be any quantile.
    """
    levels = len(tree.counts)
    return tree.counts[0].scale * math.sqrt(2 * tree.fan_out * (1 / 3 + (levels - 1) / 6))


def _fan_outs(size: int) -> list[int]:
    """Smallest fan-outs of trees of 1, 2, ... levels, none above 4,096."""
    fan_outs = (math.ceil(size ** (1 / levels) - 1e-9) for levels in range(1, 2 + math.ceil(math.log2(size))))
    return sorted({f for f in fan_outs if 2 <= f <= 4096})
