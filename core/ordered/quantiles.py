"""Release quantiles: cells by rough cuts, noisy counts of the cells, then one choice per quantile."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Grid
from core.noise import Noise
from core.ordered.gaps import Order, Runs, rank_scores
from core.rounds import Block

Floats = NDArray[np.float64]

UNIT = 1 << 28
"""Ranks and probabilities are whole multiples of 1 / UNIT of a record; 2^34 records fit into int64."""

_FAR = 2.0**61


@dataclass(frozen=True)
class FoundQuantiles:
    """The released quantiles.

    Args:
        probabilities: ascending, in (0, 1).
        steps: grid point of each, ascending.
    """

    probabilities: tuple[float, ...]
    steps: tuple[int, ...]

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return probabilities and values in data units."""
        values = grid.restore(np.array(self.steps)[:, None])[:, 0]
        return {"probabilities": list(self.probabilities), "values": values.tolist()}


@dataclass(frozen=True)
class CellCounts:
    """Noise of the cells' counts, and of the counts of groups of neighboring cells.

    Args:
        cell: Laplace scale of each cell.
        group: Laplace scale of each group; infinite where groups are not counted.
        size: cells per group.
    """

    cell: float
    group: float = math.inf
    size: int = 1

    def release(self, counts: NDArray[np.int64], known: int | None, noise: Noise) -> Floats:
        """Release the counts of neighboring cells, shape (k,), consistent with those of the groups.

        A record is in one cell and one group: both are histograms. A group's total is the average of
        its noisy count and the sum of its cells, weighted by their precision; its cells share the
        difference (least squares: Hay, Rastogi, Miklau and Suciu 2010).

        Args:
            counts: exact counts.
            known: the number of records, where it is public.
            noise: where randomness comes from.
        """
        released = noise.laplace(counts, self.cell).astype(np.float64)
        if math.isfinite(self.group):
            firsts = np.arange(0, len(counts), self.size)
            sizes = np.diff(np.append(firsts, len(counts)))
            noisy = noise.laplace(np.add.reduceat(counts, firsts), self.group)
            missing = noisy - np.add.reduceat(released, firsts)
            released += np.repeat(missing * self.weight(sizes) / sizes, sizes)
        if known is not None:
            released += (known - released.sum()) / len(counts)
        return released

    def weight(self, sizes: NDArray[np.int64]) -> Floats:
        """Part of a group's total that its own noisy count decides, for groups of these sizes."""
        cells = sizes * self.cell**2
        return np.asarray(cells / (cells + self.group**2))


