"""What is summed up for statistics, in whole numbers, and how much a neighbor may change it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.domain import Points

Ints = NDArray[np.int64]

_SQUARES = 30
"""Binary logarithm of the largest square that is summed up; sums of 2^32 of them fit into int64."""


@dataclass(frozen=True)
class Quantity:
    """A whole number of each row, to be summed over the rows of a group.

    - `rows`: 1, so that the sum is the number of rows.
    - `units`: the sum is the number of distinct units in the group instead.
    - `sum`: the steps x - center of one column.
    - `unit_sum`: the same, but the sum of each unit's rows in a group is clamped to the column's bounds. The
      center is 0 in data units: a unit without rows counts as 0.
    - `squares`: (x - center)^2 / 2^shift of one column, rounded to whole numbers, minus `middle`.
    - `above` and `below`: x and extent - x, the steps from the lower bound and those to the upper one. Both
      are always released together, by one draw: a pair, from which the number of rows and the sum follow.
    - `missing`: the number of rows that the units of a group could still have there, M units - rows, where M
      is `rows`; times `extent`. It is always released together with `rows` (extent 1), or with `above` and
      `below` (their extent), by one draw.
    - `excess`: 2 rows - (M + 1) units, twice the number of rows about the middle of what so many units may
      have. From it and `units` follows the number of rows.

    Sums and squares are taken from a public center, and squares from a middle, because the noise must hide
    the largest absolute value of one row.

    Args:
        kind: see above.
        axis: the column.
        extent: of the column, grid steps.
        center: grid steps; it may lie outside of the column.
        shift: see above.
        middle: see above.
        rows: most rows of a unit in a group, M, of `missing` and `excess`.
    """

    kind: Literal["rows", "units", "sum", "unit_sum", "squares", "above", "below", "missing", "excess"]
    axis: int = 0
    extent: int = 0
    center: int = 0
    shift: int = 0
    middle: int = 0
    rows: int = 1

    @classmethod
    def squares(cls, axis: int, extent: int) -> "Quantity":
        """Return the squares of a column about its middle, which are as fine as int64 allows."""
        center = extent // 2
        shift = max(0, (max(center, extent - center) ** 2).bit_length() - _SQUARES)
        whole = cls("squares", axis, extent, center, shift)
        return replace(whole, middle=(whole._largest + 1) // 2)

    @property
    def what(self) -> str:
        """Name for the draws of a round."""
        return {
            "rows": "number of records",
            "units": "number of units",
            "sum": f"sum of column {self.axis} about its center",
            "unit_sum": f"sum of the units' sums of column {self.axis}",
            "squares": f"sum of squares of column {self.axis} about its center",
            "above": f"sums of column {self.axis} from its lower and to its upper bound",
            "below": f"sum of column {self.axis} to its upper bound",
            "missing": "number of rows that units could still have",
            "excess": "number of records about the middle of what the units may have, doubled",
        }[self.kind]

    @property
    def of_units(self) -> bool:
        """Whether a unit adds one number to a group, however many rows it has there."""
        return self.kind in ("units", "unit_sum", "excess")

    @property
    def tied(self) -> bool:
        """Whether it is released together with the quantity before it, by one draw."""
        return self.kind in ("below", "missing")

    def of_counts(self, rows: Ints, units: Ints) -> Ints:
        """Return what `missing` or `excess` is of groups with so many rows and units, shape (m,)."""
        if self.kind == "missing":
            return np.asarray(self.extent * (self.rows * units - rows))
        return np.asarray(2 * rows - (self.rows + 1) * units)

    @property
    def counts(self) -> bool:
        """Whether it counts rows or units."""
        return self.kind in ("rows", "units")

    def values(self, points: Points) -> Ints:
        """Return the number of each row, shape (n,); of `rows` and `units` it is 1."""
        if self.counts:
            return np.ones(len(points), dtype=np.int64)
        if self.kind == "below":
            return np.asarray(self.extent - points[:, self.axis])
        steps = points[:, self.axis] - self.center
        if self.kind in ("sum", "unit_sum", "above"):
            return np.asarray(steps)
        return np.asarray(((steps * steps + self._half) >> self.shift) - self.middle)

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest number of a row."""
        if self.counts:
            return 1, 1
        if self.kind in ("above", "below"):
            return 0, self.extent
        if self.kind == "excess":
            return 1 - self.rows, self.rows - 1
        if self.kind in ("sum", "unit_sum"):
            return -self.center, self.extent - self.center
        return -self.middle, self._largest - self.middle

    @property
    def _half(self) -> int:
        """Half of the unit of squares, which rounds them."""
        return 1 << self.shift >> 1

    @property
    def _largest(self) -> int:
        """The largest rounded square."""
        return (max(self.center, self.extent - self.center) ** 2 + self._half) >> self.shift

    @property
    def bound(self) -> int:
        """The largest absolute value of a row's number."""
        return max(map(abs, self.ends))

    def spread(self, reach: int) -> int:
        """Return the largest difference between the numbers of two rows at most `reach` steps apart.

        Squares: x^2 - y^2 = (x - y) (x + y). For |x|, |y| <= m and |x - y| = r <= m this is at most
        r (2 m - r), which grows with r. Each of the two rounded squares is off by at most 1/2.
        """
        low, high = self.ends
        if self.kind == "sum":
            return min(high - low, reach)
        far = max(self.center, self.extent - self.center)
        near = min(reach, far)
        return min(high - low, -(-near * (2 * far - near) // (1 << self.shift)) + 1)

    @property
    def width(self) -> int:
        """The largest difference between the numbers of two rows, or of a row and no row."""
        low, high = self.ends
        return max(high, 0) - min(low, 0)


def drawn_together(quantities: Sequence[Quantity]) -> list[slice]:
    """Return which quantities each draw of noise covers: one, and those that are tied to it."""
    starts = [i for i, quantity in enumerate(quantities) if not quantity.tied]
    return [slice(*ends) for ends in pairwise([*starts, len(quantities)])]


@dataclass(frozen=True)
class Change:
    """How much neighbors may differ in the totals of the groups.

    Let a unit be in at most L groups, with at most M rows in each. Without units L and M are 1: a row is in
    one group.

    - A unit more or less changes the totals of at most L groups. In each of them `rows` change by at most M,
      `units` by 1, and a sum by at most M times the largest absolute value of a row's number. A sum that
      is clamped for each unit changes by at most the largest absolute value of its bounds, whatever M is.
    - The sums `above` and `below` of a column of extent W change together. A row at x adds x to the one and
      W - x to the other, both at least 0, so the L1 norm of what it adds is x + (W - x) = W, wherever x is. A
      unit more or less changes the pairs of at most L groups by at most M rows each, so by at most L M W in
      L1. This is what `l1` of `above` says, and one draw of noise on both numbers of all groups is calibrated
      to it.
    - `missing` joins them at no cost. A unit with r rows in a group, 1 <= r <= M, adds r W to `above` and
      `below` together, and (M - r) W to `missing`. None of the three is below 0, so the L1 norm of what it
      adds is r W + (M - r) W = M W, whatever rows it has. In the same way it adds r to `rows` and M - r to
      `missing`, M together. So `l1` of `above` and of `rows` is also that of all that is tied to them.
    - A unit with r rows in a group changes `excess` by 2 r - (M + 1), which is from 1 - M to M - 1.
    - A replaced unit may leave L groups and appear in L other ones. So under `replace_one` the L1 norm of the
      change is twice as large. The L2 norm of 2 L changed groups is sqrt(2) times as large. If the unit
      stays in its groups, a sum may change by M times the largest difference of two numbers, or of a
      number and 0, in L groups. The larger of both counts.
    - Only if there are no groups, and if each record stays one record, is the number of records public under
      `replace_one`. Then a sum changes by the difference of two records, which a policy may limit.

    Args:
        groups: L.
        rows: M.
        changes: 1, or 2 under `replace_one`.
        fixed: whether the number of records is public.
        reach: largest L1 distance of a secret pair, grid steps, where `fixed`.
    """

    groups: int
    rows: int
    changes: int
    fixed: bool
    reach: int

    def _rows(self, quantity: Quantity) -> int:
        """How many numbers, each at most `bound`, a unit adds to a group."""
        return 1 if quantity.of_units else self.rows

    def _each(self, quantity: Quantity) -> int:
        return self._rows(quantity) * quantity.bound

    def l1(self, quantity: Quantity) -> float:
        """Return the L1 sensitivity of a quantity's totals of all groups, with those that are tied to it."""
        if self.fixed:
            return self._replaced(quantity)
        return self.changes * self.groups * self._each(quantity)

    def l2(self, quantity: Quantity) -> float:
        """Return the L2 sensitivity of a quantity's totals of all groups."""
        if self.fixed:
            return self._replaced(quantity)
        moved = math.sqrt(self.changes * self.groups) * self._each(quantity)
        if self.changes == 1 or quantity.counts:
            return moved
        return max(moved, math.sqrt(self.groups) * self._rows(quantity) * quantity.width)

    def _replaced(self, quantity: Quantity) -> int:
        return 0 if quantity.counts else quantity.spread(self.reach)
