"""What the 1-cluster releases, a ball or nothing, and what it promises."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid


@dataclass(frozen=True)
class Promises:
    """What a method promises; a figure is None where nothing is promised.

    Args:
        missing: the ball holds at least target - missing records.
        radius_factor: let r be the radius of the smallest ball that holds `target` records. The released
            radius is at most radius_factor times r, or at most `resolution` if that is larger.
        resolution: see `radius_factor`; data units.
        count_error: the released count is off by at most this.
    """

    missing: int | None
    radius_factor: float | None
    resolution: float | None = None
    count_error: int | None = None


@dataclass(frozen=True)
class Result:
    """The released ball in data units.

    Args:
        center: shape (d,).
        radius: of the ball.
        count: noisy number of records in it.
    """

    center: tuple[float, ...]
    radius: float
    count: int


@dataclass(frozen=True)
class NotFound:
    """No ball was found: no place showed enough records."""

    def result(self, grid: Grid) -> Result | None:
        """Return None: the outcome is not_found."""
        return None


@dataclass(frozen=True)
class Found:
    """The released ball.

    Args:
        center: shape (d,), grid steps.
        radius: grid steps.
        count: noisy number of records within `radius` of `center`.
    """

    center: NDArray[np.int64]
    radius: int
    count: int

    def result(self, grid: Grid) -> Result:
        """Return center and radius in data units, and the count."""
        return Result(tuple(grid.restore(self.center).tolist()), self.radius * grid.step, self.count)
