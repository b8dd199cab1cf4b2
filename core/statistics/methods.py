"""The two methods of statistics: Laplace noise and Gaussian noise on the totals of groups."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, ClassVar

from core.budget import WHOLE, Mechanism
from core.draws import Additive, Charged, Gaussian, Laplace, charged
from core.errors import InvalidValue
from core.grouping import Contributions
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection, SumsThreshold
from core.mechanisms.tails import rounded_deviation
from core.statistics.bounds import Bounds
from core.statistics.by_group import TotalsByGroup
from core.statistics.found import Promises, Reading
from core.statistics.params import Statistics
from core.statistics.quantities import Change, Quantity, drawn_together
from core.statistics.ranks import Ranks, Sought
from core.statistics.shares import Weighted, best, constants, split
from core.task import Accuracy, Method
from core.tightness import Tightness

_MOST_GROUPS = 1 << 40
"""Groups of private keys, at most: draws of disjoint groups are charged once, however many there are."""


class ReleaseTotals(Method[Statistics]):
    """Noise on the totals of groups. Shares of the budget and centers of sums make the error smallest.

    Which private groups are found follows from the noisy number of their units, where it is released anyway:
    this costs delta alone, and a separate choice at the same epsilon would find hardly more. With a noisy
    number of rows that of units is released, too, by what costs nothing; see `core.statistics.shares`.
    Otherwise the optimal selection has a share of its own.
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
        return self.setting.params.private

    @property
    def _groups(self) -> int:
        """How many groups keep a promise at once."""
        grouping = self.setting.params.grouping
        return 1 if grouping is None or grouping.labels is None else max(1, len(grouping.labels))

    @property
    def _failure(self) -> float:
        """What is left of the failure probability for each promise, since any of them may fail.

        Nothing is promised of a variance, and numbers of records that are public have no noise.
        """
        params = self.setting.params
        sure = {"variance", "count", "units"} if self.change.fixed else {"variance"}
        measures = {name for name in params.measures if isinstance(name, str)} - sure
        promises = len(measures) + 2 * bool(params.probabilities) + self._private  # ranks, and intervals
        return params.failure / max(1, promises)

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
        """See `core.statistics.shares.best`."""
        return best(self.setting.params, self.setting.grid, self.change, self.gaussian)

    @cached_property
    def _sought(self) -> tuple[Sought, ...]:
        """The ranks that are released beside the totals."""
        return Sought.of(self.setting.params, self.setting.grid.dimension)

    def _ranks(self, sought: Sought, epsilon: float, stated: bool = True) -> Ranks:
        """Return the release of ranks that spends `epsilon`; see `Sought.paid`."""
        setting, failure = self.setting, self._failure / (self._groups * self.setting.grid.dimension)
        grouping = setting.params.grouping
        groups = 0 if grouping is None else _MOST_GROUPS if grouping.labels is None else self._groups
        return sought.paid(epsilon, failure, setting.grid, self.change, groups, stated)

    @cached_property
    def _shares(self) -> list[float]:
        """Part of the budget of each quantity, then of all ranks that are sought together.

        An error of ranks is in rows, as that of a count. It is proportional to 1 / epsilon, and is computed
        at epsilon 1. Laplace noise of L1 sensitivity 1 has a variance of 2 / epsilon^2, hence the half. Under
        Gaussian noise a pure draw of epsilon^2 / 2 = rho is compared to a variance of 1 / (2 rho).
        """
        unit = 1.0 if self.gaussian else 0.5
        ranks = [len(s.names) * self._ranks(s, 1.0).off ** 2 * unit for s in self._sought]
        return split([*constants(self._weighted, self.change, self.gaussian), *ranks], self.gaussian)

    @abstractmethod
    def _epsilon(self, share: float) -> float:
        """Return what a share of the budget pays for where draws are pure."""

    @property
    def _first(self) -> slice:
        """The first quantity, which finds private keys, and those that are tied to it."""
        return drawn_together([each.quantity for each in self._weighted])[0]

    @property
    def _coin(self) -> bool:
        """Whether groups are found by the optimal selection: no number of units is released."""
        return self._private and not self.gaussian and self._weighted[0].weight == 0

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def charges(self, share: float) -> tuple[Mechanism, ...]:
        """See `Method.charges`; the errors of ranks are not needed for them."""
        return charged((self._round(share, stated=False),))

    def _round(self, share: float, stated: bool = True) -> TotalsByGroup:
        params = self.setting.params
        parts: dict[str, Any] = {"times": params.parts, "disjoint": params.parts > 1}
        quantities, shares = tuple(each.quantity for each in self._weighted), self._shares
        noises: list[Additive | None] = [
            None if quantity.tied else self._noise(quantity, share * part, parts)
            for quantity, part in zip(quantities, shares, strict=False)
        ]
        ranks = tuple(
            self._ranks(sought, self._epsilon(share * part), stated)
            for sought, part in zip(self._sought, shares[len(quantities) :], strict=True)
        )
        deviations = [0.0] * len(quantities)
        for drawn in drawn_together(quantities):
            noise = noises[drawn.start]
            deviations[drawn] = [0.0 if noise is None else noise.deviation] * len(quantities[drawn])
        selection = None
        if self._private:
            selection = self._selection(noises[0], share * shares[0], parts)
            deviations[0] = 0.0 if isinstance(selection, OptimalSelection) else deviations[0]
        columns = self.setting.grid.dimension
        reading = Reading(params.names, quantities, tuple(deviations), columns, ranks)
        reading = replace(reading, whole=self._whole(reading, noises[0] if quantities else None))
        if self._private:
            noises[0] = None
        return TotalsByGroup(reading, tuple(noises), params.grouping, selection, params.parts)

    def _whole(self, reading: Reading, first: Additive | None) -> tuple[float, float]:
        """Return the standard deviations of the numbers of rows and of units that are released.

        Those that follow from several sums are rounded. From `units` and `excess` follow halves of whole
        numbers. If x has a noise e that is symmetric, and n is whole, the square of floor(x + 1/2) - n is
        e^2, or (e + 1/2)^2 where e is half of an odd number. Its mean is at most that of e^2 plus 1/4.

        Args:
            reading: how numbers follow from totals.
            first: noise of the first quantity, and of those that are tied to it.
        """
        rows, units = reading.unrounded
        kinds = {quantity.kind: quantity for quantity in reading.quantities}
        scale = 0.0 if first is None else first.scale
        if "excess" in kinds:
            rows = math.hypot(rows, 1 / 2)
        if "above" in kinds:
            rows = rounded_deviation(2, scale, kinds["above"].extent)
            units = units if self.setting.params.several else rows
        if "missing" in kinds:
            together = kinds["missing"].extent * kinds["missing"].rows
            units = rounded_deviation(3 if "above" in kinds else 2, scale, together)
        return rows, units

    def _selection(
        self, count: Additive | None, share: float, parts: dict[str, Any]
    ) -> CountThreshold | OptimalSelection:
        """Return what finds private groups, given the noise of their number of units."""
        delta, groups = WHOLE * self.setting.budget.delta, self.change.groups
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
        *_, last = tied = [each.quantity for each in self._weighted[self._first]]
        one = {"extent": max(1, last.extent) * last.rows, "sums": len(tied)}
        found_by, more = (SumsThreshold, one) if len(tied) > 1 else (CountThreshold, {})
        return found_by.of(
            f"{count.what}, and which groups have enough",
            count.scale,
            count.sensitivity,
            of_delta,
            groups,
            self.gaussian,
            **more,
            **parts,
        )

    @abstractmethod
    def _noise(self, quantity: Quantity, share: float, more: dict[str, Any]) -> Additive:
        """Return the noise that a share of the budget pays for; none where nothing changes."""

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        params, round_ = self.setting.params, self._round(share)
        selection, names = round_.selection, params.measures
        quantities, ranks = round_.reading.quantities, round_.reading.ranks
        scales: dict[tuple[str, int], float] = {}
        for quantity, noise in zip(quantities, round_.noises, strict=True):
            scales[quantity.kind, quantity.axis] = 0.0 if noise is None else noise.scale
        if isinstance(selection, CountThreshold):
            scales[quantities[0].kind, 0] = selection.scale
        groups, failure, grid = self._groups, self._failure, self.setting.grid
        bounds = Bounds(grid, quantities, scales, params.several, self.gaussian, groups, failure)
        found = None if selection is None else selection.found_from(failure)
        promises = Promises(
            bounds.rows if "count" in names else None,
            bounds.units if "units" in names else None,
            bounds.largest("sum") if "sum" in names else None,
            bounds.largest("mean") if "mean" in names else None,
            found,
            max((each.rank_error for each in ranks if not each.sought.extreme), default=None),
            max((each.rank_error for each in ranks if each.sought.extreme), default=None),
        )
        variances = zip(self._weighted, round_.reading.deviations, strict=True)
        square = sum(each.weight * deviation**2 for each, deviation in variances)
        square += sum(len(each.sought.names) * each.off**2 for each in ranks)
        both = zip(("count", "units"), round_.reading.whole, round_.reading.unrounded, strict=True)
        for name, whole, unrounded in both:
            square += (whole**2 - unrounded**2) * (name in names)  # rounding changes these errors a little
        square /= len(round_.reading.names())
        if found is not None:
            square = (square + _square_missing(found - 1)) / 2
        error = math.sqrt(square)
        told = "units" in names or ("count" in names and not params.several)
        few = selection.least - bounds.units if told and isinstance(selection, CountThreshold) else 0
        notes = self._notes(promises, ranks, few)
        return Accuracy(promises, error, notes, tightness=self._tightness(promises))

    def _tightness(self, promises: Promises) -> dict[str, Tightness]:
        """Return how near errors come to each promise."""
        of_noise = Tightness(
            "The noise of totals does not depend on the rows. So the errors of one measure are usually "
            "smaller than promised by up to a third.",
            reached=False,
        )
        of_ranks = Tightness(
            "The promised error of a quantile holds also if all rows of a group lie in a small part of the "
            "domain, and that of a minimum or maximum if they all have one value. On spread values errors of "
            "quantiles are ten times smaller or more, and those of extremes by a third.",
            reached=False,
        )
        found = Tightness(
            "The number from which on a group is surely released allows for the largest noise of one group. "
            "Groups of fewer are often released, too.",
            reached=False,
        )
        why = {"found_from": found, "rank_error": of_ranks, "extreme_error": of_ranks}
        named = (each.name for each in fields(promises))
        return {name: why.get(name, of_noise) for name in named if getattr(promises, name) is not None}

    def _notes(self, promises: Promises, ranks: Sequence[Ranks], few: int) -> tuple[str, ...]:
        """Return the notes. Private groups of fewer than `few` units are off by more than is promised."""
        params = self.setting.params
        covers = "all groups and columns at once"
        if self._private:  # whose number is not known
            covers = "all columns of any one group, so of many groups some are further off"
        notes = []
        if self._tightness(promises).keys() - {"found_from"}:
            notes += [f"All promises of the plan share the failure probability, and each covers {covers}."]
        if params.contributions is not None:
            notes.append(self._costs_of_bounds())
        if self._sought:
            part = sum(self._shares[len(self._weighted) :])
            notes.append(
                f"{100 * part:.3g}% of {'rho' if self.gaussian else 'epsilon'} pays for quantiles, minima "
                "and maxima. Shares make the sum of the squared errors least, where ranks count in rows."
            )
        if promises.rank_error is not None:
            asked = [p for each in ranks for p in each.sought.probabilities if not each.sought.extreme]
            both, one = (
                math.ceil(promises.rank_error / min(of(p, 1 - p) for p in asked)) for of in (max, min)
            )
            one_end = f" Of fewer than about {one:,}, an end may be the domain's." if both < one < 1e9 else ""
            notes.append(
                f"Of fewer than about {both:,} rows{'' if params.grouping is None else ' of a group'}, a "
                f"quantile may say nothing: its interval is as wide as the domain.{one_end}"
            )
            typical = max(each.typical for each in ranks if not each.sought.extreme)
            notes.append(
                f"The standard error of a quantile's rank is about {typical:.3g} rows where rows are dense, "
                "and as a rule up to three times that where they are fewer than some hundred times as many."
            )
        if promises.extreme_error is not None:
            notes.append(
                f"Minima and maxima are sought {(promises.extreme_error + 1) // 2:,} rows inside of the "
                f"ends. In a group of fewer than about {math.ceil(1.5 * promises.extreme_error):,} rows they "
                "say nothing, and a minimum may be above the maximum."
            )
        if self._private:
            kept = params.contributions is not None
            many = "in which enough units keep rows" if kept else "with enough rows"
            notes.append(
                f"Only groups {many} are released, so a missing group is not always empty. Which groups are "
                "found also depends on the noise."
            )
            if few > 1:
                small = "in which fewer than {:,} units keep rows" if kept else "of fewer than {:,} rows"
                notes[-1] += (
                    f" One {small.format(few)} is released only where noise makes its number too large by "
                    "more than is promised."
                )
        elif params.grouping is not None and {"count", "units", "sum"} & set(params.names):
            notes.append(
                "Counts that noise brings below 0 are released as 0, and so are sums of columns that have no "
                "value below 0. So the figures of many small groups add up to too much: ask for their total "
                "instead."
            )
        return tuple(notes)

    def _costs_of_bounds(self) -> str:
        """Say what each bound on contributions costs in noise."""
        change, params, one = self.change, self.setting.params, Change(1, 1, self.change.changes, False, 0)
        units, grouped = Quantity("units"), params.grouping is not None
        norms = (change.l2(units), one.l2(units)) if self.gaussian else (change.l1(units), one.l1(units))
        groups = f"{change.groups:,} group{'' if change.groups == 1 else 's'}"
        where = f" in at most {groups}" if grouped else ""
        costs = [f"groups multiplies the noise by {norms[0] / norms[1]:,.4g}"] if grouped else []
        of_rows = "that of counts" if params.clamped else "that of counts and sums"
        costs.append(f"rows multiplies {of_rows} by {change.rows:,}")
        if params.clamped:
            costs.append("that of sums does not grow with rows, since clamp is unit")
        if self._sought:
            both = "both multiply" if grouped else "rows multiplies"
            costs.append(f"{both} that of quantiles, minima and maxima by {change.groups * change.rows:,}")
        return (
            f"A unit counts{where} with at most {change.rows:,} of its rows{' in each' if grouped else ''}, "
            f"chosen at random. Of these bounds, {'; '.join(costs)}. What the bounds leave out is not in the "
            "errors; with contributions.guess, a plan estimates it."
        )


