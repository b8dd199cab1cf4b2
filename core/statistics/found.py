"""What statistics promise and answer: measures of all records, or a table of the measures of groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Keys
from core.domain import Grid
from core.grouping import Grouping, key_columns
from core.marks import Mark
from core.statistics.quantities import Quantity
from core.statistics.ranks import Ranks

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Estimate = tuple[Floats, Floats]
"""Values, and their standard errors."""

Ends = tuple[Floats, Floats] | None
"""Lower and upper ends of intervals, if there are any."""


@dataclass(frozen=True)
class Promises:
    """What statistics promise of each group. With public keys or none, all groups keep them at once.

    Args:
        count_error: the number of rows is off by at most this.
        units_error: the number of units is off by at most this.
        sum_error: a sum is off by at most this times the largest absolute value of its column's bounds.
        mean_error: a mean, times the released number of rows, is off by at most this times half of the
            column's range.
        found_from: with private keys, a group in which at least this many units keep rows is released.
        rank_error: a quantile is within so many rows of its rank; see `core.quantiles.found.Promises`.
        extreme_error: a minimum or maximum is within so many rows of the end of all.
    """

    count_error: int | None
    units_error: int | None
    sum_error: float | None
    mean_error: float | None
    found_from: int | None
    rank_error: int | None = None
    extreme_error: int | None = None


@dataclass(frozen=True)
class Value:
    """A measure in data units, and its standard error; both None where too few rows were counted.

    Args:
        measure: its name.
        column: number of its column, from 0 on; None for a number of rows or units.
        value: data units, or squared data units for a variance.
        error: its standard error from the noise, the same unit. That of a quantile, a minimum or a maximum is
            of its rank, in rows, if few rows share a value and values have no large gaps.
        low: of a quantile, the lower end of an interval that holds the true one, but for the failure
            probability; None for others.
        high: the upper end.
    """

    measure: str
    column: int | None
    value: float | None
    error: float | None
    low: float | None = None
    high: float | None = None

    @staticmethod
    def marks(values: Mapping[str, Any]) -> tuple[int, Mapping[str, Mark]]:
        """See `core.marks.translate`."""
        return values["column"] or 0, marks_of(values["measure"])


def marks_of(measure: str) -> dict[str, Mark]:
    """Return which fields of a `Value` of this measure are on its axis, or lengths.

    A mean may lie between two points of the grid. A sum has no position, because it depends on where an axis
    begins, and a variance is in squared steps.
    """
    if measure == "mean":
        return {"value": Mark.BETWEEN, "error": Mark.LENGTH}
    if measure.startswith(("quantile", "minimum", "maximum")):
        return dict.fromkeys(("value", "low", "high"), Mark.POSITION)
    return {}


@dataclass(frozen=True)
class Result:
    """The answer.

    Args:
        groups: number of released groups; None without groups.
        values: the measures, in the order of `params.measures`, column by column; empty with groups.
    """

    groups: int | None
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Reading:
    """How noisy totals become measures; public.

    Let n be the noisy number of rows, S the noisy sum of a column's steps from its center c, and Q the noisy
    sum of the squares about its middle. Then in steps

        sum = S + (lower / step + c) n,    mean = c + S / n,    variance = E[(x - m)^2] - (mean - m)^2,

    where m is the middle of the column and E[(x - m)^2] = 2^shift (Q / n + middle). With z and w the noise of
    S and n, the mean is off by exactly (z - (true mean - c) w) / n. So its standard error is computed with
    the released mean for the true one, and in the same way that of a mean square.

    From a pair (A, B) of noisy sums, from the lower bound and to the upper one of a column of W steps, follow
    n = (A + B) / W, and S = A with c = 0; see `core.statistics.shares.pair`. Where a unit may have several
    rows in a group, n may follow from `units` and `excess`, and the number of units from what is tied to
    `missing`; see `core.statistics.shares`. Such numbers are rounded where they are released, and nowhere
    else.

    Released numbers of rows and units, and sums of columns whose bounds are on one side of 0, are moved to 0
    where the noise brings them to the other side. The truth is not there, so this makes no error larger, and
    standard errors hold. It makes numbers of groups that are all but empty too large on average.

    Args:
        measures: the names.
        quantities: what was summed up.
        deviations: standard deviation of the noise of each quantity.
        columns: number of columns.
        ranks: what is released of ranks, which needs no totals.
        whole: standard deviations of the released numbers of rows and of units, with rounding.
    """

    measures: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    deviations: tuple[float, ...]
    columns: int
    ranks: tuple[Ranks, ...] = ()
    whole: tuple[float, float] = (0.0, 0.0)

    def _of(self, kind: str, axis: int = 0) -> int | None:
        """Return which quantity it is, or None."""
        for i, quantity in enumerate(self.quantities):
            if quantity.kind == kind and quantity.axis == axis:
                return i
        return None

    def _noisy(self, kind: str, totals: Ints, axis: int = 0) -> tuple[Floats, float]:
        i = self._of(kind, axis)
        if i is None:
            return np.zeros(len(totals)), 0.0
        return totals[:, i].astype(np.float64), self.deviations[i]

    def names(self) -> list[tuple[str, int | None]]:
        """Return each measure with its column; None for a number of rows or units."""
        found: list[tuple[str, int | None]] = []
        for measure in self.measures:
            counts = measure in ("count", "units")
            found += [(measure, axis) for axis in ([None] if counts else range(self.columns))]
        return found

    def column_name(self, measure: str, axis: int | None) -> str:
        """Return the name of a measure's column in a table."""
        return measure if axis is None or self.columns == 1 else f"{measure}_{axis}"

    def rank(self, measure: str, axis: int | None) -> int | None:
        """Return which of all released ranks a measure is; None where it is none."""
        names = [(name, each.sought.axis) for each in self.ranks for name in each.sought.names]
        return names.index((measure, axis)) if axis is not None and (measure, axis) in names else None

    def ranked(self, rank: int, steps: Ints, grid: Grid) -> tuple[Floats, float, Ends]:
        """Return the values of a rank in data units, their standard error in rows, and the intervals.

        Args:
            rank: see `rank`.
            steps: grid points, shape (m, ranks, 3); see `Ranks.release`.
            grid: the universe.
        """
        of = [each for each in self.ranks for _ in each.sought.names][rank]
        axis = of.sought.axis
        line = Grid((grid.lower[axis],), (grid.upper[axis],), grid.step)
        values, low, high = (line.restore(steps[:, rank, i, None])[:, 0] for i in range(3))
        return values, of.typical, None if of.sought.extreme else (low, high)

    def estimate(self, measure: str, axis: int | None, totals: Ints, grid: Grid) -> Estimate:
        """Return a measure of each group and its standard error, data units; NaN where n is below 1."""
        if measure in ("count", "units"):
            numbers, error = (self.rows, self.whole[0]) if measure == "count" else (self.units, self.whole[1])
            return np.maximum(0, np.floor(numbers(totals)[0] + 1 / 2)), np.full(len(totals), error)
        column = axis or 0
        if measure == "sum":
            sums, errors = self._sum(column, totals, grid)
            least = 0 if grid.lower[column] >= 0 else -np.inf
            return np.clip(sums, least, 0 if grid.upper[column] <= 0 else np.inf), errors
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._moment(measure, column, totals, grid)

    def rows(self, totals: Ints) -> tuple[Floats, float]:
        """Return the number of rows of each group, not rounded, and the standard deviation of its noise."""
        if self._of("above") is not None:
            (above, noise), (below, _) = self._noisy("above", totals), self._noisy("below", totals)
            extent = self._quantity("above").extent
            return (above + below) / extent, math.sqrt(2) * noise / extent
        if self._of("excess") is not None:
            (units, of_units), (excess, noise) = self._noisy("units", totals), self._noisy("excess", totals)
            both = self._quantity("excess").rows + 1
            return (excess + both * units) / 2, math.hypot(noise, both * of_units) / 2
        return self._noisy("rows", totals)

    def units(self, totals: Ints) -> tuple[Floats, float]:
        """Return the number of units of each group, not rounded, and its standard deviation."""
        if self._of("missing") is not None:
            missing = self._quantity("missing")
            kinds = ("above", "below") if self._of("above") is not None else ("rows",)
            (first, noise), *others = (self._noisy(kind, totals) for kind in (*kinds, "missing"))
            added = first + sum(sums for sums, _ in others)
            one = missing.extent * missing.rows
            return np.asarray(added / one), math.sqrt(1 + len(others)) * noise / one
        return self._noisy("units", totals) if self._of("units") is not None else self.rows(totals)

    @property
    def unrounded(self) -> tuple[float, float]:
        """Standard deviations of the numbers of rows and of units before they are rounded."""
        none = np.zeros((0, len(self.quantities)), np.int64)
        return self.rows(none)[1], self.units(none)[1]

    def _sum(self, axis: int, totals: Ints, grid: Grid) -> Estimate:
        if self._of("unit_sum", axis) is not None:
            clamped, deviation = self._noisy("unit_sum", totals, axis)
            return clamped * grid.step, np.full(len(totals), deviation * grid.step)
        rows, of_rows = self.rows(totals)
        if self._of("above") is not None:
            above, noise = self._noisy("above", totals)
            low, extent = grid.lower[axis], grid.extents[axis]
            error = math.hypot(low, low + extent * grid.step) / extent * noise
            return low * rows + above * grid.step, np.full(len(totals), error)
        sums, of_sums = self._noisy("sum", totals, axis)
        center = grid.lower[axis] + self._center(axis) * grid.step
        error = math.hypot(of_sums * grid.step, center * of_rows)
        return sums * grid.step + center * rows, np.full(len(totals), error)

    def _moment(self, measure: str, axis: int, totals: Ints, grid: Grid) -> Estimate:
        if self._of("above") is not None:
            return self._mean_of_pair(axis, totals, grid)
        (rows, of_rows), (sums, of_sums) = self.rows(totals), self._noisy("sum", totals, axis)
        n, center, extent = np.where(rows >= 1, rows, np.nan), self._center(axis), grid.extents[axis]
        mean = np.clip(sums / n, -center, extent - center)
        mean_error = np.hypot(of_sums, mean * of_rows) / n
        if measure == "mean":
            return grid.lower[axis] + (center + mean) * grid.step, mean_error * grid.step
        i = self._of("squares", axis)
        squared = self.quantities[0 if i is None else i]
        squares, of_squares = self._noisy("squares", totals, axis)
        middled, about = squares / n, mean + center - squared.center
        square = np.clip((middled + squared.middle) * 2.0**squared.shift, 0, None)
        variance = np.clip(square - about**2, 0, extent**2 / 4)
        # The noise of n enters the mean square and the square of the mean with opposite signs.
        scale = 2.0**squared.shift
        by_rows = (2 * about * mean - scale * middled) * of_rows
        error = np.sqrt(by_rows**2 + (scale * of_squares) ** 2 + (2 * about * of_sums) ** 2) / n
        return variance * grid.step**2, error * grid.step**2

    def _mean_of_pair(self, axis: int, totals: Ints, grid: Grid) -> Estimate:
        (rows, _), (above, noise) = self.rows(totals), self._noisy("above", totals)
        n, extent = np.where(np.rint(rows) >= 1, rows, np.nan), grid.extents[axis]
        part = np.clip(above / n / extent, 0, 1)
        error = noise * np.hypot(1 - part, part) / n
        return grid.lower[axis] + part * extent * grid.step, error * grid.step

    def _quantity(self, kind: str) -> Quantity:
        return next(quantity for quantity in self.quantities if quantity.kind == kind)

    def _center(self, axis: int) -> int:
        i = self._of("sum", axis)
        return 0 if i is None else self.quantities[i].center


