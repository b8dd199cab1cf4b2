"""Several quantiles: cut the domain into cells, count them, and search those that hold quantiles."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.counted_points import CountsPoints, StoredOrder
from core.draws import Draw, Laplace
from core.focus import CELLS
from core.gaps import MOST_RECORDS, Order, Runs
from core.mechanisms.splits import Splits
from core.mechanisms.within_cell import WithinCell
from core.noise import Noise
from core.quantiles.aim import UNIT
from core.quantiles.brackets import Bins, most_pairs
from core.quantiles.cell_choices import UNKNOWN, Choice, Cut, Ranked, Searched
from core.quantiles.cells import CellCounts, merged, ranks_of
from core.quantiles.descent import Between, Shape, descend, shapes
from core.quantiles.found import FoundQuantiles, in_order

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_AMPLE = 3.0  # a cell's pivots are paid for if it holds so many times the reach of an interval
PIVOTS = 0.05  # part of such a cell's budget for the pivots of the intervals


@dataclass(frozen=True)
class CellsAndSearches(CountsPoints):
    """Two quantiles or more, in one pass where the domain is narrow; see `core.quantiles.wide` for others.

    1. Halve the domain, and again every half that holds more records than lie between two quantiles on
       average. So a cell has few quantiles, whatever the data. Where many records have one value, that value
       becomes a cell of its own. If the domain has few points, each point is a cell instead.
    2. Count these cells roughly, and merge neighbors until hardly more cells than quantiles are left. For
       every cell that is counted precisely costs accuracy. See `merged`.
    3. Count the merged cells, with less noise. The counts tell which cell holds each quantile, and at which
       rank. So errors of the splits and of the first counts no longer matter.
    4. Search each cell that holds quantiles. A cell with few quantiles for its width is searched by one
       exponential mechanism per quantile on the cell's records; these mechanisms share the budget. Other
       cells are searched by counts down a tree, whose error hardly depends on the number of quantiles.

    Sensitivity, if a record is added or removed:

    - Step 1: see `Splits`. The number of records, which sets the threshold, has sensitivity 1.
    - Steps 2 and 3: each histogram has L1 sensitivity 1. Which cells are merged depends only on the edges
      and counts that are released already.
    - Step 4: the cells are disjoint, so only the searches of one cell see the change. In a choice a record
      has weight 1/2 on both sides, which gives range 1. This is why the rank is measured from the middle of
      the cell's two ends. In counts of nodes on one level a record changes one count by 1. How a cell is
      searched depends only on the edges and the counts of step 3, which are released already.

    A replacement is one removal and one addition. So the sensitivities of counts and searches double; see
    `Splits` for the splits. The number of records is public then.

    Intervals. They hold all at once, except with the failure probability: half of it is for the noisy ranks,
    and half for the searches.

    - The noisy ranks of all edges are within `error` of the true ones. So an edge whose noisy rank is lower
      by `error` or more is below a quantile, and one whose noisy rank is higher by as much is above it.
    - The search of another quantile errs by at most some D beside that. So a quantile whose rank is lower by
      `error` + D or more has been released below this one, and one that is higher by as much, above it.
    - In counts down a tree, points are also sought at ranks that are lower and higher by `error` + D.
    - With a choice, an interval may be chosen, too: see `core.quantiles.brackets`, where r is the noisy rank.
      It is off by at most `error`, so the ends are sought at a distance of `error` + D. Their pivots get a
      twentieth of the cell's budget, but only if the cell seems to hold so many records that the interval is
      narrower than the cell. If r is beyond the cell's true ranks, no point has it. So
      there is one more point on each side, which has all ranks beyond and stands for the cell's end.

    All but the pivots is free. An interval is what all of these have in common.

    In a wide domain the scores of choices end at a distance; see `core.focus`. A score that ends changes at
    most as far as before, and in the same direction.

    Args:
        probabilities: ascending, in (0, 1), two or more.
        size: number of grid points.
        failure: probability with which the intervals may fail, all together.
        total_is_public: whether the number of records may be used: `replace_one`.
        total: noise of the number of records; None where that is public or each point is a cell.
        splits: makes the cells; None where each point is a cell.
        first: noise of the first counts; None where each point is a cell.
        most: most cells.
        cells: noise of the counts.
        inside: of the choices in a cell, or of the counts down a tree; None where each point is a cell.
    """

    probabilities: tuple[float, ...]
    size: int
    failure: float
    total_is_public: bool
    total: Laplace | None
    splits: Splits | None
    first: CellCounts | None
    most: int
    cells: CellCounts
    inside: WithinCell | None
    purpose: ClassVar[str] = "where the quantiles lie"
    name: str = "quantiles"
    floor: int = 0

    @property
    def most_counts(self) -> int:
        """See `core.held`."""
        return self.size

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        rough = self.first.draws() if self.first is not None else ()
        found = (self.total, self.splits, *rough, *self.cells.draws(), self.inside)
        return tuple(draw for draw in found if draw is not None)

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order = Order.of_counts(aggregate)
        total = self.released_total(order.total, noise)
        cut = Cut(self.cut(order, total, noise), total)
        return self.search(repeat(order), self.count(order, cut, noise), noise)

    @property
    def between(self) -> Between:
        """See `Between`; the number of records is public under `replace_one`."""
        return None if self.total_is_public else (self.probabilities[0], self.probabilities[-1])

    def released_total(self, total: int, noise: Noise) -> int:
        """Release the number of records, exactly where it is public."""
        return total if self.total is None else int(self.total.add(np.array([total]), noise)[0])

    def threshold(self, total: int) -> int:
        """Return how many records a cell must hold to be halved, given the released number of all."""
        return 0 if self.splits is None else max(math.ceil(self.splits.scale), self._apart(total))

    @property
    def halved(self) -> int:
        """Number of points that are halved: in a wide domain a power of 2, see `core.quantiles.wide`."""
        return self.size if self.size <= CELLS else 1 << (self.size - 1).bit_length()

    def cut(self, order: Order, total: int, noise: Noise) -> Ints:
        """Release the edges of the cells, given the released number."""
        if self.splits is None:
            return np.arange(self.size + 1)
        threshold = self.threshold(total)
        edges = self.splits.edges(order.ranks_at, self.halved, threshold, self.most, noise)
        return np.unique(np.minimum(edges, self.size))

    def count(self, order: Order, cut: Cut, noise: Noise) -> Ranked:
        """Merge cells by rough counts, and release the ranks of the edges that are left.

        Args:
            order: records whose ranks are exact at the edges.
            cut: the edges of all cells.
            noise: where randomness comes from.
        """
        edges, known = cut.edges, order.total if self.total_is_public else None
        if self.first is not None:
            starts, end = ranks_of(self.first.release(np.diff(order.ranks_at(edges)), known, noise))
            if self.first.cell.scale * math.sqrt(len(edges) / 2) <= self._apart(cut.total):
                edges = merged(edges, starts, np.array(self.probabilities) * end)
        cells = self.cells.over(len(edges) - 1)
        starts, total = ranks_of(cells.release(np.diff(order.ranks_at(edges)), known, noise))
        error = cells.scales.largest_error(len(edges) - 1, self.failure / 2, self.between)
        return Ranked(edges, starts, np.array(self.probabilities) * total, error)

    def search(self, orders: Iterable[Order | StoredOrder], ranked: Ranked, noise: Noise) -> FoundQuantiles:
        """Search every cell that holds quantiles.

        Args:
            orders: for each of these cells, records that have the same ranks within the cell as all records.
            ranked: the cells.
            noise: where randomness comes from.
        """
        edges, starts, ranks, error = ranked.edges, ranked.starts, ranked.wanted, ranked.error
        steps, lows, highs = np.zeros((3, len(ranks)), dtype=np.int64)
        errors = np.full(len(ranks), math.inf)
        for (window, ends, here), order in zip(ranked.searched(), orders, strict=False):
            found = self._search(order, window, ends, ranks[here], error, noise)
            steps[here], lows[here], highs[here] = found.points, found.lows, found.highs
            errors[here] = error + found.error
        below = points_before(np.append(edges, steps), np.append(starts + error, ranks + errors), ranks)
        last = self.size - 1
        above = points_before(
            last - np.append(edges - 1, steps), np.append(error - starts, errors - ranks), -ranks
        )
        lows, highs = np.maximum(lows, below), np.minimum(highs, last - above)
        return in_order(self.probabilities, steps.tolist(), lows.tolist(), highs.tolist())

    def _apart(self, total: int) -> int:
        """Number of records between two quantiles on average."""
        return total // (len(self.probabilities) + 1)

    def _search(
        self, order: Any, window: tuple[int, int], ends: Floats, ranks: Floats, error: float, noise: Noise
    ) -> Searched:
        """Find points of these ranks in a cell, and points that are surely below and above the quantiles.

        Args:
            order: records that have the same ranks within the cell as all records: an `Order`, or where a
                tree serves the cell, any `Ranks`.
            window: first point of the cell, and the point after the last.
            ends: noisy ranks of the cell's ends.
            ranks: noisy ranks that are sought, shape (k,).
            error: bound of the error of the noisy ranks.
            noise: where randomness comes from.
        """
        (low, high), many = window, len(self.probabilities)
        width, inside = high - low, self.inside
        same, unknown = np.full(len(ranks), low), (np.full(len(ranks), -1), np.full(len(ranks), UNKNOWN))
        if width == 1 or inside is None:
            return Searched(same, *unknown, math.inf)
        tree = tree_within(width, len(ranks))
        if tree is not None:
            # four searches of each quantile, each of which may err to one side
            off = tree.largest_error(inside.scale * tree.levels, self.failure / 4 / many)
            far = error + off
            wanted = np.concatenate([ranks, ranks - far, ranks + far])
            root, levels = (float(ends[0]), float(ends[1] - ends[0])), tree.levels

            def count(counts: Ints, level: int) -> Ints:
                return inside.histogram(counts, levels, noise)

            found = descend(order, window, tree, root, lambda _: wanted, count)
            at, below, above = np.split(np.array(found), 3)
            lows, highs = (
                np.where(ranks - far >= ends[0], below, -1),
                np.where(ranks + far <= ends[1], above, UNKNOWN),
            )
            return Searched(at, lows, highs, off)
        here = order.within(low, high)
        runs = Runs.between(here, low, high)
        choices, off = self.choices(width, ends, ranks, error)
        scores, parts = choices[0].scores(runs, here.total, ends), choices[0].parts
        points = inside.points(runs.starts, runs.lengths, scores, parts, noise, unit=UNIT)
        if len(choices) == 1:
            return Searched(np.array(points), *unknown, off)
        bins = [Bins.about(pivot, low, high) for pivot in points]
        values, lows, highs = self._bracketed(inside, here, runs, bins, choices[1], ends, error + off, noise)
        return Searched(values, lows, highs, off)

    def _bracketed(
        self,
        inside: WithinCell,
        here: Order,
        runs: Runs,
        bins: Sequence[Bins],
        values: Choice,
        ends: Floats,
        reach: float,
        noise: Noise,
    ) -> tuple[Ints, Ints, Ints]:
        """Choose points of a cell with the ends of their intervals; see `core.quantiles.brackets`.

        Args:
            inside: chooses them.
            here: the records of the cell.
            runs: the points of the cell.
            bins: about the pivot of each quantile.
            values: the choice of the points.
            ends: see `_search`.
            reach: how far from the noisy ranks the ends are sought.
            noise: where randomness comes from.
        """
        low, high, total = int(bins[0].edges[0]), int(bins[0].edges[-1]), here.total
        starts, lengths = np.append(runs.starts, [low - 1, high]), np.append(runs.lengths, [1, 1])
        cell = Runs(np.array([low]), np.array([high - low]), np.array([0]), np.array([total]))
        scores, whole = values.scores(runs, total, ends), values.ranges(cell, total, ends)
        units, found = round(min(reach, MOST_RECORDS) * UNIT), []
        for i, cut in enumerate(bins):
            pairs = cut.pairs(values.ranges(cut.runs(here), total, ends)[i], units, values.most)
            (first,), (last,) = whole[i]
            beyond = values.score((np.array([-UNKNOWN, last]), np.array([first, UNKNOWN])))
            at, pair = inside.both(
                starts,
                lengths,
                np.append(scores[i], beyond),
                -pairs.distances,
                values.parts,
                noise,
                unit=UNIT,
            )
            lowest, highest = pairs.interval(pair)
            at = min(max(at, low), high - 1)
            found.append((at, -1 if lowest is None else lowest, UNKNOWN if highest is None else highest))
        at_all, lows, highs = np.array(found).T
        return at_all, lows, highs

    def choices(self, width: int, ends: Floats, ranks: Floats, error: float) -> tuple[list[Choice], float]:
        """Return the choices in a cell that is not searched by a tree, and how far the values may be off.

        They are those of the values; or, where intervals are paid for, those of the pivots, those of the
        values, and the ranks at which the intervals' ends are sought with the values.

        Args:
            width: number of points of the cell.
            ends: see `_search`.
            ranks: see `_search`.
            error: see `_search`.
        """
        sharing, many, parts = len(ranks), len(self.probabilities), len(ranks) / (1 - PIVOTS)
        off = self.off(width, parts, True)
        if sharing > most_bracketed(width, many) or ends[1] - ends[0] < _AMPLE * (error + off):
            far = self.far(width, sharing, False)
            return [Choice(ranks, sharing, far)], self.off(width, sharing, False)
        far, sides = self.far(width, parts, True), np.concatenate([ranks - error - off, ranks + error + off])
        pivots = Choice(ranks, sharing / PIVOTS, self.far(width, sharing / PIVOTS, False))
        return [pivots, Choice(ranks, parts, far), Choice(sides, parts, far)], off

    def off(self, width: int, parts: float, bracketed: bool, failure: float = 1.0) -> float:
        """Bound the distance of a choice from its aim in a cell, in records.

        Args:
            width: number of points of the cell.
            parts: see `WithinCell`.
            bracketed: whether an interval is chosen with it.
            failure: part of the failure probability with which it may be farther.
        """
        if self.inside is None:
            return 0.0
        each = failure * self.failure / 2 / len(self.probabilities)
        return parts * self.inside.scale * (math.log(outcomes(width, bracketed)) - math.log(each))

    def far(self, width: int, parts: float, bracketed: bool) -> int | None:
        """Return the distance in records at which the scores of choices end; None in a narrow domain.

        All outcomes at this distance are chosen with a ten billionth of the failure probability, at most.
        """
        if self.size <= CELLS or self.inside is None:
            return None
        return math.ceil(self.off(width, parts, bracketed, 1e-10))


def most_chosen(width: int, many: int) -> int:
    """Return how many of `many` quantiles in a cell of so many points are chosen, at most, not counted."""
    return next((k for k in range(many) if tree_within(width, k + 1) is not None), many)


def most_bracketed(width: int, many: int) -> int:
    """Return how many of `many` quantiles in a cell are chosen with an interval, at most.

    It is one, or as many as twice that number are chosen. So what is promised of values hardly grows by
    intervals: the most values that are chosen without one have the smaller parts of the cell's budget.
    """
    most = most_chosen(width, 2 * many)
    return min(many, max(1, most // 2)) if most else 0


def outcomes(width: int, bracketed: bool) -> int:
    """Return the number of outcomes of a choice in a cell of so many points; see `core.quantiles.brackets`.

    With an interval, there is one more point on each side of the cell.
    """
    return (width + 2) * most_pairs(width) if bracketed else width


def points_before(points: Ints, needed: Floats, ranks: Floats) -> Ints:
    """Return the largest of the points that need no more than each rank; 0 where there is none.

    Args:
        points: at least 0.
        needed: the least rank for which each point serves.
        ranks: shape (k,).
    """
    order = np.argsort(needed)
    largest = np.append(0, np.maximum.accumulate(points[order]))
    return np.asarray(largest[np.searchsorted(needed[order], ranks, side="right")])


def choice_variance(width: int, sharing: int) -> float:
    """Return the variance of the ranks of choices among `width` points that share a draw of scale 1.

    It is 2 sharing^2 where records are dense. The error is about sharing ln(width) where nearly all points
    lie in gaps between records. This is the geometric mean of both, because the data is not known.
    """
    return math.sqrt(2) * sharing**2 * math.log(width)


@lru_cache(maxsize=1 << 12)
def _best_shape(width: int) -> Shape:
    return min(shapes(width), key=lambda shape: shape.variance)


def tree_within(width: int, sharing: int) -> Shape | None:
    """Return the tree that finds so many quantiles among `width` points; None where choices are better."""
    best = _best_shape(width)
    return best if best.variance <= choice_variance(width, sharing) else None
