"""The two methods of statistics: Laplace noise and Gaussian noise on the totals of groups."""

import math
from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import scipy

from core.draws import Additive, Charged, Gaussian, Laplace
from core.errors import InvalidValue
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection
from core.mechanisms.tails import largest_of, largest_weighted_sum_of_two
from core.statistics.by_group import TotalsByGroup
from core.statistics.found import Promises, Reading
from core.statistics.params import Contributions, Statistics
from core.statistics.quantities import Change, Quantity
from core.statistics.shares import Weighted, best_centers, constants, split, weigh
from core.task import Accuracy, Method


class ReleaseTotals(Method[Statistics]):
    """Noise on the totals of groups. Shares of the budget and centers of sums make the error smallest.

    Which private groups are found follows from the noisy number of their units, where it is released anyway:
    this costs delta alone, and a separate choice at the same epsilon would find hardly more. Otherwise the
    optimal selection has a share of its own.
    """

    uses_policy: ClassVar[bool] = True
    gaussian: ClassVar[bool]

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        delta = self.setting.budget.delta
        if self._private and not 0 < delta < 0.5:
            return InvalidValue("delta", delta, "private keys need one above 0 and below 1/2")
        if self.gaussian and not delta:
            return InvalidValue("delta", delta, "gaussian needs one above 0")
        return None

    @property
    def _private(self) -> bool:
        grouping = self.setting.params.grouping
        return grouping is not None and grouping.private

    @property
    def _groups(self) -> int:
        """How many groups keep a promise at once."""
        grouping = self.setting.params.grouping
        return 1 if grouping is None or grouping.labels is None else max(1, len(grouping.labels))

    @property
    def _failure(self) -> float:
        """What is left of the failure probability for each promise, since any of them may fail."""
        measures = set(self.setting.params.measures) - {"variance"}
        return self.setting.params.failure / max(1, len(measures) + self._private)

    @cached_property
    def change(self) -> Change:
        """What neighbors may differ in."""
        params, neighbors = self.setting.params, self.setting.neighbors
        bounds = params.contributions or Contributions()
        fixed = neighbors.changes == 2 and params.grouping is None and params.contributions is None
        groups = 1 if params.grouping is None else bounds.groups
        reach = neighbors.secrets.reach(self.setting.grid.extents) if fixed else 0
        return Change(groups, bounds.rows, neighbors.changes, fixed, reach)

    @cached_property
    def _weighted(self) -> list[Weighted]:
        """The quantities, of which one finds private keys.

        A unit of a group that is not found stands for up to `rows` rows that are then missing.
        """
        params, grid = self.setting.params, self.setting.grid
        found = weigh(params, grid, best_centers(params, grid, self.change, self.gaussian))
        if not self._private:
            return found
        kind = "units" if params.several else "rows"
        units = [each for each in found if each.quantity.kind == kind]
        others = [each for each in found if each.quantity.kind != kind]
        counted = units[0] if units else Weighted(Quantity(kind), 0.0)  # type: ignore[arg-type]
        return [replace(counted, found=float(self.change.rows) ** 2), *others]

    @property
    def _coin(self) -> bool:
        """Whether groups are found by the optimal selection: no number of units is released."""
        return self._private and not self.gaussian and self._weighted[0].weight == 0

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def _round(self, share: float) -> TotalsByGroup:
        params = self.setting.params
        parts: dict[str, Any] = {"times": params.parts, "disjoint": params.parts > 1}
        shares = split(constants(self._weighted, self.change, self.gaussian), self.gaussian)
        quantities = tuple(each.quantity for each in self._weighted)
        noises: list[Additive | None] = [
            self._noise(quantity, share * part, parts)
            for quantity, part in zip(quantities, shares, strict=True)
        ]
        deviations = [0.0 if noise is None else noise.deviation for noise in noises]
        selection = None
        if self._private:
            selection = self._selection(noises[0], share * shares[0], parts)
            noises[0] = None
            deviations[0] = 0.0 if isinstance(selection, OptimalSelection) else deviations[0]
        reading = Reading(params.measures, quantities, tuple(deviations), self.setting.grid.dimension)
        return TotalsByGroup(reading, tuple(noises), params.grouping, selection, params.parts)

    def _selection(
        self, count: Additive | None, share: float, parts: dict[str, Any]
    ) -> CountThreshold | OptimalSelection:
        """Return what finds private groups, given the noise of their number of units."""
        delta, groups = self.setting.budget.delta, self.change.groups
        if self._coin:
            changed = groups * self.change.changes
            epsilon = share * self.setting.budget.epsilon / changed
            what = "which groups have enough units"
            return OptimalSelection(
                what=what, epsilon=epsilon, delta=delta / changed, groups=changed, **parts
            )
        if count is None:
            raise ValueError("A threshold needs noise.")
        of_delta = delta / 2 if self.gaussian else delta
        return CountThreshold.of(
            f"{count.what}, and which groups have enough",
            count.scale,
            count.sensitivity,
            of_delta,
            groups,
            self.gaussian,
            **parts,
        )

    @abstractmethod
    def _noise(self, quantity: Quantity, share: float, more: dict[str, Any]) -> Additive:
        """Return the noise that a share of the budget pays for; none where nothing changes."""

    @abstractmethod
    def _tail(self, scales: tuple[float, float], failure: float) -> float:
        """Return what |sum| of two continuous noises exceeds with probability `failure` at most."""

    def bound(self, scales: tuple[float, float], steps: float, draws: int) -> float:
        """Return a bound on all of `draws` weighted sums of two noises, but for the failure probability.

        Args:
            scales: of both noises, times their weights.
            steps: the weights together, by which a whole number may be larger than a real one.
            draws: how many sums there are.
        """
        return self._tail(scales, self._failure / draws) + steps if any(scales) else 0.0

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        params, round_ = self.setting.params, self._round(share)
        selection, names = round_.selection, params.measures
        quantities = round_.reading.quantities
        scales: dict[tuple[str, int], float] = {}
        for quantity, noise in zip(quantities, round_.noises, strict=True):
            scales[quantity.kind, quantity.axis] = 0.0 if noise is None else noise.scale
        if isinstance(selection, CountThreshold):
            scales[quantities[0].kind, 0] = selection.scale
        rows = scales.get(("rows", 0), 0.0)
        units = scales.get(("units", 0), rows)
        found = None if selection is None else selection.found_from(self._failure)
        promises = Promises(
            self._count_bound(rows) if "count" in names else None,
            self._count_bound(units) if "units" in names else None,
            self._largest("sum", scales, rows) if "sum" in names else None,
            self._largest("mean", scales, rows) if "mean" in names else None,
            found,
        )
        variances = zip(self._weighted, round_.reading.deviations, strict=True)
        square = sum(each.weight * deviation**2 for each, deviation in variances)
        error = math.sqrt(square / len(round_.reading.names()))
        return Accuracy(promises, max(error, 0 if found is None else found - 1), self._notes())

    def _count_bound(self, scale: float) -> int:
        if self.gaussian:
            return math.ceil(self.bound((scale, 0.0), 1.0, self._groups)) if scale else 0
        return largest_of(self._groups, scale, self._failure)

    def _largest(self, measure: str, scales: dict[tuple[str, int], float], rows: float) -> float:
        """Return the promised error of a sum or a mean, of the column where it is largest."""
        grid, found = self.setting.grid, 0.0
        for quantity in (each.quantity for each in self._weighted if each.quantity.kind == "sum"):
            axis = quantity.axis
            low, high = grid.lower[axis] / grid.step, grid.upper[axis] / grid.step
            if measure == "sum":
                weight, unit = abs(low + quantity.center), max(abs(low), abs(high))
            else:
                weight, unit = float(quantity.bound), quantity.extent / 2
            weight = weight if rows else 0.0
            pair = scales["sum", axis], weight * rows
            found = max(found, self.bound(pair, 1 + weight, self._groups * grid.dimension) / unit)
        return found

    def _notes(self) -> tuple[str, ...]:
        change, bounds = self.change, self.setting.params.contributions
        notes = []
        if bounds is not None:
            one = Change(1, 1, change.changes, False, 0)
            some = Quantity("rows")
            norm = (change.l2(some) / one.l2(some)) if self.gaussian else change.l1(some) / one.l1(some)
            where = "" if self.setting.params.grouping is None else f" in at most {change.groups:,} groups"
            in_each = "" if self.setting.params.grouping is None else " in each"
            notes.append(
                f"A unit counts{where} with at most {change.rows:,} of its rows{in_each}, chosen at random. "
                f"The noise of counts and sums is {norm:,.4g} times that of one row a unit. What the bounds "
                "leave out is not in the errors."
            )
        if self._private:
            notes.append(
                "Only groups with enough units are released, so a missing group is not always empty. Which "
                "groups are found also depends on the noise."
            )
        return tuple(notes)


