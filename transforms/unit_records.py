"""Make one record of the rows of each unit."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.sampling import scramble
from transforms.keep import Keep
from transforms.keyed_blocks import keyed_blocks
from transforms.point_words import points_of, stored
from transforms.sorted_words import sorted_words
from transforms.unit_rows import UnitRows, one_of_each, renumbered

U64 = NDArray[np.uint64]
Steps = NDArray[np.unsignedinteger[Any]]

_ROW = 0x6B657074
"""Tweak of the hash that chooses rows. No sampling of records uses it."""

_LIMB = 16
"""Number of bits of a coordinate that a mean sums at a time."""

_HALF = 31
"""Number of bits of a coordinate that a sum adds up at a time."""

_FEW = 16
"""Number of repeated hashes from which on all hashes are sorted."""


def unit_records(
    rows: UnitRows, grid: Grid, keep: Keep, salt: bytes, order: Sequence[U64] = ()
) -> tuple[Steps, U64]:
    """Return the records of units, shape (units, d), on the grid and in its ball, and their identities.

    A record is a function of the multiset of the unit's own rows and of the salt. Rows are clamped and
    rounded to the grid before.

    - `one` is one of the rows, each with the same probability.
    - `last` is the row with the greatest value of the order; of several such rows, it is one as for `one`.
    - `mean`, `min`, `max` and `sum` are taken column by column. They are exact in integers, so the order of
      the rows does not matter. A sum is clamped to the domain again.
    - `count` is the number of the rows, clamped to the domain of the only column.
    - What is computed outside of the ball of the domain is projected onto it. A mean of points of a sphere is
      moved onto it.

    Args:
        rows: the rows, whose words are those of grid points; see `transforms.point_words.point_words`.
        grid: the universe.
        keep: see above.
        salt: 16 secret bytes.
        order: two words of each row, see `transforms.row_order.order_words`; for `last` alone.
    """
    if keep in ("one", "last"):
        rows = last_rows(rows, order) if keep == "last" else rows
        one = keep_one(rows, salt)
        return points_of([word[one] for word in rows.words], grid), rows.ids[one]
    of_unit, first = renumbered(rows)
    kept = _combined(points_of(rows.words, grid), of_unit, len(first), grid, keep)
    if grid.geography is not None:
        kept = np.clip(np.rint(grid.onto(kept)).astype(np.int64), 0, np.asarray(grid.extents))
    elif grid.ball is not None:
        kept = grid.quantize(grid.place(kept))
    return kept.astype(stored(grid), order="F"), rows.ids[first]


def _combined(points: Steps, of_unit: NDArray[np.int64], units: int, grid: Grid, keep: Keep) -> Points:
    """Return what is computed from all rows of each unit, which may lie outside of the ball."""
    if keep == "mean":
        return keep_mean(points, of_unit, units, grid)
    if keep == "sum":
        return keep_sum(points, of_unit, units, grid)
    if keep == "count":
        return keep_count(of_unit, units, grid)
    return keep_extreme(points, of_unit, units, keep == "max")


def last_rows(rows: UnitRows, order: Sequence[U64]) -> UnitRows:
    """Return those rows of each unit that no other row of the unit follows.

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
    return rows.take(last)


def keep_one(rows: UnitRows, salt: bytes) -> NDArray[np.int32]:
    """Return the index of the row that each unit keeps, in the order of the units' numbers.

    Args:
        rows: the rows.
        salt: 16 secret bytes.
    """
    race = race_of([rows.ids, *rows.words], rows.of_unit, salt)
    least = np.full(rows.numbers, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, rows.of_unit, race)
    won = np.flatnonzero(race == np.take(least, rows.of_unit, mode="clip"))
    kept = one_of_each(won, rows)
    if len(won) > len(kept):  # of equal hashes the smallest point wins: it is written last
        kept = one_of_each(won[np.lexsort([word[won] for word in rows.words])][::-1], rows)
    return kept


def race_of(words: Sequence[U64], of_unit: NDArray[np.int64], salt: bytes) -> U64:
    """Return a hash of each row, shape (n,), by whose order rows of a unit are chosen.

    The hashes of a unit's rows follow from the unit and the multiset of its points. Copies of a point have
    different hashes. Equal hashes of different points are ordered by the points.

    Args:
        words: shape (n,) each: the identity of the row's unit, and the words of its point.
        of_unit: shape (n,), index of the unit of each row.
        salt: 16 secret bytes.
    """
    messages = np.zeros((len(of_unit), len(words) + len(words) % 2), dtype=np.uint64)
    for place, word in enumerate(words):
        messages[:, place] = word
    race = keyed_blocks(messages, salt, _ROW)[:, 0].copy()
    copies = repeated(race)
    if len(copies):
        some = [word[copies] for word in words]
        race[copies] = _race_of_copies(race[copies], some, of_unit[copies], salt)
    return race


def repeated(hashes: U64) -> NDArray[np.intp]:
    """Return the indices of those hashes that occur several times.

    Upper bits of a hash are its place in a table, which holds the last hash of each place. A hash that occurs
    twice is the one that its place holds, or is among the others of its place, which are few and are sorted.

    Args:
        hashes: shape (n,), fewer than 2^31; fast if their upper bits are spread.
    """
    bits = len(hashes).bit_length() + 2
    place = (hashes >> np.uint64(64 - bits)).view(np.int64)
    every = np.arange(len(hashes), dtype=np.int32)
    last = np.empty(1 << bits, dtype=np.int32)
    last[place] = every
    held = np.take(last, place, mode="clip")
    others = np.flatnonzero(held != every)
    found = hashes[others]
    ordered = np.sort(found)
    twice = [found[found == hashes[held[others]]], ordered[1:][ordered[1:] == ordered[:-1]]]
    number = sum(map(len, twice))
    if not number:
        return np.empty(0, dtype=np.intp)
    some = (
        np.arange(len(hashes)) if number >= _FEW else np.flatnonzero(np.isin(hashes, np.concatenate(twice)))
    )
    order, sorted_ = sorted_words(hashes[some])
    same = sorted_[1:] == sorted_[:-1]
    return some[order[np.append(same, False) | np.append(False, same)]]


