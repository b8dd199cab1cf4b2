"""Several quantiles: the method that cuts the domain into cells, counts them, and searches inside them."""

import math
from collections.abc import Iterator
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.draws import Charged, Laplace
from core.focus import CELLS
from core.mechanisms.splits import Splits
from core.mechanisms.tails import smallest_bound, sum_of_errors
from core.mechanisms.within_cell import WithinCell
from core.quantiles.aim import Aim
from core.quantiles.brackets import widened
from core.quantiles.cells import CellCounts, Groups, best_groups
from core.quantiles.cells_and_searches import (
    PIVOTS,
    CellsAndSearches,
    choice_variance,
    most_bracketed,
    most_chosen,
    outcomes,
    tree_within,
)
from core.quantiles.descent import Between, Shape
from core.quantiles.exponential import (
    OneQuantile,
    choice_of,
    distance_bound,
    outcomes_of,
    typical_distance,
    widening,
)
from core.quantiles.found import promised
from core.quantiles.hardest import hardest
from core.quantiles.params import INTERVAL_SHARE, Quantiles
from core.quantiles.wide import wide_rounds
from core.task import Accuracy, Method
from core.tightness import Tightness

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_TOTAL = 0.01  # part of epsilon for the number of records, where that is private: its size is enough
_SPLITS = 0.1  # part of epsilon for the splits: small, because the counts make up for uneven cells
_FIRST = 0.03  # part of epsilon for the first counts: small, because they only choose edges
_NEXT = 32  # see `_widths`
_STEPS = 100  # in which the promised error is sought
_NEVER = 1e-10  # part of the failure probability; see `CellsAndSearches.far`
_MOST_COUNTS = 1.25  # counts get at most so many times the budget of the searches


_OF_COUNTS = Tightness(
    "The promised rank error adds up the failures of the ranks of all values as if their noise had "
    "nothing in common. Neighboring ranks share most of it, so errors are usually two to four times smaller.",
    reached=False,
)
_OF_SEARCHES = Tightness(
    "The promised rank error holds also if all rows lie in so small a part of the domain that as many "
    "quantiles as possible are sought in one cell and share its budget. That is why it is much larger than "
    "usual errors: where rows spread over many cells, a cell has few quantiles, and errors are five to "
    "thirty times smaller. The intervals in the release show how well each quantile is known.",
    reached=False,
)


