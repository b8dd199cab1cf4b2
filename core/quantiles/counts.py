"""Quantiles read off noisy counts: of every grid point, or of ever finer cells."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from core.aggregate import Counts
from core.draws import Draw, Laplace
from core.gaps import Order
from core.noise import Noise
from core.quantiles.cells import CellCounts
from core.quantiles.recursive import FoundQuantiles, found, ranks_of
from core.rounds import Block

Floats = NDArray[np.float64]
Nodes = dict[int, tuple[float, float | None]]
"""First point of each node: the records before it and in it, as far as known."""


@dataclass(frozen=True)
class CountsOfPoints:
    """All quantiles from noisy counts of every grid point and of groups of neighboring points.

    Sensitivity: a record is at one point and in one group, so both are histograms; see `CellCounts`.

    Args:
        probabilities: ascending, in (0, 1).
        size: number of grid points.
        cells: noise of the counts.
        total_is_public: whether the number of records may be used: `replace_one`.
    """

    probabilities: tuple[float, ...]
    size: int
    cells: CellCounts
    total_is_public: bool
    name: str = "quantiles"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.cells.draws()

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        counts = np.zeros(self.size, dtype=np.int64)
        counts[aggregate.keys] = aggregate.counts
        known = int(counts.sum()) if self.total_is_public else None
        starts, total = ranks_of(self.cells.release(counts, known, noise))
        steps = np.searchsorted(starts[1:-1], np.array(self.probabilities) * total)
        return found(self.probabilities, steps.tolist())


@dataclass(frozen=True)
class CountsDownTheTree:
    """All quantiles from noisy counts of ever finer cells, read off their sums.

    The grid points are the leaves of a tree of equal fan-out. From the root down, the children of every
    node that holds a quantile are counted, moved alike so that they add up to their parent, and each
    quantile goes on into the child where the sum of the counts passes its rank.

    Sensitivity: the children counted on one level are disjoint, so their counts are a histogram: a record
    more or less changes one of them by 1, and a replacement two.

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
        return found(self.probabilities, steps)

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
