"""How many records lie outside of bounds."""

from collections.abc import Mapping
from typing import Any

from core.bounds.params import Bounds
from pipelines.simulation.measure import Figures, Measure


class BoundsMeasure(Measure):
    """Records outside of the bounds of a column beyond the share that is asked for, in the worst column."""

    @property
    def most(self) -> float:
        """See `Measure.most`."""
        return len(self.points)

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        outside = ((self.points < found.lower) | (self.points > found.upper)).sum(axis=0)
        share = self.case.params.get("outside", Bounds.outside)
        return max(0.0, float(outside.max()) - share * len(self.points))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        return {"records_outside": self.error(found)}
