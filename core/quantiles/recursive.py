"""Release quantiles: cells by rough cuts, noisy counts of the cells, then a look into each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Grid
from core.draws import Draw
from core.gaps import MOST_RECORDS, Order, Runs, rank_scores
from core.mechanisms.exponential import Exponential
from core.mechanisms.within_cell import WithinCell
from core.noise import Noise
from core.quantiles.cells import CellCounts, CellScales
from core.rounds import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

UNIT = 1 << 28
"""Ranks and probabilities are whole multiples of 1 / UNIT of a record; 2^34 records fit into int64."""

_FAR = 2.0**61
MOST_POINTS = 1 << 13
"""Most grid points that are counted one by one in a run: their noise takes a third of a second."""


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
class OneQuantile:
    """One quantile: the exponential mechanism on all grid points.

    A record weighs `up` below a point and UNIT - up above it. Adding or removing one changes the scores by
    amounts whose range is at most 2 max(up, UNIT - up). Where the number of records is public, ranks are
    centered by it, and records weigh 1/2 both ways. A replacement is a removal and an addition.

    Args:
        probability: in (0, 1).
        size: number of grid points.
        point: chooses, per unit of the larger weight.
        total_is_public: whether the number of records may be used: `replace_one`.
    """

    probability: float
    size: int
    point: Exponential
    total_is_public: bool
    name: str = "quantiles"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.point,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point."""
        order = Order.of_counts(aggregate)
        target = int(np.rint(self.probability * UNIT))
        up, offset = UNIT - target, 0
        if self.total_is_public:
            up, offset = UNIT // 2, order.total * (UNIT // 2 - target)
        runs = Runs.between(order, 0, self.size)
        scores = rank_scores(runs, order.total, offset, up, UNIT - up)
        step = self.point.point(runs.starts, runs.lengths, scores, noise, unit=max(up, UNIT - up))
        return FoundQuantiles((self.probability,), (step,))


