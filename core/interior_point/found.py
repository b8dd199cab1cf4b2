"""What interior_point answers and promises."""

from dataclasses import dataclass

import numpy as np

from core.domain import Grid
from core.marks import Position


@dataclass(frozen=True)
class Promises:
    """What every method of interior_point promises.

    Args:
        records_needed: from so many records on, the released point is an interior point.
    """

    records_needed: int


@dataclass(frozen=True)
class Result:
    """The answer: a point in data units."""

    point: Position


@dataclass(frozen=True)
class FoundPoint:
    """The released point.

    Args:
        step: grid point; None where the method found none.
    """

    step: int | None

    def result(self, grid: Grid) -> Result | None:
        """Return the point in data units."""
        if self.step is None:
            return None
        return Result(grid.restore(np.array([[self.step]]))[0, 0].item())
