"""Several quantiles: cut the domain into cells, count them, and search those that hold quantiles."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.draws import Draw, Laplace
from core.focus import CELLS
from core.gaps import MOST_RECORDS, Order, Runs, rank_scores
from core.mechanisms.splits import Splits
from core.mechanisms.within_cell import WithinCell
from core.noise import Noise
from core.quantiles.cells import CellCounts, merged, ranks_of
from core.quantiles.descent import Between, Shape, descend, shapes
from core.quantiles.exponential import UNIT
from core.quantiles.found import FoundQuantiles, in_order
from core.rounds import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FAR = 2.0**61
_AMPLE = 8.0  # choices for intervals are made in cells that hold so many times the reach of an interval
SIDES = 0.2  # part of such a cell's budget for the ends of the intervals


@dataclass(frozen=True, eq=False)
class Cut:
    """Released cells.

    Args:
        edges: shape (m + 1,), ascending.
        total: released number of records.
    """

    edges: Ints
    total: int


@dataclass(frozen=True, eq=False)
class Ranked:
    """Released cells with the ranks of their edges.

    Args:
        edges: shape (m + 1,), ascending.
        starts: shape (m + 1,), noisy ranks of the edges, ascending.
        wanted: noisy ranks of the quantiles, shape (k,), ascending.
        error: bound of the error of the noisy ranks.
    """

    edges: Ints
    starts: Floats
    wanted: Floats
    error: float

    def searched(self) -> Iterator[tuple[tuple[int, int], Floats, Ints]]:
        """Give each cell that holds quantiles: its window, the ranks of its ends, and which quantiles."""
        places = np.searchsorted(self.starts[1:-1], self.wanted)
        for cell in np.unique(places):
            window, ends = (int(self.edges[cell]), int(self.edges[cell + 1])), self.starts[cell : cell + 2]
            yield window, ends, np.flatnonzero(places == cell)


@dataclass(frozen=True, eq=False)
class Choice:
    """Choices of points of a cell by rank, which share the cell's budget.

    Args:
        wanted: noisy ranks, shape (k,).
        parts: see `WithinCell`.
        far: distance in records at which scores end; None where they do not.
    """

    wanted: Floats
    parts: float
    far: int | None

    def scores(self, runs: Runs, total: int, ends: Floats) -> list[Ints]:
        """Return the scores of each choice, in 1 / `UNIT` of a record.

        Args:
            runs: the points of the cell, with ranks that start from 0.
            total: number of records of the cell.
            ends: noisy ranks of the cell's ends.
        """
        offsets = np.clip(np.rint((float(ends.mean()) - self.wanted) * UNIT), -_FAR, _FAR).astype(np.int64)
        scores = [rank_scores(runs, total, int(each), UNIT // 2, UNIT // 2) for each in offsets]
        return scores if self.far is None else [np.maximum(each, self.end) for each in scores]

    @property
    def end(self) -> float | int:
        """The score at which all end."""
        return -math.inf if self.far is None else -min(self.far, MOST_RECORDS) * UNIT


@dataclass(frozen=True)
class CellsAndSearches:
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

    Intervals. The noisy ranks of all edges are within `error` of the true ones, except with half of the
    failure probability. So the last edge whose noisy rank is lower by `error`, and the first one whose noisy
    rank is higher by as much, enclose a quantile. That is free. In its cell each quantile is also sought at
    ranks that are lower and higher by all that the search may err. In counts down a tree that is free, too.
    Where points are chosen, a fifth of the cell's budget goes to these choices, but only if the cell seems to
    hold so many records that this costs little.

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
        total = self.released_total(order.total, noise)
        cut = Cut(self.cut(order, total, self.size, noise), total)
        return self.search(order, self.count(order, cut, noise), noise)

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

    def cut(self, order: Order, total: int, size: int, noise: Noise) -> Ints:
        """Release the edges of the cells of the points 0, ..., size - 1, given the released number."""
        if self.splits is None:
            return np.arange(size + 1)
        return self.splits.edges(order.ranks_at, size, self.threshold(total), self.most, noise)

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

    def search(self, order: Order, ranked: Ranked, noise: Noise) -> FoundQuantiles:
        """Search every cell that holds quantiles."""
        edges, starts, ranks, error = ranked.edges, ranked.starts, ranked.wanted, ranked.error
        lows = edges[np.maximum(np.searchsorted(starts, ranks - error, side="right") - 1, 0)]
        highs = edges[np.minimum(np.searchsorted(starts, ranks + error), len(edges) - 1)] - 1
        steps = np.zeros(len(ranks), dtype=np.int64)
        for window, ends, here in ranked.searched():
            steps[here], below, above, far = self._search(order, window, ends, ranks[here], error, noise)
            lower, higher = ranks[here] - far >= ends[0], ranks[here] + far <= ends[1]
            lows[here[lower]], highs[here[higher]] = below[lower], above[higher]
        return in_order(self.probabilities, steps.tolist(), lows.tolist(), highs.tolist())

    def _apart(self, total: int) -> int:
        """Number of records between two quantiles on average."""
        return total // (len(self.probabilities) + 1)

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
            far = error + tree.largest_error(inside.scale * tree.levels, self.failure / 2 / many)
            wanted = np.concatenate([ranks, ranks - far, ranks + far])
            root, levels = (float(ends[0]), float(ends[1] - ends[0])), tree.levels

            def count(counts: Ints, level: int) -> Ints:
                return inside.histogram(counts, levels, noise)

            found = descend(order, window, tree, root, lambda _: wanted, count)
            at, below, above = np.split(np.array(found), 3)
            return at, below, above, far
        here = order.within(low, high)
        runs = Runs.between(here, low, high)
        choices, far = self.choices(width, ends, ranks, error)

        def choose(choice: Choice) -> Ints:
            scores = choice.scores(runs, here.total, ends)
            return np.array(inside.points(runs.starts, runs.lengths, scores, choice.parts, noise, unit=UNIT))

        if len(choices) == 1:
            return choose(choices[0]), same, same, math.inf
        below, above = np.split(choose(choices[0]), 2)
        return choose(choices[1]), below, above, far

    def choices(self, width: int, ends: Floats, ranks: Floats, error: float) -> tuple[list[Choice], float]:
        """Return the choices in a cell that is not searched by a tree: for the intervals first, if any.

        The second value is how far the ranks for the intervals are from `ranks`.

        Args:
            width: number of points of the cell.
            ends: see `_search`.
            ranks: see `_search`.
            error: see `_search`.
        """
        many, sharing = len(self.probabilities), len(ranks)
        parts = 2 * sharing / SIDES
        scale = 0.0 if self.inside is None else self.inside.scale
        far = error + parts * scale * (math.log(width) + math.log(4 * many / self.failure))
        if tree_within(width, 2 * sharing) is not None or ends[1] - ends[0] < _AMPLE * far:
            return [self._choice(width, ranks, sharing)], math.inf
        sides = np.concatenate([ranks - far, ranks + far])
        return [self._choice(width, sides, parts), self._choice(width, ranks, sharing / (1 - SIDES))], far

    def _choice(self, width: int, wanted: Floats, parts: float) -> Choice:
        return Choice(wanted, parts, self.far(width, parts))

    def far(self, width: int, parts: float) -> int | None:
        """Return the distance in records at which the scores of choices end; None in a narrow domain.

        All points at this distance are chosen with a ten billionth of the failure probability, at most.
        """
        if self.size <= CELLS or self.inside is None:
            return None
        many = len(self.probabilities)
        return math.ceil(parts * self.inside.scale * (math.log(width) + math.log(4e10 * many / self.failure)))


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
