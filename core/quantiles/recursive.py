"""Several quantiles: rough cuts make cells, the cells are counted, then each cell is searched."""

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
_CUTS = 0.1  # part of epsilon for the cuts: small, because the counts make up for errors of the cuts
MOST_POINTS = 1 << 13
"""Most grid points that are counted one by one in a run: their noise takes a third of a second."""


@dataclass(frozen=True)
class CutsAndChoices:
    """Two quantiles or more in one pass.

    1. Place cuts between neighboring quantiles by recursive halving, with the exponential mechanism on the
       records between two cuts. This is cheap, because a cut need only separate quantiles (Kaplan, Schnapp
       and Stemmer 2022 place the quantiles themselves in this way).
    2. Count the cells between the cuts, with noise. The counts tell which cell holds each quantile, and at
       which rank. So errors of the cuts no longer matter.
    3. Search each cell that holds quantiles. If it has few points, count its points with noise. Otherwise use
       one exponential mechanism per quantile on the cell's records; these mechanisms share the budget.

    Sensitivity, if a record is added or removed:

    - Step 1: the mechanisms of one level see disjoint sets of records, so one of them per level sees the
      change. A record has weight t on one side and 1 - t on the other. So the changes of the scores have a
      range of at most 2 max(t, 1 - t).
    - Step 2: each histogram has L1 sensitivity 1.
    - Step 3: the cells are disjoint, so only the mechanisms of one cell see the change. In a choice a record
      has weight 1/2 on both sides, which gives range 1. This is why the rank is measured from the middle of
      the cell's two ends. In counts of points a record changes one count by 1. Whether a cell's points are
      counted depends only on the cuts and the counts of step 2, which are released already.

    A replacement is one removal and one addition, so all sensitivities double.

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
        """Find the ranks in noisy counts of the cell's points, shifted evenly to sum to the cell's count."""
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
    """Noise of the counts of a cell's points, drawn by a `WithinCell`; above 64 points by groups too."""
    if width <= 64:
        return CellScales(scale)
    return CellScales(2 * scale, 2 * scale, math.isqrt(width))


def points_suffice(width: int, sharing: int) -> bool:
    """Whether counts of `width` points serve better than exponential mechanisms for so many quantiles.

    Let the ranks of the cell's ends be known, and let the scale be 1. Counts give ranks of variance
    width / 3, or 8 sqrt(width) / 3 with groups. Choices give variance 2 sharing^2 where records are dense,
    and many times that where gaps between records hold many points. So counts are used if their variance is
    at most four times 2 sharing^2.
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
    # A cut lies before its point, so only the records below the point count as below the cut. Counts are cut
    # off at `MOST_RECORDS`; a record still moves them by at most 1.
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
    """Cuts, counts of cells and a search inside the cells. A single quantile is one exponential mechanism.

    At epsilon e, counts have the variance V / e^2, and a choice among dense records has 2 / e^2. The sum of
    both is smallest if epsilon is split in proportion to the cube roots of V and 2.
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
