"""Several quantiles of a wide domain: the stages of `CellsAndSearches` as rounds that count few cells.

1. The number of records is released, where it is private.
2. The domain is cut into cells. See `CutIntoCells` for why few counts suffice.
3. The records of these cells are counted, and the counts are released.
4. The cells that hold quantiles are searched. The scores of choices end at a distance, so only points near
   the wanted ranks are counted one by one; see `core.focus`. If a cell is searched by counts down a tree, all
   of its points are counted. Five quantiles or fewer are sought by a tree over at most 2^17 points. Many
   quantiles are sought a few cells at a time; see `SearchInSections`.

Draws, noise and privacy are those of `CellsAndSearches`: each stage uses the data through the same exact
numbers. What a stage releases is public, and it is the state of the next round.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts, Tally
from core.counted_points import StoredOrder
from core.draws import Charged, Draw
from core.focus import CELLS, HELD, Bools, Focus, Focused
from core.gaps import Order, Runs
from core.noise import Noise
from core.quantiles.cell_choices import Cut, Ranked
from core.quantiles.cells_and_searches import PIVOTS, CellsAndSearches, tree_within
from core.quantiles.found import FoundQuantiles
from core.rounds import Block, total_of_stored
from core.stored import SECTIONS, Store, Stored, batches

Ints = NDArray[np.int64]

_MOST = 2 * CELLS
"""Most counts for which searches take looks."""

_SHARING = 6
"""Quantiles from which on a tree may serve a wide cell that holds all of them, which needs ranks anywhere."""


def wide_rounds(whole: CellsAndSearches) -> tuple[Charged, ...]:
    """Return the rounds that release what `whole` does in one pass."""
    counted = () if whole.total is None else (CountRecords(whole),)
    search = SearchCells(whole)
    looks = search.most_counts <= _MOST and len(whole.probabilities) < _SHARING
    found = search if looks else SearchInSections(whole)
    return (*counted, CutIntoCells(whole), CountCells(whole), found)


@dataclass(frozen=True)
class CountRecords:
    """Release the number of records, of sensitivity 1.

    Args:
        whole: all stages.
    """

    whole: CellsAndSearches
    purpose: ClassVar[str] = "about how many rows there are"
    name: str = "number_of_rows"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return () if self.whole.total is None else (self.whole.total,)

    def summarize(self, block: Block, state: None) -> Tally:
        """Count the records."""
        return Tally(np.array([len(block.points)]))

    def recount(self, counts: Stored, state: None) -> Tally:
        """See `core.rounds.total_of_stored`."""
        return Tally(np.array([sum(int(part.counts.sum()) for part in counts)]))

    def release(self, aggregate: Tally, state: None, noise: Noise) -> int:
        """Release their number."""
        return self.whole.released_total(int(aggregate.totals[0]), noise)


@dataclass(frozen=True)
class CutIntoCells(Focused):
    """Halve the domain, and again every half that holds many records; see `Splits`.

    The domain is extended to 2^b points, so that halves are cells of a look. A node of depth i >= 1 with c
    records is split by b = max(c - i decay, threshold - decay). For c <= threshold this is threshold - decay,
    whatever c is. So a cell with at most `threshold` records is not looked at more closely:

    - A node that is made of cells is counted exactly.
    - Any other node lies in a cell with at most `threshold` records. It holds no more, and is counted as no
      more. So b is the same as if it was counted exactly.

    The threshold is public. It is about the number of records for each quantile and one more. So about as
    many cells of a look hold more than that, and only they are cut for the next look.

    Args:
        whole: all stages.
    """

    whole: CellsAndSearches
    purpose: ClassVar[str] = "cells with few quantiles each"
    merging: ClassVar[bool] = False
    name: str = "cells"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return () if self.whole.splits is None else (self.whole.splits,)

    @property
    def points(self) -> int:
        """See `Focused.points`."""
        return self.whole.halved

    @property
    def near(self) -> tuple[int, ...]:
        """See `Focused.near`; a cell with many records stands for a rank."""
        return (0,) * (len(self.whole.probabilities) + 2)

    @property
    def first_cells(self) -> int:
        """See `Focused.first_cells`; these counts are kept."""
        return CELLS // 2

    @property
    def most_counts(self) -> int:
        """See `Focused.most_counts`; the part for later looks is four times what is needed."""
        return CELLS

    def hot(self, runs: Runs, total: int, state: int | None) -> Bools:
        """See `Focused.hot`."""
        records = total if state is None else state
        return np.asarray(runs.upto - runs.below > self.whole.threshold(records))

    def release(self, aggregate: Counts, state: int | None, noise: Noise) -> Cut:
        """Release the edges of the cells."""
        order = Order.of_counts(aggregate)
        total = order.total if state is None else state
        return Cut(self.whole.cut(order, total, noise), total)


@dataclass(frozen=True)
class CountCells:
    """Count the released cells; see `CellsAndSearches` for the sensitivity.

    Args:
        whole: all stages.
    """

    whole: CellsAndSearches
    purpose: ClassVar[str] = "how many rows the cells hold"
    name: str = "counts"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        first = () if self.whole.first is None else self.whole.first.draws()
        return (*first, *self.whole.cells.draws())

    def summarize(self, block: Block, state: Cut) -> Counts:
        """Count the records of every cell that has any."""
        return Focus(state.edges, np.diff(state.edges)).count(block.points[:, 0])

    def recount(self, counts: Stored, state: Cut) -> Counts:
        """See `core.rounds.total_of_stored`."""
        return Focus(state.edges, np.diff(state.edges)).recount(counts)

    def release(self, aggregate: Counts, state: Cut, noise: Noise) -> Ranked:
        """Release the cells that are left, and the ranks of their edges."""
        return self.whole.count(Order.of_counts(aggregate), state, noise)


@dataclass(frozen=True)
class SearchCells(Focused):
    """Search the cells that hold quantiles; see `CellsAndSearches` for the sensitivity.

    Args:
        whole: all stages.
    """

    whole: CellsAndSearches
    purpose: ClassVar[str] = "where the quantiles lie"
    name: str = "quantiles"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return () if self.whole.inside is None else (self.whole.inside,)

    @property
    def points(self) -> int:
        """See `Focused.points`."""
        return self.whole.size

    @property
    def near(self) -> tuple[int, ...]:
        """See `Focused.near`."""
        return self._near(len(self.whole.probabilities))

    @property
    def first_cells(self) -> int:
        """See `Focused.first_cells`: of each cell that is searched."""
        return max(2, CELLS // (4 * len(self.whole.probabilities)))

    @property
    def most_counts(self) -> int:
        """See `Focused.most_counts`."""
        return max(self.first_cells * len(self.whole.probabilities), super().most_counts)

    def _near(self, many: int) -> tuple[int, ...]:
        """Return the records that are near to each of so many quantiles and the two ends of its interval."""
        whole, sharing = self.whole, self._sharing
        value = whole.far(whole.size, sharing / (1 - PIVOTS), True) or 0
        pivot = whole.far(whole.size, sharing / PIVOTS, False) or 0
        return (2 * pivot, 2 * value, 2 * value) * many

    @property
    def _sharing(self) -> int:
        """Most quantiles of a cell that are chosen: as many as choices serve better than a tree."""
        whole, many = self.whole, len(self.whole.probabilities)
        return next((k for k in range(many, 1, -1) if tree_within(whole.size, k) is None), 1)

    def coarse(self, state: Ranked) -> Self:
        """See `core.rounds.Looking.coarse`."""
        widths = np.diff(state.edges)
        for (low, high), _, _ in state.searched():
            widths[np.searchsorted(state.edges, low)] = -(-(high - low) // self.first_cells)
        return replace(self, focus=Focus(state.edges, widths))

    def hot(self, runs: Runs, total: int, state: Ranked) -> Bools:
        """See `Focused.hot`."""
        hot = np.zeros(len(runs.starts), dtype=np.bool_)
        for (low, high), ends, here in state.searched():
            cell = slice(*np.searchsorted(runs.starts, [low, high]))
            starts = runs.starts[cell]
            if high - low == 1 or not len(starts):
                continue
            if tree_within(high - low, len(here)) is not None:
                hot[cell] = True
                continue
            first, last = runs.below[cell][0], runs.upto[cell][-1]
            inside = Runs(starts, runs.lengths[cell], runs.below[cell] - first, runs.upto[cell] - first)
            choices, _ = self.whole.choices(high - low, ends, state.wanted[here], state.error)
            for choice in choices:
                for scores in choice.scores(inside, int(last - first), ends):
                    hot[cell] |= scores > choice.end
        return hot

    def release(self, aggregate: Counts, state: Ranked, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        return self.whole.search(repeat(Order.of_counts(aggregate)), state, noise)


@dataclass(frozen=True)
class SearchCell(SearchCells):
    """Looks at the values of one searched cell, which are not among others."""

    @property
    def near(self) -> tuple[int, ...]:
        """See `Focused.near`."""
        return self._near(self._sharing)

    @property
    def first_cells(self) -> int:
        """See `Focused.first_cells`."""
        return CELLS // 4

    @property
    def most_counts(self) -> int:
        """See `Focused.most_counts`."""
        return super(SearchCells, self).most_counts


@dataclass(frozen=True)
class SearchInSections:
    """Search the cells that hold quantiles, where these are many or epsilon is small; see `SearchCells`.

    All values of the searched cells are counted, in sections that wait in a store; see
    `core.rounds.RoundInSections`. The release reads them, and holds the values of a few cells at a time. A
    cell with more than `HELD` values is looked at by itself.

    Args:
        whole: all stages.
    """

    whole: CellsAndSearches
    purpose: ClassVar[str] = SearchCells.purpose
    name: str = SearchCells.name
    floor: int = 0
    sections: ClassVar[int] = SECTIONS

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return SearchCells(self.whole).draws()

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds; see `SearchCells.most_counts`."""
        return max(HELD, SearchCell(self.whole).most_counts)

    def summarize(self, block: Block, state: Ranked) -> Counts:
        """Count the records at every point of the cells that are searched."""
        points = block.points[:, 0]
        return Counts.of(points[_window_of(state.windows, points) >= 0])

    def recount(self, counts: Stored, state: Ranked) -> Stored:
        """See `core.rounds.total_of_stored`; the release passes over values in other cells."""
        return counts

    def examine(self, section: Counts, state: Ranked, noise: Noise, store: Store) -> Stored:
        """Store the values of a section; see `core.rounds.RoundInSections`."""
        return Stored.of(section, store)

    def release(self, aggregate: Counts | Stored, state: Ranked, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        return self.whole.search(self._orders(Stored.of(aggregate), state), state, noise)

    def _orders(self, values: Stored, state: Ranked) -> Iterator[Order | StoredOrder]:
        """Yield for each searched cell records that have the same ranks within it as all records.

        Cells that together hold at most `HELD` values are held together. A larger one stays in parts where
        it is searched by a tree. Where it is searched by choices, the values near the wanted ranks are held
        alone; see `core.focus`.

        Args:
            values: counts of the values of all searched cells, and maybe others.
            state: the cells.
        """
        windows = state.windows
        sizes = np.zeros(len(windows), dtype=np.int64)
        for part in values:
            cell = _window_of(windows, part.keys)
            sizes += np.bincount(cell[cell >= 0], minlength=len(windows))
        ends, store = batches(sizes, HELD), values.store.another()
        pieces: list[list[Any]] = [[] for _ in ends[1:]]
        for part in values:
            cell = _window_of(windows, part.keys)
            here = np.flatnonzero(cell >= 0)
            cuts = np.searchsorted(cell[here], ends).tolist()
            for kept, low, high in zip(pieces, cuts[:-1], cuts[1:], strict=True):
                some = here[low:high]
                kept.append((store.put(Counts(part.keys[some], part.counts[some])), len(some)))
        searched = [(high - low, len(here)) for (low, high), _, here in state.searched()]
        for first, last, kept in zip(ends[:-1].tolist(), ends[1:].tolist(), pieces, strict=True):
            stored = Stored(tuple(place for place, _ in kept), tuple(size for _, size in kept), store)
            order: Order | StoredOrder
            if len(stored) <= HELD:
                order = Order.of_counts(stored.whole())
            elif tree_within(*searched[first]) is not None:
                order = StoredOrder.of_stored(stored)
            else:
                order = Order.of_counts(total_of_stored(SearchCell(self.whole), stored, state))
            yield from repeat(order, last - first)


def _window_of(windows: Ints, points: Ints) -> Ints:
    """Return the place of each point's window, shape (n,), or -1."""
    place = np.searchsorted(windows[:, 0], points, side="right") - 1
    return np.where(points < windows[place, 1], place, -1)