def _square_missing(most: int) -> float:
    """Return the mean square of the units of a group that may be missing, of 1 to `most` units.

    The logarithm of the number is even, as sizes of groups roughly are: orders of magnitude are as likely.
    """
    return (most**2 - 1) / (2 * math.log(most)) if most > 1 else float(most)


class LaplaceTotals(ReleaseTotals):
    """Discrete Laplace noise: best for few measures, and where a unit is in few groups."""

    name: ClassVar[str] = "laplace"
    gaussian: ClassVar[bool] = False

    def _noise(self, quantity: Quantity, share: float, more: dict[str, Any]) -> Additive:
        l1 = self.change.l1(quantity)
        if not l1:
            return Laplace(what=quantity.what, scale=0.0, sensitivity=0.0, **more)
        return Laplace.of(quantity.what, share * self.setting.budget.epsilon, l1, **more)

    def _epsilon(self, share: float) -> float:
        return share * self.setting.budget.epsilon


class GaussianTotals(ReleaseTotals):
    """Discrete Gaussian noise: best for many measures, and where a unit is in many groups."""

    name: ClassVar[str] = "gaussian"
    gaussian: ClassVar[bool] = True

    def _noise(self, quantity: Quantity, share: float, more: dict[str, Any]) -> Additive:
        l2 = self.change.l2(quantity)
        if not l2:
            return Gaussian(what=quantity.what, scale=0.0, sensitivity=0.0, **more)
        return Gaussian.of(quantity.what, share * self._rho, l2, **more)

    @property
    def _rho(self) -> float:
        epsilon, logarithm = self.setting.budget.epsilon, math.log(1 / self.setting.budget.delta)
        return (math.sqrt(logarithm + epsilon) - math.sqrt(logarithm)) ** 2  # rho + 2 sqrt(rho ln(1/delta))

    def _epsilon(self, share: float) -> float:
        return math.sqrt(2 * share * self._rho)
