"""How far counts, sums, means, quantiles and extremes of records are from the truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.simulation.measure import Figures, Measure, units_of


class StatisticsMeasure(Measure):
    """Root mean square error of counts, of sums and means in parts of their columns' ranges, and of ranks.

    A quantile that its interval does not hold is as far off as can be.
    """

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        grid, n = self.case.grid, len(self.points)
        figures: dict[str, float] = {}
        result = found.result(grid)
        # A mean's error is promised times this number: the released one, or where none is, the noisy one.
        counts = [value.value for value in result.values if value.measure == "count"]
        rows = float(counts[0] if counts else found.reading.rows(found.totals)[0][0])
        for value in result.values:
            off = 0.0
            if value.measure.startswith(("quantile", "minimum", "maximum")):
                name = "rank_error" if value.measure.startswith("quantile") else "extreme_error"
                figures[name] = max(figures.get(name, 0.0), self._rank_off(value))
                continue
            if value.column is not None:
                low = float(grid.lower[value.column])
                column = low + grid.step * self.points[:, value.column]
                width = grid.step * grid.extents[value.column]
            if value.measure in ("count", "units"):
                off = abs(value.value - (n if value.measure == "count" else len(np.unique(self._units))))
            elif value.measure == "sum":
                off = abs(value.value - self._sum(column, low, low + width)) / max(abs(low), abs(low + width))
            elif value.measure == "mean" and value.value is not None and n:
                off = abs(value.value - column.mean()) * rows / (width / 2)
            if value.measure != "variance":
                name = f"{value.measure}_error"
                figures[name] = max(figures.get(name, 0.0), off)
        return figures

    @property
    def _units(self) -> NDArray[np.uint64]:
        return units_of(self.points, self.case.bounds)

    def _sum(self, column: NDArray[np.floating[Any]], low: float, high: float) -> float:
        """Return the sum of a column; where that of each unit is clamped, the sum of these."""
        if self.case.bounds.clamp == "row":
            return float(column.sum())
        return float(np.clip(np.bincount(self._units.astype(np.int64), column), low, high).sum())

    def _rank_off(self, value: Any) -> float:
        axis, n = value.column, len(self.points)
        ends = {"minimum": 0.0, "maximum": 1.0}
        wanted = n * (ends[value.measure] if value.measure in ends else float(value.measure.split("_")[1]))

        def at(units: float) -> int:
            return round((units - self.case.grid.lower[axis]) / self.case.grid.step)

        interval = None if value.low is None else (at(value.low), at(value.high))
        return self._off_or_missed(at(value.value), interval, wanted, axis)

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        return float(np.sqrt(np.mean(np.square(list(self.figures(found, {}).values())))))
