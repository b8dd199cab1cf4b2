"""How far counts of rectangles are from the truth."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.simulation.measure import Figures, Measure


class RangesMeasure(Measure):
    """Mean error of 40 random rectangles; every cell within its promise."""

    @property
    def most(self) -> float:
        """See `Measure.most`."""
        return len(self.points)

    @cached_property
    def _asked(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], int]]:
        """First and last points of the rectangles, and how many records are in them."""
        rng, sizes = np.random.default_rng(0), np.array(self.case.grid.extents) + 1
        ends = [np.sort(rng.integers(0, sizes, (2, len(sizes))), axis=0) for _ in range(40)]
        inside = (((self.points >= low) & (self.points <= high)).all(axis=1).sum() for low, high in ends)
        return [(low, high, int(n)) for (low, high), n in zip(ends, inside, strict=True)]

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        errors = [abs(found.shares(low, high) @ found.estimates - n) for low, high, n in self._asked]
        return float(np.mean(errors))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        exact = np.bincount(found.cells.find(self.points), minlength=len(found.counts))
        return {"cell_error": float(np.abs(found.estimates - exact).max())}
