"""What the tasks quantiles, median and minimum release and promise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.domain import Grid
from core.task import Accuracy


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
    """The answer to several quantiles: probabilities, and a value in data units for each."""

    probabilities: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class ValueResult:
    """The answer to one quantile: its value, and the scale of its noise where released, in data units."""

    value: float
    scale: float | None


@dataclass(frozen=True)
class FoundQuantiles:
    """The released quantiles.

    Args:
        probabilities: ascending, in (0, 1).
        steps: grid point of each, ascending.
    """

    probabilities: tuple[float, ...]
    steps: tuple[int, ...]

    def result(self, grid: Grid) -> Result:
        """Return probabilities and values in data units."""
        values = grid.restore(np.array(self.steps)[:, None])[:, 0]
        return Result(self.probabilities, tuple(values.tolist()))


@dataclass(frozen=True)
class FoundValue:
    """The released value of one quantile.

    Args:
        step: its grid point.
        scale: released scale of its noise, in steps; None where it was not asked for.
    """

    step: int
    scale: float | None = None

    def result(self, grid: Grid) -> ValueResult:
        """Return value and scale in data units."""
        (value,) = grid.restore(np.array([[self.step]]))[:, 0].tolist()
        return ValueResult(value, None if self.scale is None else self.scale * grid.step)


def in_order(probabilities: tuple[float, ...], steps: Sequence[int]) -> FoundQuantiles:
    """Return the quantiles in ascending order. Sorting does not increase the largest error of a rank."""
    return FoundQuantiles(probabilities, tuple(sorted(steps)))


def promised(worst: float, typical: float, error: float) -> Accuracy:
    """Return what a method of several quantiles promises.

    Args:
        worst: largest error of a rank, in records.
        typical: see `Promises`.
        error: the figure by which methods are compared: see `core.quantiles.task`.
    """
    memory = (
        "The counts of the distinct grid points are merged and sorted on one machine: 16 bytes for each in "
        "the result and about 100 at work, at most as many as records or grid points."
    )
    return Accuracy(Promises(math.ceil(worst), typical), error=error, notes=(memory,))