def _widths(size: int) -> list[int]:
    """Return some widths of cells of up to `size` points: all small ones, and both ends of longer stretches.

    A stretch ends where widths are 1 / `_NEXT` larger. Trees and choices grow with the width, so those of a
    stretch are at most those at its end.
    """
    widths = [2]
    while widths[-1] < size:
        end = min(size, widths[-1] + max(1, widths[-1] // _NEXT))
        widths += [end] if end - widths[-1] == 1 else [end - 1, end]
    return widths


class Recursive(Method[Quantiles]):
    """Splits, counts of cells and a search inside the cells. A single quantile is an exponential mechanism.

    A single quantile takes two choices: of a pivot, and of its value with the two ends of its interval.

    At epsilon e, counts have the variance V / e^2, and a choice among dense records has 2 / e^2. The sum of
    both is smallest if epsilon is split in proportion to the cube roots of V and 2. But searches get hardly
    less than counts, because they err most if the data lie in a small part of a wide domain.
    """

    name: ClassVar[str] = "recursive"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        found = self.in_one_pass(share)
        if self._size <= CELLS or isinstance(found, OneQuantile):
            return (found,)
        return wide_rounds(found)

    def in_one_pass(self, share: float) -> OneQuantile | CellsAndSearches:
        """Return a round that is given the counts of all values, however wide the domain is."""
        total, splits, first, _, inside = (share * part for part in self._parts)
        given, neighbors, changes = self._given, self.setting.neighbors, self.setting.neighbors.changes
        if len(given) == 1:
            epsilon, failure = share * self.setting.budget.epsilon, self.setting.params.failure
            return choice_of(
                OneQuantile,
                "the quantile",
                self._alone,
                self._size,
                epsilon,
                INTERVAL_SHARE,
                failure,
                neighbors,
            )
        search = None
        if inside:
            search = WithinCell(
                what="quantiles, or counts down a tree",
                scale=changes / inside,
                changes=changes,
                times=len(given) * self._size.bit_length(),
                disjoint=True,
            )
        return CellsAndSearches(
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
        )

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        Let R be the largest error of the noisy ranks of all edges, and D that of all searches.

        - A tree: see `Shape.errors_exceed`. The ranks of the root's two ends err by at most R.
        - A choice aims at a rank that errs by at most R, because it is measured from the middle of two ends.
          If the aim is in the cell, the chosen point is at most the choice's own error D from it. If it is
          beyond an end of the cell, the chosen point is at most D from this end. The wanted rank is then at
          most R from this end, because its noisy rank is in the cell.
        - See `_choices` for how many parts of a cell's budget a choice can be left with one of.

        So every error is at most R + D. The noise of searches does not depend on that of the ranks, so
        whatever R is, D exceeds a bound with at most the probability of `_searches_exceed`. `sum_of_errors`
        joins both. How many quantiles share a cell follows from the data; the promise covers the worst
        number.
        """
        if len(self._given) == 1:
            aim, scale = self._alone, self._scale(share)
            failure = self.setting.params.failure
            typical = typical_distance(aim, scale) * widening(self._size, INTERVAL_SHARE, failure)
            worst = distance_bound(aim, outcomes_of(self._size, True), scale, failure)
            return promised(worst, typical, typical, hardest(aim.probability, worst, True))
        failure, counts = self.setting.params.failure, self._cells(share).over(self._most).scales
        base = self._groups.variance * (self.setting.neighbors.changes / (share * self._parts[3])) ** 2
        if self._each_point:
            worst = counts.largest_error(self._size, failure, self._between)
            return promised(worst, math.sqrt(base), math.sqrt(base), _OF_COUNTS)
        scale = self._scale(share)
        searched = choice_variance(max(2, self._size), 1) * scale**2
        rank = smallest_bound(partial(self._ranks_exceed, share), failure / 2)
        search = smallest_bound(partial(self._searches_exceed, scale), failure / 2)
        step = 1.01 * (rank + search) / _STEPS
        bounds: Floats = step * np.arange(_STEPS + 1, dtype=np.float64)
        worst = step * sum_of_errors(
            self._ranks_exceed(share, bounds), self._searches_exceed(scale, bounds), failure
        )
        typical = math.sqrt(base + 2 * (self._widened(scale, rank) * scale) ** 2)
        return promised(worst, typical, math.sqrt(base + searched), _OF_SEARCHES)

    def _widened(self, scale: float, rank: float) -> float:
        """Return by how much an interval makes the typical error of the only search of a cell larger.

        Args:
            scale: of a choice that gets all of a cell's budget, in records.
            rank: by how much the rank that is sought may be off.
        """
        many, own = len(self._given), scale / (1 - PIVOTS)
        width = max(2, self._size // many)
        each = self.setting.params.failure / 2 / many
        reach = math.log(outcomes(width, True)) - math.log(each) + rank / own
        return widened(reach, (1 - PIVOTS) / PIVOTS) / (1 - PIVOTS)

    def _ranks_exceed(self, share: float, bounds: Floats) -> Floats:
        """Bound the probabilities that some edge's noisy rank errs by more than a bound.

        Merging may leave any number of cells. Variances grow with it, except where groups grow by one cell.
        """
        numbers = {self._most, max(1, min(self._most, math.isqrt(self._most) ** 2 - 1))}
        cells = [(number, self._cells(share).over(number).scales) for number in numbers]
        exceeding = [scales.errors_exceed(number, bounds, self._between) for number, scales in cells]
        return np.asarray(np.max(exceeding, axis=0))

    def _searches_exceed(self, scale: float, bounds: Floats) -> Floats:
        """Bound the probabilities that some search errs by more than a bound.

        - Widths of cells and numbers of quantiles in them are the worst ones.
        - A choice with m outcomes that gets one of `parts` parts is wrong by more than x with probability at
          most m e^(-x / (parts scale)), because some outcome is not wrong. Points at which scores end are
          chosen with less than `_NEVER` of the failure probability.
        - The failures of all quantiles are added up. If some of them are sought by choices and others by
          trees, their sum is at most what the worse of both would have for all.
        - Of trees with as many levels, that of the largest fan-out has the most edges, of the largest
          variances.
        """
        many, (choices, trees) = len(self._given), self._worst_cells
        exceeding = [np.zeros(len(bounds))]
        for parts, most in choices.items():
            exceeding.append(many * most * np.exp(-bounds / (parts * scale)))
        for tree in trees:
            exceeding.append(tree.errors_exceed(scale * tree.levels, bounds, many, many))
        return np.asarray(np.max(exceeding, axis=0) + many * _NEVER * self.setting.params.failure)

    @cached_property
    def _worst_cells(self) -> tuple[dict[float, int], list[Shape]]:
        """The most outcomes of a choice for each number of parts, and the largest fan-out for each depth."""
        most, fan_outs = dict[float, int](), dict[int, int]()
        for width in _widths(self._size):
            for parts, found in self._choices(width):
                most[parts] = max(most.get(parts, 0), found)
            if (tree := tree_within(width, len(self._given))) is not None:
                fan_outs[tree.levels] = max(fan_outs.get(tree.levels, 0), tree.fan_out)
        return most, [Shape(fan_out, levels) for levels, fan_out in fan_outs.items()]

    def _choices(self, width: int) -> Iterator[tuple[float, int]]:
        """Give the most parts into which a cell's budget is divided for choices, and a choice's outcomes.

        Choices are made for as many quantiles as no tree is better for. Each gets an equal part. Where they
        are few, `PIVOTS` of the budget may go to the pivots of their intervals.
        """
        many = len(self._given)
        if most := most_chosen(width, many):
            yield most, outcomes(width, False)
            yield most_bracketed(width, many) / (1 - PIVOTS), outcomes(width, True)

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
    def _between(self) -> Between:
        """See `CellsAndSearches.between`."""
        return None if self.setting.neighbors.name == "replace_one" else (self._given[0], self._given[-1])

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
