"""Both bounds of every column by the exponential mechanism on ranks, over round numbers."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Tally
from core.bounds.found import FoundBounds, Promises
from core.bounds.params import Bounds
from core.bounds.round_numbers import round_numbers
from core.draws import Charged, Draw
from core.gaps import Order
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.quantiles.aim import Aim
from core.quantiles.exponential import distance_bound, per_weight
from core.rounds import Block
from core.task import Accuracy, Method
from core.tightness import Tightness

Ints = NDArray[np.int64]

_TIGHTNESS = Tightness(
    "Each bound is sought so many rows inside of the last one that it does not lie beyond all rows, and may "
    "miss by as many to the inside, which a half of the promise allows for. That happens where many rows "
    "have one value beside a gap. On spread values, less than half of what is promised lies outside.",
    reached=False,
)


@dataclass(frozen=True)
class End:
    """One bound of one column.

    Args:
        aim: the rank at which it is sought.
        draw: chooses it, per unit of the larger weight of a record.
    """

    aim: Aim
    draw: Exponential


@dataclass(frozen=True)
class FindBounds:
    """Release a lower and an upper bound of every column, each one of m round numbers e_0 < ... < e_(m-1).

    A lower bound e_i stands for the values in [e_i, e_(i+1)), and an upper bound for those in (e_(i-1), e_i].
    So each record has one of the m numbers as its lower, and one as its upper. Both are known from the cell
    of its value: 2 i for e_i itself, and 2 i + 1 for the values between e_i and e_(i+1). A bound is a
    quantile of these numbers, chosen by the exponential mechanism on ranks; see `core.quantiles.aim.Aim`.

    Sensitivity: a record more or less is one of these numbers more or less, in each of the 2 d lists of
    numbers, whatever its values are. So each draw has the sensitivity of a quantile: the changes of the
    scores have a range of at most twice the larger weight of a record. A replacement is two such changes. The
    draws are of the same records, and compose in sequence.

    What follows from the chosen numbers is public: they are put in order, and where they are equal, one of
    them is moved to the next round number, because a domain must have a width.

    Args:
        numbers: of each column, the round numbers in grid steps, ascending.
        ends: of each column, the lower bound and the upper bound.
    """

    numbers: tuple[tuple[int, ...], ...]
    ends: tuple[tuple[End, End], ...]
    purpose: ClassVar[str] = "for each column, round numbers between which nearly all rows lie"
    name: str = "bounds"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return tuple(end.draw for ends in self.ends for end in ends)

    def summarize(self, block: Block, state: None) -> Tally:
        """Count the records in each cell, one column after the other, shape (sum of 2 m - 1,)."""
        counts = []
        for column, numbers in enumerate(self.numbers):
            points = block.points[:, column]
            cells = np.searchsorted(numbers, points) + np.searchsorted(numbers, points, side="right") - 1
            counts.append(np.bincount(cells, minlength=2 * len(numbers) - 1))
        return Tally(np.concatenate(counts).astype(np.int64))

    def release(self, aggregate: Tally, state: None, noise: Noise) -> FoundBounds:
        """Choose both bounds of each column."""
        sizes = [2 * len(numbers) - 1 for numbers in self.numbers]
        found = []
        for numbers, ends, cells in zip(
            self.numbers, self.ends, np.split(aggregate.totals, np.cumsum(sizes)[:-1]), strict=True
        ):
            below, above = np.append(cells, 0), np.append(0, cells)  # each number with the cell on one side
            low, high = sorted(
                _chosen(end, side.reshape(-1, 2).sum(axis=1), noise)
                for end, side in zip(ends, (below, above), strict=True)
            )
            found.append([numbers[at] for at in _apart(low, high, len(numbers))])
        lower, upper = zip(*found, strict=True)
        return FoundBounds(lower, upper)


def _chosen(end: End, counts: Ints, noise: Noise) -> int:
    """Choose one of the numbers, given how many records have each; return its index."""
    order = Order(np.arange(len(counts)), np.append(0, np.cumsum(counts)))
    return end.aim.point(order, len(counts), end.draw, noise)


def _apart(low: int, high: int, size: int) -> tuple[int, int]:
    """Return two of `size` indices in order, moved apart where they are equal."""
    if low < high:
        return low, high
    return (low, high + 1) if high + 1 < size else (low - 1, high)


class FindBoundsByRank(Method[Bounds]):
    """Each bound is a quantile of round numbers, sought some records inside of the share that is asked for.

    Let p be half of `outside`, m the number of round numbers, and E the bound of `distance_bound` with the
    part of the failure probability that one bound gets. Let s = floor(E) + 1.

    1. The lower bound is sought at rank w = p n + s. If w > n, the promise below allows all n records.
    2. Otherwise some number has rank w. So the chosen one has a rank within E of w, but for the failure.
    3. It has all ranks from the number of records below it. So at most p n + s + E records are below it.
    4. It has ranks up to the number of records below the next round number, and this is at least w - E > 0.
       So it is no lower than the largest round number that no record is below. If n >= 2 s / (1 - p), then
       w + E < n, so that it is not above all records either.
    5. The upper bound is the mirror image. If they cross, then putting them in order loses no records.
    6. So at most 2 p n + 2 (s + floor(E)) records lie outside of the bounds of a column, and among as many
       records as 4 says, no bound is beyond the round number that is next to the outermost record.

    The draws share epsilon equally.
    """

    name: ClassVar[str] = "exponential"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        numbers = tuple(tuple(each.tolist()) for each in self._numbers)
        ends = tuple(
            (self._end(share, column, upper=False), self._end(share, column, upper=True))
            for column in range(len(numbers))
        )
        return (FindBounds(numbers, ends),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        worst = max(math.floor(self._bound(share, column)) for column in range(len(self._numbers)))
        enough = math.ceil(2 * (worst + 1) / (1 - self.setting.params.outside / 2))
        note = (
            f"Each bound is sought {worst + 1:,} rows inside of the share that may lie outside. Among fewer "
            f"than {enough:,} rows bounds may be anywhere in the domain, and are often far too wide."
        )
        promises = Promises(2 * (2 * worst + 1))
        return Accuracy(
            promises,
            error=promises.records_outside,
            notes=(note,),
            tightness={"records_outside": _TIGHTNESS},
        )

    @cached_property
    def _numbers(self) -> tuple[Ints, ...]:
        grid = self.setting.grid
        return tuple(round_numbers(grid, axis) for axis in range(grid.dimension))

    def _end(self, share: float, column: int, upper: bool) -> End:
        """Return a bound of a column."""
        inside, side = math.floor(self._bound(share, column)) + 1, self._lower
        if upper:
            aim = replace(side, probability=1 - side.probability, shift=-inside)
        else:
            aim = replace(side, shift=inside)
        what = f"{'upper' if upper else 'lower'} bound of column {column}"
        return End(aim, per_weight(what, self._epsilon(share), self.setting.neighbors))

    @property
    def _lower(self) -> Aim:
        """The aim of a lower bound before it is moved inside; that of an upper one has the same weight."""
        return Aim(self.setting.params.outside / 2, self.setting.neighbors.name == "replace_one")

    def _epsilon(self, share: float) -> float:
        """Part of epsilon of one bound."""
        return share * self.setting.budget.epsilon / (2 * len(self._numbers))

    def _bound(self, share: float, column: int) -> float:
        """Bound the distance of a chosen number from its rank, in records."""
        draws = 2 * len(self._numbers)
        scale = self.setting.neighbors.changes / self._epsilon(share)
        failure = self.setting.params.failure / draws
        return distance_bound(self._lower, len(self._numbers[column]), scale, failure)
