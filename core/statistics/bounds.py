"""How far the noise of statistics may take each measure, but for a failure probability."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from core.domain import Grid
from core.mechanisms.tails import largest_of, largest_of_sums, largest_weighted_sum_of_two
from core.statistics.quantities import Quantity


@dataclass(frozen=True)
class Bounds:
    """What the errors of each measure are at most, in all groups at once.

    Args:
        grid: the universe.
        quantities: what is summed up.
        scales: of the noise of each quantity, by its kind and column; 0 of one that is tied to another.
        several: whether a unit may have several rows in a group.
        gaussian: whether noise is Gaussian, or else Laplace.
        groups: how many groups there are.
        failure: probability with which a bound may fail.
    """

    grid: Grid
    quantities: tuple[Quantity, ...]
    scales: Mapping[tuple[str, int], float]
    several: bool
    gaussian: bool
    groups: int
    failure: float

    @property
    def rows(self) -> int:
        """Of a number of rows."""
        if ("above", 0) in self.scales:
            return self._of_sums(2, self.scales["above", 0], self.grid.extents[0])
        scales, steps = self._rows
        return self._whole(scales, steps)

    @property
    def units(self) -> int:
        """Of a number of units."""
        if not self.several:
            return self.rows
        if ("missing", 0) not in self.scales:
            return self._whole((self.scales.get(("units", 0), 0.0), 0.0), 1.0)
        place = next(i for i, quantity in enumerate(self.quantities) if quantity.kind == "missing")
        first, missing = self.quantities[0], self.quantities[place]
        return self._of_sums(place + 1, self.scales[first.kind, 0], missing.extent * missing.rows)

    def largest(self, measure: str) -> float:
        """Return the bound of a sum or a mean, of the column where it is largest; see `Promises`.

        The error of a mean from a pair, times n, is (1 - u) Z - u Z' with 0 <= u <= 1. Since noise is
        symmetric and log-concave, no such sum exceeds a bound more probably than Z alone (Proschan 1965). The
        released number of rows may be 1/2 larger than n, for which 1 is added: an error is at most the range.
        """
        grid, found = self.grid, 0.0
        if ("above", 0) in self.scales:
            scale, extent, low = self.scales["above", 0], grid.extents[0], grid.lower[0] / grid.step
            if measure == "mean":
                return self._all((scale, 0.0), 1.0, self.groups) / (extent / 2) + 1
            parts = [abs(end) / max(abs(low), abs(low + extent)) / extent for end in (low, low + extent)]
            return self._all((parts[0] * scale, parts[1] * scale), sum(parts), self.groups)
        of_rows, steps = self._rows
        rows, draws = math.hypot(*of_rows), self.groups * grid.dimension
        for quantity in (each for each in self.quantities if each.kind in ("sum", "unit_sum")):
            axis = quantity.axis
            low, high = grid.lower[axis] / grid.step, grid.upper[axis] / grid.step
            if measure == "sum":
                weight, unit = abs(low + quantity.center), max(abs(low), abs(high))
                weight = 0.0 if quantity.of_units else weight
            else:
                weight, unit = float(quantity.bound), quantity.extent / 2
            weight = weight if rows else 0.0
            both = self.scales[quantity.kind, axis], weight * rows
            found = max(found, self._all(both, 1 + weight * steps, draws) / unit)
        return found

    @property
    def _rows(self) -> tuple[tuple[float, float], float]:
        """The scales of the noises of a number of rows, and their weights together, with rounding."""
        for quantity in self.quantities:
            if quantity.kind == "excess":
                both = quantity.rows + 1
                return (self.scales["units", 0] * both / 2, self.scales["excess", 0] / 2), both / 2 + 1
        return (self.scales.get(("rows", 0), 0.0), 0.0), 1.0

    def _whole(self, scales: tuple[float, float], steps: float) -> int:
        """Return the bound of a whole number; under Laplace noise it is that of the first scale alone."""
        if self.gaussian:
            return math.ceil(self._all(scales, steps, self.groups))
        return largest_of(self.groups, scales[0], self.failure)

    def _of_sums(self, noises: int, scale: float, unit: int) -> int:
        """Return the bound of a number that is a sum of several noises over `unit`, rounded."""
        return math.floor(largest_of_sums(self.groups, noises, scale, self.failure) / unit + 1 / 2)

    def _all(self, scales: tuple[float, float], steps: float, draws: int) -> float:
        """Return a bound on all of `draws` weighted sums of two noises, but for the failure probability.

        Args:
            scales: of both noises, times their weights.
            steps: the weights together, by which a whole number may be larger than a real one.
            draws: how many sums there are.
        """
        if not any(scales):
            return 0.0
        failure = self.failure / draws
        if self.gaussian:
            return -NormalDist().inv_cdf(failure / 2) * math.hypot(*scales) + steps
        return largest_weighted_sum_of_two(scales, failure) + steps
