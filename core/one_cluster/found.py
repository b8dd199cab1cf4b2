"""What the 1-cluster releases, a ball or nothing, and what it promises."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid
from core.marks import Length, Point


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
    resolution: Length | None = None
    count_error: int | None = None


@dataclass(frozen=True)
class Result:
    """The released ball in data units.

    Args:
        center: shape (d,).
        radius: of the ball.
        count: noisy number of records in it.
        at_least: the ball truly holds at least so many records, with probability 1 - failure by itself. It is
            the noisy count minus the error of its noise. None where the method does not state it.
        radius_factor: the radius is at most so many times that of the smallest ball that holds `target`
            records, with probability 1 - failure by itself. None where nothing is known about it.
    """

    center: Point
    radius: Length
    count: int
    at_least: int | None = None
    radius_factor: float | None = None


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
        at_least: see `Result`.
        radius_factor: see `Result`.
    """

    center: NDArray[np.int64]
    radius: int
    count: int
    at_least: int | None = None
    radius_factor: float | None = None

    @classmethod
    def counted(
        cls, center: NDArray[np.int64], radius: int, count: int, excess: int, factor: float | None
    ) -> "Found":
        """Return a ball with its noisy count, none below 0, and the number of records that this certifies.

        Args:
            center: shape (d,), grid steps.
            radius: grid steps.
            count: noisy number of records in the ball.
            excess: the noisy count exceeds the true one by more only with the job's failure probability.
            factor: the certified `radius_factor`.
        """
        return cls(center, radius, max(0, count), max(0, count - excess), factor)

    def result(self, grid: Grid) -> Result:
        """Return center and radius in data units, the count, and what is certified."""
        center, radius = grid.restore_ball(self.center, self.radius)
        factor = self.radius_factor
        if factor is not None:
            factor = factor * grid.stretch if grid.shows(radius) else None
        return Result(center, radius, self.count, self.at_least, factor)
