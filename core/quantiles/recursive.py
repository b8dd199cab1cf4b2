"""Several quantiles: cells by rough cuts, noisy counts of the cells, then a look into each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.draws import Charged, Draw
from core.gaps import MOST_RECORDS, Order, Runs, rank_scores
from core.mechanisms.exponential import Exponential
from core.mechanisms.within_cell import WithinCell
from core.noise import Noise
from core.quantiles.cells import CellCounts, CellScales, Groups, best_groups, ranks_of
from core.quantiles.exponential import UNIT, Aim, OneQuantile, distance_bound, per_weight, typical_distance
from core.quantiles.found import FoundQuantiles, in_order, promised
from core.quantiles.params import Quantiles
from core.rounds import Block
from core.task import Accuracy, Method

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FAR = 2.0**61
_CUTS = 0.1  # part of epsilon for the cuts: what they get wrong, the counts know
MOST_POINTS = 1 << 13
"""Most grid points that are counted one by one in a run: their noise takes a third of a second."""


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
    purpose: ClassVar[str] = "where the quantiles lie"
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
        return in_order(self.probabilities, steps)

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


class Recursive(Method[Quantiles]):
    """Cuts, counts of cells and a look into each; one quantile alone is one exponential mechanism.

    Counts and choices share epsilon so that the sum of their variances, V / e^2 and 2 / e^2 for a choice
    among dense records, is smallest: in proportion to the cube roots.
    """

    name: ClassVar[str] = "recursive"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        setting, groups, size = self.setting, self._groups, self.setting.grid.extents[0] + 1
        cuts, counts, choices = self._parts
        if groups is None:
            draw = per_weight("the quantile", share * choices, setting.neighbors)
            return (OneQuantile(self._alone, size, draw),)
        given, changes = setting.params.probabilities, setting.neighbors.changes
        depth = len(given[1:]).bit_length()
        levels = (
            per_weight(
                f"cuts of level {i + 1}", share * cuts / depth, setting.neighbors, times=2**i, disjoint=True
            )
            for i in range(depth)
        )
        inside = WithinCell(
            what="quantiles, or counts of points",
            scale=changes / (share * choices),
            changes=changes,
            times=len(given),
            disjoint=True,
        )
        cells = groups.counts("cells", share * counts, changes)
        public = setting.neighbors.name == "replace_one"
        return (CutsAndChoices(given, size, tuple(levels), cells, inside, public),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        setting, groups = self.setting, self._groups
        size, changes, failure = (
            setting.grid.extents[0] + 1,
            setting.neighbors.changes,
            setting.params.failure,
        )
        _, counts, choices = self._parts
        scale = changes / (share * choices)
        if groups is None:
            worst = distance_bound(self._alone, size, scale, failure)
            return promised(worst, typical_distance(self._alone, scale))
        count = len(setting.params.probabilities)
        cells = groups.counts("cells", share * counts, changes).scales
        # A cell may hold all quantiles. Its edges and middle are known to within `rank`: the true point may
        # lie in the next cell, at most that far from this one's edge, and its score is as uncertain.
        choice = count * scale * (math.log(size) + math.log(2 * count / failure))
        width = min(size, MOST_POINTS, max(24 * count**2, 9 * count**4))  # see `points_suffice`
        points = (
            scales_of_points(w, scale).largest_error(w, math.log(4 * (w + 1) * count / failure))
            for w in {width, min(width, 64)}
        )
        rank = cells.largest_error(count, math.log(4 * (count + 1) * count / failure))
        typical = groups.variance * (changes / (share * counts)) ** 2 + 2 * scale**2
        return promised(max(choice, *points) + 3 * rank, math.sqrt(typical))

    @property
    def _alone(self) -> Aim:
        """The aim of one quantile alone."""
        return Aim(self.setting.params.probabilities[0], self.setting.neighbors.name == "replace_one")

    @cached_property
    def _groups(self) -> Groups | None:
        """Groups of the cells of the cuts, one for each quantile; averages over 200 quantiles at most."""
        given = np.array(self.setting.params.probabilities)
        if len(given) == 1:
            return None
        some = np.unique(np.linspace(0, len(given) - 1, min(len(given), 200)).astype(int))
        return best_groups(given[some], some, len(given))

    @property
    def _parts(self) -> tuple[float, float, float]:
        """Epsilon of cuts, counts and choices."""
        epsilon, groups = self.setting.budget.epsilon, self._groups
        cuts = _CUTS * epsilon if groups else 0.0
        ratio = groups.variance ** (1 / 3) if groups else 0.0
        counts = (epsilon - cuts) * ratio / (ratio + 2 ** (1 / 3))
        return cuts, counts, epsilon - cuts - counts
