"""Several quantiles: cut the domain into cells, count them, and search those that hold quantiles."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.draws import Charged, Draw, Laplace
from core.gaps import Order, Runs, rank_scores
from core.mechanisms.splits import Splits
from core.mechanisms.within_cell import WithinCell
from core.noise import Noise
from core.quantiles.cells import CellCounts, Groups, best_groups, merged, ranks_of
from core.quantiles.descent import Shape, descend, shapes
from core.quantiles.exponential import (
    UNIT,
    Aim,
    OneQuantile,
    distance_bound,
    interval_draw,
    per_weight,
    typical_distance,
)
from core.quantiles.found import FoundQuantiles, in_order, promised
from core.quantiles.params import INTERVAL_SHARE, Quantiles
from core.rounds import Block
from core.task import Accuracy, Method

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FAR = 2.0**61
_TOTAL = 0.01  # part of epsilon for the number of records, where that is private: its size is enough
_SPLITS = 0.1  # part of epsilon for the splits: small, because the counts make up for uneven cells
_FIRST = 0.03  # part of epsilon for the first counts: small, because they only choose edges
_AMPLE = 8.0  # choices for intervals are made in cells that hold so many times the reach of an interval
_SIDES = 0.2  # part of such a cell's budget for the ends of the intervals
_NEXT = 32  # see `_widths`
_MOST_COUNTS = 1.25  # counts get at most so many times the budget of the searches


@dataclass(frozen=True)
class CellsAndSearches:
    """Two quantiles or more in one pass.

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

    Intervals. The noisy ranks of all edges are within `error` of the true ones, except with half of the
    failure probability. So the last edge whose noisy rank is lower by `error`, and the first one whose noisy
    rank is higher by as much, enclose a quantile. That is free. In its cell each quantile is also sought at
    ranks that are lower and higher by all that the search may err. In counts down a tree that is free, too.
    Where points are chosen, a fifth of the cell's budget goes to these choices, but only if the cell seems to
    hold so many records that this costs little.

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

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        rough = self.first.draws() if self.first is not None else ()
        found = (self.total, self.splits, *rough, *self.cells.draws(), self.inside)
        return tuple(draw for draw in found if draw is not None)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order = Order.of_counts(aggregate)
        known = order.total if self.total_is_public else None
        edges = self._edges(order, known, noise)
        cells = self.cells.over(len(edges) - 1)
        starts, total = ranks_of(cells.release(np.diff(order.ranks_at(edges)), known, noise))
        ranks = np.array(self.probabilities) * total
        error = cells.scales.largest_error(len(edges) - 1, self.failure / 2)
        lows = edges[np.maximum(np.searchsorted(starts, ranks - error, side="right") - 1, 0)]
        highs = edges[np.minimum(np.searchsorted(starts, ranks + error), len(edges) - 1)] - 1
        places, steps = np.searchsorted(starts[1:-1], ranks), np.zeros(len(ranks), dtype=np.int64)
        for cell in np.unique(places):
            window, ends = (int(edges[cell]), int(edges[cell + 1])), starts[cell : cell + 2]
            here = np.flatnonzero(places == cell)
            steps[here], below, above, far = self._search(order, window, ends, ranks[here], error, noise)
            lower, higher = ranks[here] - far >= ends[0], ranks[here] + far <= ends[1]
            lows[here[lower]], highs[here[higher]] = below[lower], above[higher]
        return in_order(self.probabilities, steps.tolist(), lows.tolist(), highs.tolist())

    def _edges(self, order: Order, known: int | None, noise: Noise) -> Ints:
        """Release the edges of the cells, given the number of records where it is public."""
        if self.splits is None or self.first is None:
            return np.arange(self.size + 1)
        total = order.total
        if self.total is not None:
            total = int(self.total.add(np.array([total]), noise)[0])
        apart = total // (len(self.probabilities) + 1)
        threshold = max(math.ceil(self.splits.scale), apart)
        edges = self.splits.edges(order.ranks_at, self.size, threshold, self.most, noise)
        starts, end = ranks_of(self.first.release(np.diff(order.ranks_at(edges)), known, noise))
        if self.first.cell.scale * math.sqrt(len(edges) / 2) > apart:
            return edges  # the first counts err by more than lies between two quantiles
        return merged(edges, starts, np.array(self.probabilities) * end)

    def _search(
        self, order: Order, window: tuple[int, int], ends: Floats, ranks: Floats, error: float, noise: Noise
    ) -> tuple[Ints, Ints, Ints, float]:
        """Find points of these ranks in a cell, and points that are surely below and above the quantiles.

        Args:
            order: all records.
            window: first point of the cell, and the point after the last.
            ends: noisy ranks of the cell's ends.
            ranks: noisy ranks that are sought, shape (k,).
            error: bound of the error of the noisy ranks.
            noise: where randomness comes from.

        Returns:
            The points, shape (k,); lower points and higher points, shape (k,); and how far the ranks of those
            are from `ranks`. They count only where their ranks are in the cell.
        """
        (low, high), many = window, len(self.probabilities)
        width, inside, same = high - low, self.inside, np.full(len(ranks), low)
        if width == 1 or inside is None:
            return same, same, same, math.inf
        tree = tree_within(width, len(ranks))
        if tree is not None:
            far = error + tree.largest_error(inside.scale * tree.levels, True, self.failure / 2 / many)
            wanted = np.concatenate([ranks, ranks - far, ranks + far])
            root, levels = (float(ends[0]), float(ends[1] - ends[0])), tree.levels

            def count(counts: Ints, level: int) -> Ints:
                return inside.histogram(counts, levels, noise)

            found = descend(order, window, tree, root, lambda _: wanted, count)
            at, below, above = np.split(np.array(found), 3)
            return at, below, above, far
        here = order.within(low, high)
        runs = Runs.between(here, low, high)

        def choose(wanted: Floats, parts: float) -> Ints:
            offsets = np.clip(np.rint((float(ends.mean()) - wanted) * UNIT), -_FAR, _FAR).astype(np.int64)
            scores = [rank_scores(runs, here.total, int(each), UNIT // 2, UNIT // 2) for each in offsets]
            return np.array(inside.points(runs.starts, runs.lengths, scores, parts, noise, unit=UNIT))

        parts = 2 * len(ranks) / _SIDES
        far = error + parts * inside.scale * (math.log(width) + math.log(4 * many / self.failure))
        if tree_within(width, 2 * len(ranks)) is not None or ends[1] - ends[0] < _AMPLE * far:
            return choose(ranks, len(ranks)), same, same, math.inf
        below, above = np.split(choose(np.concatenate([ranks - far, ranks + far]), parts), 2)
        return choose(ranks, len(ranks) / (1 - _SIDES)), below, above, far


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


def _widths(size: int) -> list[int]:
    """Return some widths of cells of up to `size` points: all small ones, and others 1 / `_NEXT` apart.

    The error of the best tree hardly changes in between.
    """
    widths = [2]
    while widths[-1] < size:
        widths.append(min(size, widths[-1] + max(1, widths[-1] // _NEXT)))
    return widths


class Recursive(Method[Quantiles]):
    """Splits, counts of cells and a search inside the cells. A single quantile is an exponential mechanism.

    A single quantile takes three choices: of its value, and of the two ends of its interval.

    At epsilon e, counts have the variance V / e^2, and a choice among dense records has 2 / e^2. The sum of
    both is smallest if epsilon is split in proportion to the cube roots of V and 2. But searches get hardly
    less than counts, because they err most if the data lie in a small part of a wide domain.
    """

    name: ClassVar[str] = "recursive"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        total, splits, first, _, inside = (share * part for part in self._parts)
        given, neighbors, changes = self._given, self.setting.neighbors, self.setting.neighbors.changes
        if len(given) == 1:
            draw, failure = per_weight("the quantile", inside, neighbors), self.setting.params.failure
            cost = share * INTERVAL_SHARE * self.setting.budget.epsilon
            ends = interval_draw(self._alone, self._size, cost, failure, neighbors)
            return (OneQuantile(self._alone, self._size, draw, *ends),)
        search = None
        if inside:
            search = WithinCell(
                what="quantiles, or counts down a tree",
                scale=changes / inside,
                changes=changes,
                times=len(given) * self._size.bit_length(),
                disjoint=True,
            )
        return (
            CellsAndSearches(
                given,
                self._size,
                self.setting.params.failure,
                neighbors.name == "replace_one",
                Laplace.of("the number of records", total, 1) if total else None,
                Splits.of("cells", splits, changes) if splits else None,
                CellCounts(Laplace.of("first counts of cells", first, changes)) if first else None,
                self._most,
                self._cells(share),
                search,
            ),
        )

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        The noisy ranks of all edges are within some R of the true ones, but for half of the failure
        probability. The other half is for the searches.

        - A tree: see `Shape.largest_error`. The ranks of the root's two ends err by at most R.
        - A choice aims at a rank that errs by at most R, because it is measured from the middle of two ends.
          If the aim is in the cell, the chosen point is at most the choice's own error D from it. If it is
          beyond an end of the cell, the chosen point is at most D from this end. The wanted rank is then at
          most R from this end, because its noisy rank is in the cell.
        - If a cell's intervals are paid for, its choices have a quarter more noise. The bound allows for
          twice the noise.

        So every error is at most R plus that of the search. How many quantiles share a cell follows from the
        data; the promise covers the worst number.
        """
        if len(self._given) == 1:
            aim, scale = self._alone, self._scale(share)
            typical = typical_distance(aim, scale)
            worst = distance_bound(aim, self._size, scale, self.setting.params.failure)
            return promised(worst, typical, typical)
        failure, counts = self.setting.params.failure, self._cells(share).over(self._most).scales
        base = self._groups.variance * (self.setting.neighbors.changes / (share * self._parts[3])) ** 2
        if self._each_point:
            return promised(counts.largest_error(self._size, failure), math.sqrt(base), math.sqrt(base))
        scale, rank = self._scale(share), counts.largest_error(self._most, failure / 2)
        searched = choice_variance(max(2, self._size), 1) * scale**2
        note = (
            "The promised rank error holds on all data, also if all rows lie in a small part of the domain "
            "and many quantiles are sought there at once. On most data errors are far smaller. The intervals "
            "in the release show how well each quantile is known."
        )
        worst = rank + self._largest_search(scale)
        return promised(worst, math.sqrt(base + 2 * scale**2), math.sqrt(base + searched), note)

    def _largest_search(self, scale: float) -> float:
        """Bound the error of every search, over widths of cells and numbers of quantiles in them."""
        many, failure = len(self._given), self.setting.params.failure / 2
        worst, trees = 0.0, set[Shape]()
        for width in _widths(self._size):
            sharing = next((k for k in range(2 * many, 0, -1) if tree_within(width, k) is None), 0)
            worst = max(worst, sharing * scale * (math.log(width) + math.log(many / failure)))
            if (tree := tree_within(width, many)) is not None:
                trees.add(tree)
        errors = [tree.largest_error(scale * tree.levels, True, failure / many) for tree in trees]
        return max([worst, *errors])

    @property
    def _given(self) -> tuple[float, ...]:
        return self.setting.params.probabilities

    @property
    def _size(self) -> int:
        return self.setting.grid.extents[0] + 1

    @property
    def _most(self) -> int:
        """Most cells: four for each quantile, and the halves beside one path from the root."""
        return min(self._size, 4 * len(self._given) + 2 * self._size.bit_length())

    @property
    def _each_point(self) -> bool:
        return self._size <= self._most

    @property
    def _alone(self) -> Aim:
        """The aim of one quantile alone."""
        return Aim(self._given[0], self.setting.neighbors.name == "replace_one")

    @cached_property
    def _groups(self) -> Groups:
        """Groups of the cells, one for each quantile; averages over 200 quantiles at most.

        If each point is a cell, a quantile may lie at any of them: 96 pairs of a quantile and a point are
        evenly spread, as multiples of the golden section come near no period.
        """
        given = np.array(self._given)
        if self._each_point:
            spread = np.arange(96)
            points = (spread * 0.6180339887 % 1 * self._size).astype(int)
            return best_groups(given[spread * len(given) // 96], points, self._size)
        some = np.unique(np.linspace(0, len(given) - 1, min(len(given), 200)).astype(int))
        return best_groups(given[some], some, len(given))

    def _cells(self, share: float) -> CellCounts:
        return self._groups.counts("cells", share * self._parts[3], self.setting.neighbors.changes)

    def _scale(self, share: float) -> float:
        """Scale of a single choice."""
        return self.setting.neighbors.changes / (share * self._parts[4])

    @cached_property
    def _parts(self) -> tuple[float, float, float, float, float]:
        """Epsilon of the number of records, splits, first counts, counts and searches."""
        epsilon = self.setting.budget.epsilon
        if len(self._given) == 1:
            return 0.0, 0.0, 0.0, 0.0, (1 - INTERVAL_SHARE) * epsilon
        if self._each_point:
            return 0.0, 0.0, 0.0, epsilon, 0.0
        total = 0.0 if self.setting.neighbors.name == "replace_one" else _TOTAL * epsilon
        splits, first = _SPLITS * epsilon, _FIRST * epsilon
        rest, ratio = epsilon - total - splits - first, (self._groups.variance / 2) ** (1 / 3)
        counts = rest * min(_MOST_COUNTS, ratio) / (1 + min(_MOST_COUNTS, ratio))
        return total, splits, first, counts, rest - counts
