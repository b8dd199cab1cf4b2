"""What the 1-cluster answers and promises: a ball, or nothing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid


@dataclass(frozen=True)
class Promises:
    """What a method promises; None where it promises nothing.

    Args:
        missing: the ball holds at least target - missing records.
        radius_factor: its radius is at most this times that of the smallest ball that holds the target,
        resolution: or at most this, in data units, where that is larger.
        count_error: the released count is off by at most that.
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
    """No answer: nothing was dense enough."""

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
