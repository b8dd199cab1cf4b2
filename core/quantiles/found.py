"""What the tasks quantiles, median and minimum release and promise."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np

from core.domain import Grid
from core.marks import Length, Mark, Position
from core.task import Accuracy
from core.tightness import Tightness


@dataclass(frozen=True)
class Promises:
    """What every method promises, in records; None for smooth sensitivity, whose error depends on the data.

    Args:
        rank_error: every released point is within so many records of its rank, on any data. The rank of the
            p-quantile of n records is p n. A point has all ranks from the number of records below it to the
            number of records below or at it.
        typical_rank_error: root mean square error of a rank if the records are dense, averaged over where the
            quantiles may lie.
    """

    rank_error: int | None
    typical_rank_error: float | None


@dataclass(frozen=True)
class Result:
    """The answer to several quantiles, in data units.

    Args:
        probabilities: of the quantiles.
        values: one for each.
        lows: lower ends of the intervals; see `FoundQuantiles`.
        highs: upper ends.
    """

    probabilities: tuple[float, ...]
    values: tuple[Position, ...]
    lows: tuple[Position, ...] | None = None
    highs: tuple[Position, ...] | None = None


@dataclass(frozen=True)
class ValueResult:
    """The answer to one quantile, in data units.

    Args:
        value: the released value.
        scale: of its noise; None where it is not released.
        low: lower end of an interval that holds the true quantile with probability 1 - failure, or None.
        high: its upper end, or None.
    """

    value: Position
    scale: Length | None
    low: Position | None = None
    high: Position | None = None


@dataclass(frozen=True)
class ColumnResult(ValueResult):
    """The answer to one quantile of one of several columns; all intervals hold at once.

    Args:
        rank_error: what the column promises; see `Promises`.
        typical_rank_error: the same.
    """

    rank_error: int | None = None
    typical_rank_error: float | None = None


@dataclass(frozen=True)
class ColumnsResult:
    """The answer to one quantile of several columns.

    Args:
        columns: of each column, in the order of the job's columns.
    """

    columns: Annotated[tuple[ColumnResult, ...], Mark.AXES]


@dataclass(frozen=True)
class FoundQuantiles:
    """The released quantiles, and intervals of grid points that hold the true ones.

    With probability 1 - failure every interval holds a point that has the rank p n of its quantile. This is
    for all intervals at once.

    Args:
        probabilities: ascending, in (0, 1).
        steps: grid point of each, ascending.
        intervals: lowest and highest grid point of each; None where they were not paid for.
    """

    probabilities: tuple[float, ...]
    steps: tuple[int, ...]
    intervals: tuple[tuple[int, int], ...] | None = None

    def result(self, grid: Grid) -> Result:
        """Return probabilities, values and intervals in data units."""

        def units(steps: Sequence[int]) -> tuple[float, ...]:
            return tuple(grid.restore(np.array(steps)[:, None])[:, 0].tolist())

        if self.intervals is None:
            return Result(self.probabilities, units(self.steps))
        lows, highs = zip(*self.intervals, strict=True)
        return Result(self.probabilities, units(self.steps), units(lows), units(highs))


@dataclass(frozen=True)
class FoundValue:
    """The released value of one quantile.

    Args:
        step: its grid point.
        scale: released scale of its noise, in steps; None where it was not asked for.
        interval: lowest and highest grid point of an interval that holds a point of the wanted rank; None
            where it was not asked for.
    """

    step: int
    scale: float | None = None
    interval: tuple[int, int] | None = None

    def result(self, grid: Grid) -> ValueResult:
        """Return value, scale and interval in data units."""
        steps = [self.step, *(self.interval or ())]
        value, *ends = grid.restore(np.array(steps)[:, None])[:, 0].tolist()
        low, high = ends or (None, None)
        return ValueResult(value, None if self.scale is None else self.scale * grid.step, low, high)


@dataclass(frozen=True)
class FoundColumns:
    """The released values of one quantile of several columns.

    Args:
        columns: of each column.
        errors: what each column promises.
    """

    columns: tuple[FoundValue, ...]
    errors: tuple[Promises, ...]

    def result(self, grid: Grid) -> ColumnsResult:
        """Return values, scales and intervals in data units, beside what each column promises."""
        results = []
        for at, (found, error) in enumerate(zip(self.columns, self.errors, strict=True)):
            alone = found.result(Grid((grid.lower[at],), (grid.upper[at],), grid.step))
            results.append(ColumnResult(**asdict(alone), **asdict(error)))
        return ColumnsResult(tuple(results))


def in_order(
    probabilities: tuple[float, ...],
    steps: Sequence[int],
    lows: Sequence[int] | None = None,
    highs: Sequence[int] | None = None,
) -> FoundQuantiles:
    """Return the quantiles in ascending order. Sorting does not increase the largest error of a rank.

    True quantiles ascend. So the ends of their intervals may be sorted, too. An interval is widened to hold
    the released point.

    Args:
        probabilities: ascending.
        steps: grid point of each.
        lows: lowest point of each interval, or None.
        highs: highest point of each interval, or None.
    """
    steps = sorted(steps)
    if lows is None or highs is None:
        return FoundQuantiles(probabilities, tuple(steps))
    wide = (
        (min(low, at), max(high, at))
        for low, at, high in zip(sorted(lows), steps, sorted(highs), strict=True)
    )
    return FoundQuantiles(probabilities, tuple(steps), tuple(wide))


def promised(worst: float, typical: float, error: float, tightness: Tightness, *notes: str) -> Accuracy:
    """Return what a method of several quantiles promises.

    Args:
        worst: largest error of a rank, in records.
        typical: see `Promises`.
        error: the figure by which methods are compared.
        tightness: of the promised rank error.
        notes: sentences for the person who reads the plan.
    """
    promises = Promises(math.ceil(worst), typical)
    return Accuracy(promises, error=error, notes=notes, tightness={"rank_error": tightness})
