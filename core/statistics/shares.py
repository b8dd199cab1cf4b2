"""What to sum up, from which centers, and how much of the budget each sum gets: all of it public."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.domain import Grid
from core.statistics.params import Statistics
from core.statistics.quantities import Change, Quantity

_CENTERS = 8  # parts of the way from a column's middle to 0, at which a center may lie
_FARTHEST = 1 << 30  # steps of a center from the middle of its column


@dataclass(frozen=True)
class Weighted:
    """A quantity and its weight in the mean squared error of the measures; that of `above` is of the pair.

    Args:
        quantity: the quantity.
        weight: by which the variance of its noise enters.
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
    clamped for each unit, a variance is asked for, or neither a sum nor a mean.
    """
    sums = {"sum", "mean"} & set(map(str, asked.measures))
    if change.fixed or grid.dimension > 1 or asked.clamped or "variance" in asked.measures or not sums:
        return None
    extent, counts = grid.extents[0], float("count" in asked.measures)
    units = float("units" in asked.measures)
    low, high = grid.lower[0] / grid.step, grid.lower[0] / grid.step + extent
    counts += 0.0 if asked.several else units
    weight = counts * 2 / extent**2
    if "sum" in asked.measures:
        weight += (low**2 + high**2) / extent**2 / max(abs(low), abs(high)) ** 2
    if "mean" in asked.measures:
        weight += 2 / 3 * (extent / 2) ** -2
    of_units = [Weighted(Quantity("units"), units)] if asked.several and units else []
    above, below = Quantity("above", 0, extent), Quantity("below", 0, extent)
    return [*of_units, Weighted(above, weight), Weighted(below, 0.0)]


def weigh(asked: Statistics, grid: Grid, centers: Sequence[int]) -> list[Weighted]:
    """Return the quantities that the measures need, with weights.

    Errors are made comparable: that of a count is in rows, of a sum in largest absolute values of the column,
    of a mean in halves of the range h over the number of rows, of a variance in squares of h over that
    number. An unknown mean is taken to be anywhere in the range with the same probability, and so is an
    unknown mean square. See `core.statistics.found.Reading` for the errors.

    Args:
        asked: the measures.
        grid: the universe.
        centers: of each column's sum, grid steps.
    """
    rows, columns = float("count" in asked.measures), []
    units = float("units" in asked.measures)
    for axis, center in enumerate(centers):
        extent, of_sum, of_squares = grid.extents[axis], 0.0, 0.0
        half, largest = extent / 2, max(abs(grid.lower[axis]), abs(grid.upper[axis])) / grid.step
        from_center = 1 / 3 + ((extent // 2 - center) / half) ** 2
        squares = Quantity.squares(axis, extent)
        if asked.clamped and "sum" in asked.measures:
            zero = round(-grid.lower[axis] / grid.step)
            columns.append(Weighted(Quantity("unit_sum", axis, extent, zero), largest**-2))
        elif "sum" in asked.measures:
            of_sum += largest**-2
            rows += ((grid.lower[axis] / grid.step + center) / largest) ** 2
        if "mean" in asked.measures:
            of_sum += half**-2
            rows += from_center
        if "variance" in asked.measures:
            of_sum += 4 / 3 * half**-2
            of_squares += (2.0**squares.shift / half**2) ** 2
            rows += 1 / 12 + 4 / 3 * from_center
        if of_sum:
            columns.append(Weighted(Quantity("sum", axis, extent, center), of_sum))
        if of_squares:
            columns.append(Weighted(squares, of_squares))
    if asked.several:
        counts = [Weighted(Quantity("rows"), rows), Weighted(Quantity("units"), units)]
    else:
        counts = [Weighted(Quantity("rows"), rows + units)]
    return [*(each for each in counts if each.weight), *columns]


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

    def error(tried: list[int]) -> float:
        found = constants(weigh(asked, grid, tried), change, gaussian)
        power = 1 / 2 if gaussian else 1 / 3
        return float(sum(c**power for c in found))

    for axis, middle in enumerate(list(centers)):
        zero = round(-grid.lower[axis] / grid.step)
        if abs(zero - middle) > _FARTHEST:
            continue
        ways = {middle + (zero - middle) * part // _CENTERS for part in range(_CENTERS + 1)}
        centers[axis] = min(
            sorted(ways, key=lambda center: abs(center - middle)),
            key=lambda center: error([*centers[:axis], center, *centers[axis + 1 :]]),
        )
    return centers


def best(asked: Statistics, grid: Grid, change: Change, gaussian: bool) -> list[Weighted]:
    """Return the quantities of the smaller error: a number and a sum with a share each, or a pair.

    With private keys the first one finds them.
    """
    shared = _finding(asked, change, weigh(asked, grid, best_centers(asked, grid, change, gaussian)))
    paired = pair(asked, grid, change)
    if paired is None or gaussian:
        return shared
    ways = (shared, _finding(asked, change, paired))
    return min(ways, key=lambda way: sum(c ** (1 / 3) for c in constants(way, change, False)))


def _finding(asked: Statistics, change: Change, found: list[Weighted]) -> list[Weighted]:
    """Return quantities of which the first one finds private keys, if there are any.

    A unit of a group that is not found stands for up to `rows` rows that are then missing.
    """
    if asked.grouping is None or not asked.grouping.private:
        return found
    if found and found[0].quantity.kind == "above" and not asked.several:
        return [replace(found[0], found=2 / found[0].quantity.extent ** 2), *found[1:]]
    kind = "units" if asked.several else "rows"
    units = [each for each in found if each.quantity.kind == kind]
    others = [each for each in found if each.quantity.kind != kind]
    counted = units[0] if units else Weighted(Quantity(kind), 0.0)  # type: ignore[arg-type]
    return [replace(counted, found=float(change.rows) ** 2), *others]
