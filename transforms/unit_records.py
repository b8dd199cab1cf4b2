"""Make one record of the rows of each unit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from transforms.keep import Keep
from transforms.point_words import number_of_words, points_of, stored
from transforms.row_races import first_hashes, race_of, races_of_copies
from transforms.unit_rows import UnitRows, one_of_each, renumbered

U64 = NDArray[np.uint64]
Steps = NDArray[np.unsignedinteger[Any]]

_HALF = np.uint64(31)
"""Number of bits of the lower half of a coordinate; the upper one has no more."""

_LOWER = np.uint64((1 << 31) - 1)
"""The lower half."""

_MOST = np.uint64(np.iinfo(np.uint64).max)


def kept_by(keep: Keep, grid: Grid, salt: bytes, ordered: bool = False) -> "KeptRows | AddedRows | Extremes":
    """Return how rows of grid points become records, of which each is a point on the grid and in its ball.

    A record is a function of the multiset of the unit's own rows and of the salt. Rows are clamped and
    rounded to the grid before. They are the words of grid points, see `transforms.point_words.point_words`.

    - `one` is one of the rows, each with the same probability.
    - `last` is the row with the greatest value of the order; of several such rows, it is one as for `one`.
    - `mean`, `min`, `max` and `sum` are taken column by column. They are exact in integers, so the order of
      the rows does not matter. A sum is clamped to the domain again.
    - `count` is the number of the rows, clamped to the domain of the only column.
    - What is computed outside of the ball of the domain is projected onto it. A mean of points of a sphere is
      moved onto it.

    Args:
        keep: see above.
        grid: the universe.
        salt: 16 secret bytes.
        ordered: whether two words of order follow those of the point; see `transforms.row_order.order_words`.
    """
    if keep in ("one", "last"):
        return KeptRows(grid, salt, ordered, keep == "last")
    if keep in ("min", "max"):
        return Extremes(grid, ordered, keep == "max")
    return AddedRows(grid, ordered, keep)


@dataclass(frozen=True)
class KeptRows:
    """A row of each unit, `one` or `last`; see `transforms.reduce_units.Reduction`.

    What is merged of a row are its words of order, where `last` compares them, its hash of `race_of`, and its
    point. Copies of a point have hashes of their own, of which the least one counts. The hash of a copy is a
    function of how many copies a unit has, so all of them must be reduced together: those whose first hash
    is the same, as `race_of` numbers them together.

    Args:
        grid: the universe.
        salt: 16 secret bytes.
        ordered: whether rows have two words of order.
        last: whether to compare them.
    """

    grid: Grid
    salt: bytes = field(repr=False)
    ordered: bool
    last: bool

    @property
    def words(self) -> int:
        """Number of words of a row beside its key."""
        return self._many + 2 * self.ordered

    @property
    def state_words(self) -> int:
        """Number of words of what is merged, beside the key."""
        return self._many + 1 + 2 * self.last

    @property
    def _many(self) -> int:
        return number_of_words(self.grid)

    def whole(self, rows: UnitRows) -> tuple[Steps, U64]:
        """Return the records and identities of units from all of their rows."""
        if self.last:
            rows = rows.take(last_rows(rows, rows.words[self._many :]))
        points = rows.with_words(rows.words[: self._many])
        one = keep_one(points, self.salt)
        return points_of([word[one] for word in points.words], self.grid), rows.ids[one]

    @property
    def apart(self) -> Callable[[Sequence[U64]], U64]:
        """What returns the first hash of each row; see `race_of`."""
        return self._first_hashes

    def _first_hashes(self, rows: Sequence[U64]) -> U64:
        points = rows[len(rows) - self.words :][: self._many]
        return first_hashes([rows[0], *points], self.salt)

    def state(self, rows: UnitRows, copies: NDArray[np.int64] | None) -> UnitRows:
        """Return rows with their hashes, of `last` those alone that no other row of the unit follows."""
        copies = np.ones(len(rows.ids), dtype=np.int64) if copies is None else copies
        order: list[U64] = []
        if self.last:
            some = last_rows(rows, rows.words[self._many :])
            rows, copies = rows.take(some), copies[some]
            order = rows.words[self._many :]
        points = rows.words[: self._many]
        some, race = races_of_copies([rows.ids, *points], rows.of_unit, copies, 1, self.salt)
        own = rows.with_words([*order, *points]).take(some)
        return own.with_words([*own.words[: len(order)], race, *own.words[len(order) :]])

    def merged(self, state: UnitRows) -> list[U64]:
        """Return the row of each unit that remains."""
        if self.last:
            state = state.take(last_rows(state, state.words[:2]))
        race, *points = state.words[2 * self.last :]
        kept = least_of_each(race, state.with_words(points))
        return state.rows(kept, [np.take(word, kept) for word in state.words])

    def finished(self, merged: Sequence[U64]) -> tuple[Steps, U64]:
        """Return the records of units, and their identities."""
        return points_of(merged[len(merged) - self._many :], self.grid), merged[0]


@dataclass(frozen=True)
class AddedRows:
    """A mean, a sum or a count of each unit; see `transforms.reduce_units.Reduction`.

    What is merged are the number of rows, and the sums of the upper and of the lower half of each coordinate:
    exact for fewer than 2^32 rows of a unit.

    Args:
        grid: the universe.
        ordered: whether rows have two words of order, which have no meaning here.
        keep: `mean`, `sum` or `count`.
    """

    grid: Grid
    ordered: bool
    keep: Keep

    @property
    def words(self) -> int:
        """Number of words of a row beside its key."""
        return number_of_words(self.grid) + 2 * self.ordered

    @property
    def state_words(self) -> int:
        """Number of words of what is merged, beside the key."""
        return 1 if self.keep == "count" else 1 + 2 * self.grid.dimension

    def whole(self, rows: UnitRows) -> tuple[Steps, U64]:
        """Return the records and identities of units from all of their rows."""
        return self.finished(self.merged(self.state(rows, None)))

    @property
    def apart(self) -> None:
        """None: all rows may be apart."""

    def state(self, rows: UnitRows, copies: NDArray[np.int64] | None) -> UnitRows:
        """Return the number 1 and the halves of each row."""
        words = [np.ones(len(rows.ids), dtype=np.uint64)]
        if self.keep != "count":
            points = points_of(rows.words[: number_of_words(self.grid)], self.grid).astype(np.uint64)
            words += [half for axis in points.T for half in (axis >> _HALF, axis & _LOWER)]
        return rows.with_words(words)

    def merged(self, state: UnitRows) -> list[U64]:
        """Return the sums of each unit."""
        of_unit, first = renumbered(state)
        sums = []
        for word in state.words:
            sums.append(np.zeros(len(first), dtype=np.uint64))
            np.add.at(sums[-1], of_unit, word)
        return state.rows(first, sums)

    def finished(self, merged: Sequence[U64]) -> tuple[Steps, U64]:
        """Return the records of units, and their identities."""
        rows, *halves = merged[len(merged) - self.state_words :]
        if self.keep == "count":
            return records_of_numbers(rows, self.grid), merged[0]
        records = means_of(rows, halves) if self.keep == "mean" else sums_of(rows, halves, self.grid)
        return _on_grid(records, self.grid), merged[0]


@dataclass(frozen=True)
class NumbersOfRows(AddedRows):
    """The number of rows of each unit before it is a record, shape (units,); see `records_of_numbers`."""

    def finished(self, merged: Sequence[U64]) -> tuple[Any, U64]:
        """Return the numbers of rows of units, and their identities."""
        return merged[len(merged) - self.state_words], merged[0]


@dataclass(frozen=True)
class Extremes:
    """The least or the greatest coordinates of each unit; see `transforms.reduce_units.Reduction`.

    Args:
        grid: the universe.
        ordered: whether rows have two words of order, which have no meaning here.
        largest: whether to keep the greatest.
    """

    grid: Grid
    ordered: bool
    largest: bool

    @property
    def words(self) -> int:
        """Number of words of a row beside its key."""
        return number_of_words(self.grid) + 2 * self.ordered

    @property
    def state_words(self) -> int:
        """Number of words of what is merged, beside the key."""
        return self.grid.dimension

    def whole(self, rows: UnitRows) -> tuple[Steps, U64]:
        """Return the records and identities of units from all of their rows."""
        return self.finished(self.merged(self.state(rows, None)))

    @property
    def apart(self) -> None:
        """None: all rows may be apart."""

    def state(self, rows: UnitRows, copies: NDArray[np.int64] | None) -> UnitRows:
        """Return the coordinates of each row."""
        points = points_of(rows.words[: number_of_words(self.grid)], self.grid)
        return rows.with_words(list(points.astype(np.uint64).T))

    def merged(self, state: UnitRows) -> list[U64]:
        """Return the extremes of each unit."""
        of_unit, first = renumbered(state)
        better = np.maximum if self.largest else np.minimum
        extremes = []
        for word in state.words:
            extremes.append(np.full(len(first), 0 if self.largest else _MOST, dtype=np.uint64))
            better.at(extremes[-1], of_unit, word)
        return state.rows(first, extremes)

    def finished(self, merged: Sequence[U64]) -> tuple[Steps, U64]:
        """Return the records of units, and their identities."""
        records = np.stack(merged[len(merged) - self.state_words :], axis=1).astype(np.int64)
        return _on_grid(records, self.grid), merged[0]


def records_of_numbers(numbers: U64, grid: Grid) -> Steps:
    """Return the records of units that are their numbers of rows, shape (units,)."""
    return _on_grid(count_of(numbers, grid), grid)


def _on_grid(records: Points, grid: Grid) -> Steps:
    """Return what was computed from all rows of units on the grid and in its ball."""
    if grid.geography is not None:
        records = np.clip(np.rint(grid.onto(records)).astype(np.int64), 0, np.asarray(grid.extents))
    elif grid.ball is not None:
        records = grid.quantize(grid.place(records))
    return records.astype(stored(grid), order="F")


def last_rows(rows: UnitRows, order: Sequence[U64]) -> NDArray[np.int64]:
    """Return the indices of those rows of each unit that no other row of the unit follows.

    A unit has several such rows where their words are equal.

    Args:
        rows: the rows.
        order: words of each row, shape (n,) each, of which the first is compared first.
    """
    last = np.arange(len(rows.of_unit))
    for word in order:
        greatest = np.zeros(rows.numbers, dtype=np.uint64)
        np.maximum.at(greatest, rows.of_unit[last], word[last])
        last = last[word[last] == greatest[rows.of_unit[last]]]
    return last


def keep_one(rows: UnitRows, salt: bytes) -> NDArray[np.int32]:
    """Return the index of the row that each unit keeps, in the order of the units' numbers.

    Args:
        rows: the rows.
        salt: 16 secret bytes.
    """
    return least_of_each(race_of([rows.ids, *rows.words], rows.of_unit, salt), rows)


def least_of_each(race: U64, rows: UnitRows) -> NDArray[np.int32]:
    """Return the index of the row of each unit with the least hash, in the order of the units' numbers.

    Args:
        race: shape (n,), hash of each row.
        rows: the rows, whose words are those of points. Of equal hashes the smallest point wins.
    """
    least = np.full(rows.numbers, _MOST, dtype=np.uint64)
    np.minimum.at(least, rows.of_unit, race)
    won = np.flatnonzero(race == np.take(least, rows.of_unit, mode="clip"))
    kept = one_of_each(won, rows)
    if len(won) > len(kept):  # the smallest point is written last
        kept = one_of_each(won[np.lexsort([word[won] for word in rows.words])][::-1], rows)
    return kept


def means_of(rows: U64, halves: Sequence[U64]) -> Points:
    """Return means of points rounded to the grid (halves up), shape (units, d).

    This is long division by halves, which is exact for fewer than 2^32 rows.

    Args:
        rows: shape (units,), number of rows.
        halves: shape (units,) each: of each axis the sums of the upper and of the lower halves, grid steps.
    """
    means = []
    for upper, lower in zip(halves[::2], halves[1::2], strict=True):
        mean, rest = np.divmod(upper, rows)
        digit, rest = np.divmod((rest << _HALF) + lower, rows)
        means.append((mean << _HALF) + digit + (np.uint64(2) * rest >= rows))
    return np.stack(means, axis=1).astype(np.int64)


def sums_of(rows: U64, halves: Sequence[U64], grid: Grid) -> Points:
    """Return sums of points in data units, shape (units, d), on the grid.

    Of n rows at k_1, k_2, ... steps above `lower`, the sum is n lower + step (k_1 + k_2 + ...), which is
    k_1 + k_2 + ... + (n - 1) lower / step steps above `lower`. This is computed in integers of any size, with
    bounds and step taken as the decimal numbers that they are written as. It is rounded to the grid (halves
    up), and then clamped to it.

    Args:
        rows: shape (units,), number of rows.
        halves: see `means_of`.
        grid: the universe.
    """
    further = rows.astype(object) - 1
    sums = np.empty((len(rows), grid.dimension), dtype=np.int64)
    for axis, (low, extent) in enumerate(zip(grid.lower, grid.extents, strict=True)):
        total = halves[2 * axis].astype(object) * (1 << int(_HALF)) + halves[2 * axis + 1].astype(object)
        origin = Fraction(str(low)) / Fraction(str(grid.step))
        over, under = origin.as_integer_ratio()
        rounded = (2 * (total * under + further * over) + under) // (2 * under)
        sums[:, axis] = np.minimum(np.maximum(rounded, 0), extent).astype(np.int64)
    return sums


def count_of(rows: U64, grid: Grid) -> Points:
    """Return numbers of rows on the grid of one axis, shape (units, 1).

    Args:
        rows: shape (units,), number of rows.
        grid: the universe of the counts, in data units.
    """
    counts = rows.astype(np.int64)[:, None]
    return grid.quantize(counts if grid.wide else counts.astype(np.float64))
