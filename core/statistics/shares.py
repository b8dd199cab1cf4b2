"""What to sum up, from which centers, and how much of the budget each sum gets: all of it public.

Numbers of rows and of units. Let a unit have r rows in a group, 1 <= r <= M. Where M > 1, both numbers may be
needed: the number of units finds private keys, whatever rows a unit has. It then costs nothing, because a
unit of few rows changes the number of rows by less than the noise is made for.

- Laplace noise is on `rows` and on `missing` = M units - rows. A unit adds r to the one and M - r to the
  other, M in L1 as to `rows` alone. The number of units is their sum divided by M, of the noise of two.
- In the same way `missing` times the extent W joins the pair `above` and `below` of `pair`, to which
  together a unit adds r W. The number of units is the sum of all three divided by M W.
- Gaussian noise is on `units` and on `excess` = 2 rows - (M + 1) units, from which follows
  rows = (excess + (M + 1) units) / 2. Let c = (M + 1) / 2 and h = (M - 1) / 2. Let the first have a share
  s of rho and the second 1 - s. A unit changes them by 1 and by at most 2 h. So the variance of the number of
  rows is (c^2 / s + h^2 / (1 - s)) / M^2 of what it is if `rows` alone is released with all of rho. At
  s = c / M this is 1. So the number of units costs nothing here, too.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain

from core.domain import Grid
from core.statistics.params import Statistics
from core.statistics.quantities import Change, Quantity

_CENTERS = 8  # parts of the way from a column's middle to 0, at which a center may lie
_FARTHEST = 1 << 30  # steps of a center from the middle of its column
_ALONE = 4.0  # weight of what finds keys and does nothing else: for one median, it gets 0.6 of epsilon
_LARGEST = 1 << 31  # rows of a unit times the extent, so that sums over 2^32 units fit into int64


@dataclass(frozen=True)
class Weighted:
    """A quantity and its weight in the mean squared error of the measures.

    Args:
        quantity: the quantity.
        weight: by which the variance of its noise enters; of those that are tied to it, too.
        found: added to the weight where the quantity also decides which groups are found.
    """

    quantity: Quantity
    weight: float
    found: float = 0.0


def pair(asked: Statistics, grid: Grid, change: Change) -> list[Weighted] | None:
    """Return the quantities where rows and the sum of a column are released as the pair (A, B).

    Let A and B be the sums of the column's steps from its lower bound and to its upper one, W its extent,
    and Z, Z' the noise of both, of one scale. Then the errors of what follows from them are

        number of rows (A + B) / W:                      (Z + Z') / W,
        sum (upper A + lower B) / W:                     (upper Z + lower Z') / W,
        mean A / n in steps, times the number of rows:   (1 - u) Z - u Z',    u = true mean / W,

    which is what weighs them; an unknown u is anywhere between 0 and 1 with the same probability. One row
    changes (A, B) by W in L1 (see `Change`). So Laplace noise of scale W / epsilon serves both, and variances
    are 4 / epsilon^2 for the number of rows, and W^2 / epsilon^2 for the sum about the middle, (A - B) / 2.
    Were half of epsilon spent on the number, and half on that sum, which changes by W / 2, both would be
    twice as large (Kulesza, Suresh and Wang 2023). For Gaussian noise the pair has no use: (A, B) changes
    by W in L2, and both variances are those of the halves of rho.

    None where a pair does not serve: the number of rows is public, there are several columns, a sum is
    clamped for each unit, a variance is asked for, neither a sum nor a mean is, or numbers of rows times the
    extent may not fit into int64.
    """
    sums = {"sum", "mean"} & set(map(str, asked.measures))
    if change.fixed or grid.dimension > 1 or asked.clamped or "variance" in asked.measures or not sums:
        return None
    extent, counts = grid.extents[0], float("count" in asked.measures)
    units, most = float("units" in asked.measures), change.rows
    low, high = grid.lower[0] / grid.step, grid.lower[0] / grid.step + extent
    counts += 0.0 if asked.several else units
    weight = counts * 2 / extent**2
    if "sum" in asked.measures:
        weight += (low**2 + high**2) / extent**2 / max(abs(low), abs(high)) ** 2
    if "mean" in asked.measures:
        weight += 2 / 3 * (extent / 2) ** -2
    above, below = Quantity("above", 0, extent), Weighted(Quantity("below", 0, extent), 0.0)
    if not asked.several:
        return [Weighted(above, weight, 2 / extent**2 * asked.private), below]
    if not (units or asked.private):
        return [Weighted(above, weight), below]
    if extent * most > _LARGEST:
        return None
    missing = Weighted(Quantity("missing", 0, extent, rows=most), 0.0)
    weight += units * 3 / (extent * most) ** 2
    return [Weighted(above, weight, 3 / extent**2 * asked.private), below, missing]


def lost(asked: Statistics, rows: int) -> int:
    """Return what a measure lacks at most where a unit is missing, in what its error is counted in.

    That is up to M rows, or M of the largest values. It is one where each unit counts once: in numbers of
    units, and in sums that are clamped for each unit.

    Args:
        asked: the measures.
        rows: of a unit in a group at most, M.
    """
    once = {"units", "sum"} if asked.clamped else {"units"}
    return 1 if set(map(str, asked.measures)) <= once else rows


def numbers(asked: Statistics, change: Change, rows: float, units: float, gaussian: bool) -> list[Weighted]:
    """Return the quantities from which numbers of rows and units follow; the first one finds private keys.

    See the top of this module. Where the number of units finds keys, its variance weighs the square of what a
    unit of a group that is not found stands for; see `lost`. It weighs more where it does nothing else: a
    group that is not found lacks all of its measures.

    Args:
        asked: the measures.
        change: what neighbors differ in.
        rows: weight of the variance of the number of rows.
        units: of the number of units.
        gaussian: whether noise is Gaussian.
    """
    most = change.rows
    found = float(lost(asked, most) ** 2 * asked.private) * (1.0 if rows + units else _ALONE)
    if not asked.several:
        return [Weighted(Quantity("rows"), rows + units, found)] if rows + units + found else []
    if not units + found:
        return [Weighted(Quantity("rows"), rows)] if rows else []
    if not rows:
        return [Weighted(Quantity("units"), units, found)]
    if gaussian:
        of_units = units + rows * ((most + 1) / 2) ** 2
        excess = Quantity("excess", rows=most)
        return [Weighted(Quantity("units"), of_units, found), Weighted(excess, rows / 4)]
    missing = Quantity("missing", 0, 1, rows=most)
    both = 2 / most**2
    return [Weighted(Quantity("rows"), rows + both * units, both * found), Weighted(missing, 0.0)]


def weigh(
    asked: Statistics, grid: Grid, change: Change, gaussian: bool, centers: Sequence[int]
) -> list[Weighted]:
    """Return the quantities that the measures need, with weights, each with a share of its own.

    Errors are made comparable: that of a count is in rows, of a sum in largest absolute values of the column,
    of a mean in halves of the range h over the number of rows, of a variance in squares of h over that
    number. An unknown mean is taken to be anywhere in the range with the same probability, and so is an
    unknown mean square. See `core.statistics.found.Reading` for the errors.

    Args:
        asked: the measures.
        grid: the universe.
        change: what neighbors differ in.
        gaussian: whether noise is Gaussian.
        centers: of each column's sum, grid steps.
    """
    columns = [of_column(asked, grid, axis, center) for axis, center in enumerate(centers)]
    rows = weight_of_rows(asked, [column.rows for column in columns])
    units = float("units" in asked.measures)
    of_columns = [each for column in columns for each in column.weighted]
    return [*numbers(asked, change, rows, units, gaussian), *of_columns]


@dataclass(frozen=True)
class Column:
    """What the measures need of one column.

    Args:
        rows: what the number of rows gets of weights, since it enters the measures of this column.
        weighted: the other quantities.
    """

    rows: tuple[float, ...]
    weighted: tuple[Weighted, ...]


def weight_of_rows(asked: Statistics, columns: Iterable[tuple[float, ...]]) -> float:
    """Return the weight of the number of rows, given what it gets of each column, in order."""
    return reduce(operator.add, chain.from_iterable(columns), float("count" in asked.measures))


def of_column(asked: Statistics, grid: Grid, axis: int, center: int) -> Column:
    """Return what the measures need of a column, with weights; see `weigh`."""
    rows: list[float] = []
    columns: list[Weighted] = []
    extent, of_sum, of_squares = grid.extents[axis], 0.0, 0.0
    half, largest = extent / 2, max(abs(grid.lower[axis]), abs(grid.upper[axis])) / grid.step
    from_center = 1 / 3 + ((extent // 2 - center) / half) ** 2
    squares = Quantity.squares(axis, extent)
    if asked.clamped and "sum" in asked.measures:
        zero = round(-grid.lower[axis] / grid.step)
        columns.append(Weighted(Quantity("unit_sum", axis, extent, zero), largest**-2))
    elif "sum" in asked.measures:
        of_sum += largest**-2
        rows.append(((grid.lower[axis] / grid.step + center) / largest) ** 2)
    if "mean" in asked.measures:
        of_sum += half**-2
        rows.append(from_center)
    if "variance" in asked.measures:
        of_sum += 4 / 3 * half**-2
        of_squares += (2.0**squares.shift / half**2) ** 2
        rows.append(1 / 12 + 4 / 3 * from_center)
    if of_sum:
        columns.append(Weighted(Quantity("sum", axis, extent, center), of_sum))
    if of_squares:
        columns.append(Weighted(squares, of_squares))
    return Column(tuple(rows), tuple(columns))


def split(variances: Sequence[float], gaussian: bool) -> list[float]:
    """Return the shares that quantities get of epsilon, or of rho for Gaussian noise.

    Noise of a share s has a variance of c / s^2 (Laplace) or c / s (Gaussian). The sum of these is least
    where s is proportional to the third or the second root of c.

    Args:
        variances: the c of each quantity, in the unit of the error.
        gaussian: whether noise is Gaussian.
    """
    roots = [c ** (1 / 2 if gaussian else 1 / 3) for c in variances]
    whole = sum(roots) or 1.0
    return [root / whole for root in roots]


def constants(weighted: Sequence[Weighted], change: Change, gaussian: bool) -> list[float]:
    """Return for each quantity the c of `split`."""
    norm = change.l2 if gaussian else change.l1
    return [(each.weight + each.found) * norm(each.quantity) ** 2 for each in weighted]


def best_centers(asked: Statistics, grid: Grid, change: Change, gaussian: bool) -> list[int]:
    """Return for each column the center of its sum that gives the smallest error.

    The middle of the column makes the noise of the sum smallest, but the error of the number of rows then
    enters the sum of values. From 0 it does not enter.
    """
    centers = [extent // 2 for extent in grid.extents]
    if change.fixed:
        return centers

    power, units = 1 / 2 if gaussian else 1 / 3, float("units" in asked.measures)

    def roots(weighted: Sequence[Weighted]) -> list[float]:
        return [c**power for c in constants(weighted, change, gaussian)]

    def looked_at(axis: int, center: int) -> tuple[tuple[float, ...], list[float]]:
        column = of_column(asked, grid, axis, center)
        return column.rows, roots(column.weighted)

    columns = [looked_at(axis, center) for axis, center in enumerate(centers)]
    for axis, middle in enumerate(list(centers)):
        zero = round(-grid.lower[axis] / grid.step)
        if abs(zero - middle) > _FARTHEST:
            continue
        ways = {middle + (zero - middle) * part // _CENTERS for part in range(_CENTERS + 1)}
        least = math.inf
        for center in sorted(ways, key=lambda center: abs(center - middle)):
            tried = [*columns[:axis], looked_at(axis, center), *columns[axis + 1 :]]
            rows = weight_of_rows(asked, [weights for weights, _ in tried])
            first = roots(numbers(asked, change, rows, units, gaussian))
            error = sum(chain(first, *(of_others for _, of_others in tried)))
            if error < least:
                least, centers[axis], columns = error, center, tried
    return centers


def best(asked: Statistics, grid: Grid, change: Change, gaussian: bool) -> list[Weighted]:
    """Return the quantities of the smaller error: a number and a sum with a share each, or a pair.

    With private keys the first one finds them, with those that are tied to it.
    """
    centers = best_centers(asked, grid, change, gaussian)
    shared, paired = weigh(asked, grid, change, gaussian, centers), pair(asked, grid, change)
    if paired is None or gaussian:
        return shared
    return min((shared, paired), key=lambda way: sum(c ** (1 / 3) for c in constants(way, change, False)))
