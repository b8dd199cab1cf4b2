"""What a cdf releases and promises: the cumulative histogram, and the figures computed from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Grid
from core.marks import Mark, Position
from core.rounds import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Promises:
    """What every method of the cdf promises, in records.

    Args:
        kolmogorov_records: every cumulative count is off by at most this. Where the number of records is
            public, this divided by that number bounds the Kolmogorov distance to the data.
        range_error: the count of every range is off by at most this.
        range_standard_error: root mean squared error of a random range's count, before inference.
    """

    kolmogorov_records: float
    range_error: float
    range_standard_error: float


@dataclass(frozen=True)
class Kolmogorov:
    """Bounds of the Kolmogorov distance from the released distribution, as parts of 1.

    Args:
        data: to the distribution of the records.
        population: to the distribution that the records were drawn from, independently.
    """

    data: float
    population: float


@dataclass(frozen=True)
class CountedRange:
    """The count of a range of values, both ends included.

    The records are on a grid. The count is that of the grid points from `first` to `last`. So two ranges that
    share a grid point both count the records there.

    Args:
        low: lower end as asked for, data units.
        high: upper end as asked for, data units.
        first: first grid point that is counted, data units; None where there is none in the range.
        last: last grid point that is counted, data units; None where there is none in the range.
        count: released count.
        standard_error: of the count; see `Range`.
    """

    low: Position
    high: Position
    first: Position | None
    last: Position | None
    count: int
    standard_error: float


@dataclass(frozen=True)
class Result:
    """The answer: the number of records, how close the distribution is, and the counts of the ranges."""

    total: int
    kolmogorov: Kolmogorov
    ranges: tuple[CountedRange, ...]


@dataclass(frozen=True)
class Range:
    """A range query: how many records lie from `low` to `high`, both included.

    Args:
        low: data units.
        high: data units.
        start: number of grid points below the range.
        stop: number of grid points up to its end, the point at `high` included.
        standard_error: standard error of the count, from the noise alone. Inference by least squares is
            taken into account, but not that counts are made to ascend and kept between those without noise,
            which depends on the data.
    """

    low: float
    high: float
    start: int
    stop: int
    standard_error: float


@dataclass(frozen=True)
class Reading:
    """What is computed from the released counts, and bounds of their error. All of it is public.

    Args:
        ranges: the range queries.
        failure: probability with which the bounds may fail.
        error: with probability 1 - failure all counts are within this of the true counts.
        half_error: the same with probability 1 - failure / 2.
        range_error: at once with `error`, the counts of all ranges are within this of the true ones.
        half_range_error: the same at once with `half_error`.
        total_public: whether the number of records is public, and the last count exact.
    """

    ranges: tuple[Range, ...]
    failure: float
    error: float
    half_error: float
    range_error: float
    half_range_error: float
    total_public: bool

    def distance(self, total: int, error: float, range_error: float) -> float:
        """Bound the Kolmogorov distance between released and true distribution of the data.

        If the number n of records is public, the distance is at most `error` / n. Otherwise the released
        total N that divides a count is off too. Let a part p of the records have at most some value, and let
        the released count be p n + e. Then the distance there is |p n + e - p N| / N = |e - p (N - n)| / N.
        That is between the errors e of the records up to the value and e - (N - n) of those above it. Both
        are ranges, so the distance is at most `range_error` / N.
        """
        return min(1.0, (error if self.total_public else range_error) / max(1, total))

    def sampling_error(self, total: int) -> float:
        """Bound the Kolmogorov distance between data and population, with probability 1 - failure / 2.

        For records drawn independently the bound is sqrt(ln(2 / beta) / (2 n)) with beta = failure / 2
        (Dvoretzky, Kiefer and Wolfowitz; constant by Massart 1990).
        """
        fewest = total if self.total_public else total - self.half_error
        return math.sqrt(math.log(4 / self.failure) / (2 * fewest)) if fewest > 0 else 1.0


@dataclass(frozen=True, eq=False)
class Cumulative:
    """The released cumulative histogram: ascending counts. The last one is the number of all records.

    Args:
        counts: counts[i] records have a value of at most i steps, shape (size,).
        reading: what is computed from the counts.
    """

    counts: Ints
    reading: Reading

    def result(self, grid: Grid) -> Result:
        """Return total, ranges and Kolmogorov distances to the data and to the population."""
        reading, total = self.reading, int(self.counts[-1])
        of_data = reading.distance(total, reading.error, reading.range_error)
        from_population = reading.distance(total, reading.half_error, reading.half_range_error)
        return Result(
            total,
            Kolmogorov(of_data, min(1.0, from_population + reading.sampling_error(total))),
            tuple(self._counted(each, grid) for each in reading.ranges),
        )

    def _counted(self, asked: Range, grid: Grid) -> CountedRange:
        first: float | None = None
        last: float | None = None
        if asked.start < asked.stop:
            first, last = grid.restore(np.array([[asked.start], [asked.stop - 1]]))[:, 0].tolist()
        count = self.between(asked.start, asked.stop)
        return CountedRange(asked.low, asked.high, first, last, count, asked.standard_error)

    def between(self, start: int, stop: int) -> int:
        """Return how many records have a value from `start` to `stop` - 1 steps."""
        below = (int(self.counts[end - 1]) if end > 0 else 0 for end in (start, stop))
        return -next(below) + next(below)

    def table(self, grid: Grid) -> dict[str, NDArray[Any]] | None:
        """Return `value` in data units, one row per grid point, and `count`, the records up to it."""
        values = grid.restore(np.arange(len(self.counts))[:, None])[:, 0]
        return {"value": values, "count": self.counts}

    def column_marks(self, grid: Grid) -> Mapping[str, tuple[Mark, int]]:
        """See `core.plan.Tabular.column_marks`."""
        return {"value": (Mark.POSITION, 0)}


def count_values(block: Block) -> Counts:
    """Count the block's records by the value of their only axis."""
    return Counts.of(block.points[:, 0])


def cumulate(aggregate: Counts, size: int) -> Ints:
    """Return how many records have a value of at most i, shape (size,)."""
    counts = np.zeros(size, dtype=np.int64)
    counts[aggregate.keys] = aggregate.counts
    return np.cumsum(counts)


def monotone(estimates: Floats, total: int | None) -> Ints:
    """Return the nearest ascending counts from 0 to `total` (isotonic regression), rounded.

    The true counts ascend too. So, apart from rounding, neither the largest error nor the sum of squared
    errors grows (Hay, Rastogi, Miklau and Suciu 2010).

    Args:
        estimates: shape (size,).
        total: number of records where it is public, else None.
    """
    fitted = scipy.optimize.isotonic_regression(estimates).x
    return np.rint(np.clip(fitted, 0, total)).astype(np.int64)