class LaplaceTotals(ReleaseTotals):
    """Discrete Laplace noise: best for few measures, and where a unit is in few groups."""

    name: ClassVar[str] = "laplace"
    gaussian: ClassVar[bool] = False

    def _noise(self, quantity: Quantity, share: float, more: dict[str, Any]) -> Additive:
        l1 = self.change.l1(quantity)
        if not l1:
            return Laplace(what=quantity.what, scale=0.0, sensitivity=0.0, **more)
        return Laplace.of(quantity.what, share * self.setting.budget.epsilon, l1, **more)

    def _tail(self, scales: tuple[float, float], failure: float) -> float:
        return largest_weighted_sum_of_two(scales, failure)


class GaussianTotals(ReleaseTotals):
    """Discrete Gaussian noise: best for many measures, and where a unit is in many groups."""

    name: ClassVar[str] = "gaussian"
    gaussian: ClassVar[bool] = True

    def _noise(self, quantity: Quantity, share: float, more: dict[str, Any]) -> Additive:
        l2 = self.change.l2(quantity)
        if not l2:
            return Gaussian(what=quantity.what, scale=0.0, sensitivity=0.0, **more)
        epsilon, logarithm = self.setting.budget.epsilon, math.log(1 / self.setting.budget.delta)
        rho = (math.sqrt(logarithm + epsilon) - math.sqrt(logarithm)) ** 2  # rho + 2 sqrt(rho ln(1/delta))
        return Gaussian.of(quantity.what, share * rho, l2, **more)

    def _tail(self, scales: tuple[float, float], failure: float) -> float:
        return float(-scipy.special.ndtri(failure / 2)) * math.hypot(*scales)