@dataclass(frozen=True)
class CutsAndChoices:
    """All quantiles in one pass.

    1. Cuts between neighboring quantiles, by recursive halving: the exponential mechanism on the
       records between two cuts, cheap, as it need only separate (Kaplan, Schnapp and Stemmer 2022 place
       the quantiles themselves so).
    2. Noisy counts of the cells between the cuts: they say which cell holds each quantile and at what
       rank, so errors of the cuts do not matter any more.
    3. One exponential mechanism per quantile on the records of its cell, or several that share the
       budget where a cell holds several, as around a point that many records share.

    Sensitivity, adding or removing a record: each level of 1 and each cell of 3 sees disjoint sets of
    records, so that one mechanism per level, and those of one cell, see the change. In 1 a record weighs
    t below and 1 - t above: the scores' change has range at most 2 max(t, 1 - t). In 3 it weighs 1/2 both
    ways: range 1, which is why the count of the quantile's own cell is used too. In 2 histograms have L1
    sensitivity 1 each. A replacement is one removal and one addition: all of it doubles.

    Args:
        probabilities: ascending, in (0, 1).
        size: number of grid points.
        cut_scale: Gumbel scale of a cut, per unit of range: moves / epsilon of a level.
        cells: noise of the counts; None for one quantile, which needs neither cuts nor counts.
        choice_scale: Gumbel scale of a choice, per unit of range and quantile in the cell.
        total_is_public: whether the number of records may be used: `replace_one`.
    """

    probabilities: tuple[float, ...]
    size: int
    cut_scale: float
    cells: CellCounts | None
    choice_scale: float
    total_is_public: bool
    name: str = "quantiles"
    floor: int = 0

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order = Order.of_counts(aggregate)
        targets = np.rint(np.array(self.probabilities) * UNIT).astype(np.int64)
        if self.cells is None:
            return self._found([self._alone(order, int(targets[0]), noise)])
        middles = (targets[1:] + targets[:-1]) // 2
        edges = np.unique([0, *_cuts(order, (0, self.size), middles, self.cut_scale, noise), self.size])
        known = order.total if self.total_is_public else None
        counts = np.array([order.below(int(edge)) for edge in edges])
        released = self.cells.release(np.diff(counts), known, noise)
        starts = np.maximum.accumulate(np.maximum(0, np.append(0.0, np.cumsum(released))))
        ranks = targets / UNIT * starts[-1]
        cells = np.searchsorted(starts[1:-1], ranks)
        steps = []
        for cell in np.unique(cells):
            low, high = int(edges[cell]), int(edges[cell + 1])
            inside = ranks[cells == cell]
            if high - low == 1:
                steps += [low] * len(inside)
                continue
            here = order.within(low, high)
            runs = Runs.between(here, low, high)
            middle = (starts[cell] + starts[cell + 1]) / 2
            for offset in np.clip(np.rint((middle - inside) * UNIT), -_FAR, _FAR).astype(np.int64):
                scores = rank_scores(runs, here.total, int(offset), UNIT // 2, UNIT // 2)
                steps.append(runs.choose(scores, self.choice_scale * len(inside) * UNIT, noise))
        return self._found(steps)

    def _alone(self, order: Order, target: int, noise: Noise) -> int:
        """Choose one quantile among all grid points, at its own weights or, with n public, at equal ones."""
        up, offset = UNIT - target, 0
        if self.total_is_public:
            up, offset = UNIT // 2, order.total * (UNIT // 2 - target)
        runs = Runs.between(order, 0, self.size)
        scores = rank_scores(runs, order.total, offset, up, UNIT - up)
        return runs.choose(scores, self.choice_scale * 2 * max(up, UNIT - up), noise)

    def _found(self, steps: Sequence[int]) -> FoundQuantiles:
        return FoundQuantiles(self.probabilities, tuple(sorted(steps)))


def _cuts(
    order: Order, window: tuple[int, int], targets: NDArray[np.int64], scale: float, noise: Noise
) -> list[int]:
    """Cut the window's points at about these ranks, in 1 / UNIT of all its records, the middle one first."""
    low, high = window
    if not len(targets) or high - low < 2:
        return []
    middle = len(targets) // 2
    target = min(max(1, int(targets[middle])), UNIT - 1)
    up = UNIT - target
    here = order.within(low, high)
    runs = Runs.between(here, low + 1, high)
    # A cut lies before its point: only the records below it count.
    scores = -np.abs(up * runs.below - target * (here.total - runs.below))
    cut = runs.choose(scores, scale * 2 * max(up, target), noise)
    left, right = targets[:middle], targets[middle + 1 :]
    return [
        *_cuts(order, (low, cut), left * UNIT // target, scale, noise),
        cut,
        *_cuts(order, (cut, high), (right - target) * UNIT // up, scale, noise),
    ]


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
        scale: Laplace scale of every count.
        total_is_public: whether the number of records may be used: `replace_one`.
    """

    probabilities: tuple[float, ...]
    size: int
    fan_out: int
    scale: float
    total_is_public: bool
    name: str = "quantiles"
    floor: int = 0

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order = Order.of_counts(aggregate)
        width = self.fan_out ** levels_of(self.size, self.fan_out)
        total = float(order.total) if self.total_is_public else None
        nodes = {0: (0.0, total)}  # first point: records before it and in it, as far as known
        steps = [0] * len(self.probabilities)
        ranks: Floats | None = None
        while width > 1:
            width //= self.fan_out
            children = {first: self._children(order, first, width, *nodes[first], noise) for first in nodes}
            if ranks is None:
                before, inside = children[0][0]
                ranks = np.array(self.probabilities) * (before[-1] + inside[-1])
            nodes = {}
            for i, rank in enumerate(ranks):
                (before, inside), starts = children[steps[i]]
                child = int(np.searchsorted(np.maximum.accumulate(before[1:]), rank))
                steps[i] = starts[child]
                nodes[steps[i]] = float(before[child]), float(inside[child])
        return FoundQuantiles(self.probabilities, tuple(sorted(steps)))

    def _children(
        self, order: Order, first: int, width: int, before: float, total: float | None, noise: Noise
    ) -> tuple[tuple[Floats, Floats], list[int]]:
        """Count the children of the node at `first`: records before each and in each, and their starts."""
        starts = [s for s in range(first, first + width * self.fan_out, width) if s < self.size]
        below = [order.below(start) for start in [*starts, min(self.size, starts[-1] + width)]]
        counts = noise.laplace(np.diff(np.array(below)), self.scale).astype(np.float64)
        if total is not None:
            counts += (total - counts.sum()) / len(counts)
        return (before + np.append(0.0, np.cumsum(counts[:-1])), counts), starts


def levels_of(size: int, fan_out: int) -> int:
    """Levels of a tree of this fan-out over `size` leaves."""
    levels, width = 0, 1
    while width < size:
        levels, width = levels + 1, width * fan_out
    return levels