@dataclass(frozen=True, eq=False)
class Totals:
    """The released totals of all records.

    Args:
        totals: noisy, shape (1, q).
        reading: how they become measures.
        steps: grid points of ranks, shape (1, r, 3); see `Ranks.release`.
    """

    totals: Ints
    reading: Reading
    steps: Ints

    def result(self, grid: Grid) -> Result:
        """Return the measures in data units."""
        values = []
        for measure, axis in self.reading.names():
            rank = self.reading.rank(measure, axis)
            if rank is not None:
                at, error, ends = self.reading.ranked(rank, self.steps, grid)
                low, high = (None, None) if ends is None else (float(end[0]) for end in ends)
                values.append(Value(measure, axis, float(at[0]), error, low, high))
                continue
            value, error = (
                float(each[0]) for each in self.reading.estimate(measure, axis, self.totals, grid)
            )
            known = not math.isnan(value)
            value = value if axis is not None else int(value)
            values.append(Value(measure, axis, value if known else None, error if known else None))
        return Result(None, tuple(values))


@dataclass(frozen=True, eq=False)
class Groups:
    """The released groups and their totals.

    Args:
        labels: shape (m,), bytes.
        totals: noisy, shape (m, q).
        reading: how totals become measures.
        grouping: the key columns.
        steps: grid points of ranks, shape (m, r, 3); see `Ranks.release`.
    """

    labels: Keys
    totals: Ints
    reading: Reading
    grouping: Grouping
    steps: Ints

    @classmethod
    def joined(cls, parts: Sequence["Groups"]) -> "Groups":
        """Join tables that have no group in common, at least one."""
        labels: Any = np.concatenate([part.labels for part in parts])
        order = np.argsort(labels, kind="stable")
        totals, steps = (np.concatenate([getattr(p, name) for p in parts]) for name in ("totals", "steps"))
        return cls(labels[order], totals[order], parts[0].reading, parts[0].grouping, steps[order])

    @property
    def first(self) -> Totals | None:
        """What was released of the first group, as if there were no others; None where there are none."""
        if not len(self.labels):
            return None
        return Totals(self.totals[:1], self.reading, self.steps[:1])

    def result(self, grid: Grid) -> Result | None:
        """Return the number of released groups; None where there are none."""
        return Result(len(self.labels), ()) if len(self.labels) else None

    def table(self, grid: Grid) -> dict[str, NDArray[Any]] | None:
        """Return one row per released group; see `columns`."""
        return self.columns(grid) if len(self.labels) else None

    def columns(self, grid: Grid) -> dict[str, NDArray[Any]]:
        """Return the key columns, then for each measure its value and `..._error`, its standard error.

        A measure of the i-th column has the name `mean_i`, and without i where there is one column. Quantiles
        also have `..._low` and `..._high`, the ends of their intervals; see `Value`.
        """
        found = key_columns(self.labels, self.grouping)
        for measure, axis in self.reading.names():
            name = self.reading.column_name(measure, axis)
            rank = self.reading.rank(measure, axis)
            if rank is not None:
                found[name], of_rank, ends = self.reading.ranked(rank, self.steps, grid)
                found[f"{name}_error"] = np.full(len(self.labels), of_rank)
                if ends is not None:
                    found[f"{name}_low"], found[f"{name}_high"] = ends
                continue
            value, error = self.reading.estimate(measure, axis, self.totals, grid)
            if axis is None:
                found[name] = value.astype(np.int64)
            else:
                found[name] = value
            found[f"{name}_error"] = error
        return found

    def column_marks(self, grid: Grid) -> Mapping[str, tuple[Mark, int]]:
        """See `core.plan.Tabular.column_marks`."""
        found = {}
        for measure, axis in self.reading.names():
            name = self.reading.column_name(measure, axis)
            for field, mark in marks_of(measure).items():
                found[name if field == "value" else f"{name}_{field}"] = (mark, axis or 0)
        return found