def _race_of_copies(race: U64, words: Sequence[U64], of_unit: NDArray[np.int64], salt: bytes) -> U64:
    """Give another hash to each further copy of a row, so that a row that occurs twice has two chances.

    Different rows of a unit may have one hash, if someone who knows the salt chose them. They are then
    numbered in the order of their points, so that the result does not depend on their places.

    Args:
        race: shape (n,), hash of the unit and the point of each row.
        words: the points, each of shape (n,).
        of_unit: shape (n,), index of the unit of each row.
        salt: 16 secret bytes.
    """
    order, ordered = sorted_words(race)
    same = ordered[1:] == ordered[:-1]
    if any((same & (part[order[1:]] != part[order[:-1]])).any() for part in (of_unit, *words)):
        order = np.lexsort((*words, of_unit, race))
        same = (race[order[1:]] == race[order[:-1]]) & (of_unit[order[1:]] == of_unit[order[:-1]])
    place = np.arange(len(race))
    further = np.append(False, same)
    copy = (place - np.maximum.accumulate(np.where(further, 0, place)))[further]
    raced = race.copy()
    raced[order[further]] = scramble(race[order[further]] + copy.astype(np.uint64), salt, _ROW)
    return raced


def keep_mean(points: Steps, of_unit: NDArray[np.int64], units: int, grid: Grid) -> Points:
    """Return the mean of the points of each unit, shape (units, d), rounded to the grid (halves up).

    This is long division with 16 bits at a time, which is exact for fewer than 2^45 rows.

    Args:
        points: shape (n, d), grid steps.
        of_unit: shape (n,), index of the unit of each row: from 0 to units - 1, each at least once.
        units: number of units.
        grid: the universe.
    """
    rows = np.bincount(of_unit, minlength=units)
    means = np.zeros((units, points.shape[1]), dtype=np.int64)
    for axis in range(points.shape[1]):
        rest = np.zeros(units, dtype=np.int64)
        for low in reversed(range(0, grid.extents[axis].bit_length(), _LIMB)):
            limbs = (points[:, axis] >> low & (1 << _LIMB) - 1).astype(np.int64)
            rest <<= _LIMB
            np.add.at(rest, of_unit, limbs)
            digit, rest = np.divmod(rest, rows)
            means[:, axis] = (means[:, axis] << _LIMB) + digit
        means[:, axis] += 2 * rest >= rows
    return means


def keep_extreme(points: Steps, of_unit: NDArray[np.int64], units: int, largest: bool) -> Points:
    """Return the smallest or the largest coordinates among the points of each unit, shape (units, d).

    Args:
        points: shape (n, d), grid steps.
        of_unit: shape (n,), see `unit_records`.
        units: number of units.
        largest: whether to return the largest.
    """
    extremes = np.full((units, points.shape[1]), -1 if largest else np.iinfo(np.int64).max, dtype=np.int64)
    better = np.maximum if largest else np.minimum
    for axis in range(points.shape[1]):
        better.at(extremes[:, axis], of_unit, points[:, axis].astype(np.int64))
    return extremes


def keep_sum(points: Steps, of_unit: NDArray[np.int64], units: int, grid: Grid) -> Points:
    """Return the sum of the points of each unit in data units, shape (units, d), on the grid.

    Of n rows at k_1, k_2, ... steps above `lower`, the sum is n lower + step (k_1 + k_2 + ...), which is
    k_1 + k_2 + ... + (n - 1) lower / step steps above `lower`. This is computed in integers of any size, with
    bounds and step taken as the decimal numbers that they are written as. It is rounded to the grid (halves
    up), and then clamped to it. It is exact for fewer than 2^32 rows.

    Args:
        points: shape (n, d), grid steps.
        of_unit: shape (n,), see `unit_records`.
        units: number of units.
        grid: the universe.
    """
    further = (np.bincount(of_unit, minlength=units) - 1).astype(object)
    sums = np.empty((units, points.shape[1]), dtype=np.int64)
    for axis, (low, extent) in enumerate(zip(grid.lower, grid.extents, strict=True)):
        total = np.zeros(units, dtype=object)
        for bits in (_HALF, 0):
            half = np.zeros(units, dtype=np.int64)
            np.add.at(half, of_unit, (points[:, axis] >> bits & (1 << _HALF) - 1).astype(np.int64))
            total = total * (1 << _HALF) + half.astype(object)
        origin = Fraction(str(low)) / Fraction(str(grid.step))
        over, under = origin.as_integer_ratio()
        rounded = (2 * (total * under + further * over) + under) // (2 * under)
        sums[:, axis] = np.minimum(np.maximum(rounded, 0), extent).astype(np.int64)
    return sums


def keep_count(of_unit: NDArray[np.int64], units: int, grid: Grid) -> Points:
    """Return the number of rows of each unit on the grid of one axis, shape (units, 1).

    Args:
        of_unit: shape (n,), see `unit_records`.
        units: number of units.
        grid: the universe of the counts, in data units.
    """
    rows = np.bincount(of_unit, minlength=units)[:, None]
    return grid.quantize(rows if grid.wide else rows.astype(np.float64))