@dataclass(frozen=True)
class CutsAndChoices:
    """Two quantiles or more in one pass.

    1. Cuts between neighboring quantiles, by recursive halving: the exponential mechanism on the
       records between two cuts, cheap, as it need only separate (Kaplan, Schnapp and Stemmer 2022 place
       the quantiles themselves so).
    2. Noisy counts of the cells between the cuts: they say which cell holds each quantile and at what
       rank, so errors of the cuts do not matter any more.
    3. In each cell that holds quantiles, noisy counts of its points where these are few, and otherwise one
       exponential mechanism per quantile on its records, which share the budget.

    Sensitivity, adding or removing a record: each level of 1 and each cell of 3 sees disjoint sets of
    records, so that one mechanism per level, and those of one cell, see the change. In 1 a record weighs
    t below and 1 - t above: the scores' change has range at most 2 max(t, 1 - t). In 3 it weighs 1/2 both
    ways: range 1, which is why the count of the quantile's own cell is used too; and it changes the count of
    one point by 1. Which of both is used depends on the cuts and the counts of 2, which are noisy already. In
    2 histograms have L1 sensitivity 1 each. A replacement is one removal and one addition: all of it doubles.

    Args:
        probabilities: ascending, in (0, 1), two or more.
        size: number of grid points.
        cuts: of each level, per unit of the larger weight of a record.
        cells: noise of the counts.
        inside: of the choices in a cell, or of the counts of its points.
        total_is_public: whether the number of records may be used: `replace_one`.
    """

    probabilities: tuple[float, ...]
    size: int
    cuts: tuple[Exponential, ...]
    cells: CellCounts
    inside: WithinCell
    total_is_public: bool
    name: str = "quantiles"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (*self.cuts, *self.cells.draws(), self.inside)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order = Order.of_counts(aggregate)
        targets = np.rint(np.array(self.probabilities) * UNIT).astype(np.int64)
        middles = (targets[1:] + targets[:-1]) // 2
        edges = np.unique([0, *_cuts(order, (0, self.size), middles, self.cuts, noise), self.size])
        known = order.total if self.total_is_public else None
        counts = np.array([order.below(int(edge)) for edge in edges])
        starts, total = ranks_of(self.cells.release(np.diff(counts), known, noise))
        ranks = targets / UNIT * total
        cells = np.searchsorted(starts[1:-1], ranks)
        occupied, steps = np.unique(cells), list[int]()
        for cell in occupied:
            low, high = int(edges[cell]), int(edges[cell + 1])
            ends, inside = starts[cell : cell + 2], ranks[cells == cell]
            if high - low == 1:
                steps += [low] * len(inside)
            elif points_suffice(high - low, len(inside)) and high - low <= MOST_POINTS // len(occupied):
                steps += self._count_points(order, low, high, ends, inside, noise)
            else:
                steps += self._choose(order, low, high, ends, inside, noise)
        return found(self.probabilities, steps)

    def _count_points(
        self, order: Order, low: int, high: int, ends: Floats, ranks: Floats, noise: Noise
    ) -> list[int]:
        """Read ranks off noisy counts of the cell's points, moved alike so that they fit between its ends."""
        below = np.array([order.below(point) for point in range(low, high + 1)])
        scales = scales_of_points(high - low, self.inside.scale)
        counts = scales.fit(self.inside.histograms(scales.histograms(np.diff(below)), noise))
        counts += (ends[1] - ends[0] - counts.sum()) / len(counts)
        starts, _ = ranks_of(counts)
        return [low + int(step) for step in np.searchsorted(ends[0] + starts[1:-1], ranks)]

    def _choose(
        self, order: Order, low: int, high: int, ends: Floats, ranks: Floats, noise: Noise
    ) -> tuple[int, ...]:
        """Choose a point of the cell for each rank, by its distance from the middle of the cell's ends."""
        here = order.within(low, high)
        runs = Runs.between(here, low, high)
        offsets = np.clip(np.rint((float(ends.mean()) - ranks) * UNIT), -_FAR, _FAR).astype(np.int64)
        scores = [rank_scores(runs, here.total, int(each), UNIT // 2, UNIT // 2) for each in offsets]
        return self.inside.points(runs.starts, runs.lengths, scores, noise, unit=UNIT)


def found(probabilities: tuple[float, ...], steps: Sequence[int]) -> FoundQuantiles:
    """Return the quantiles in their order; sorting brings none further from its rank."""
    return FoundQuantiles(probabilities, tuple(sorted(steps)))


def ranks_of(counts: Floats) -> tuple[Floats, float]:
    """Return the rank at which each cell starts and the last one ends, ascending, and the sum of all counts.

    Isotonic regression (as Hay, Rastogi, Miklau and Suciu 2010 do for sorted counts): least squares among the
    ascending sequences. Its largest error is at most that of the sums, and it evens out noise where cells
    are empty.
    """
    sums = np.append(0.0, np.cumsum(counts))
    return np.asarray(scipy.optimize.isotonic_regression(sums).x), float(sums[-1])


def scales_of_points(width: int, scale: float) -> CellScales:
    """Noise of the counts of a cell's points, drawn by a `WithinCell`: by groups too, if they are many."""
    if width <= 64:
        return CellScales(scale)
    return CellScales(2 * scale, 2 * scale, math.isqrt(width))


def points_suffice(width: int, sharing: int) -> bool:
    """Whether counts of `width` points serve better than exponential mechanisms for so many quantiles.

    Between known ends, counts of scale 1 give ranks of variance width / 3 (8 sqrt(width) / 3 by groups);
    choices have 2 sharing^2 where records lie densely, and many times that where gaps between the records
    hold many points. Counts are taken up to four times the former.
    """
    return min(width / 3, 8 * math.sqrt(width) / 3) <= 8 * sharing**2


def _cuts(
    order: Order, window: tuple[int, int], targets: Ints, levels: Sequence[Exponential], noise: Noise
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
    # A cut lies before its point: only the records below it count. Cut off, counts still move by 1 at most.
    below = up * np.minimum(runs.below, MOST_RECORDS)
    scores = -np.abs(below - target * np.minimum(here.total - runs.below, MOST_RECORDS))
    cut = levels[0].point(runs.starts, runs.lengths, scores, noise, unit=max(up, target))
    left, right = targets[:middle], targets[middle + 1 :]
    return [
        *_cuts(order, (low, cut), left * UNIT // target, levels[1:], noise),
        cut,
        *_cuts(order, (cut, high), (right - target) * UNIT // up, levels[1:], noise),
    ]
