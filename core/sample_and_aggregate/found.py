"""What sample and aggregate releases and promises: a stable point, and how far the answers are from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Promises:
    """What every aggregator promises. All of it holds together with probability 1 - failure.

    Suppose that a fraction `stable_fraction` of the blocks answers within a distance D of a point c on each
    axis. Then the released value is within `spread_factor` D + errors[i] of c on axis i, whatever the other
    blocks answer.

    Args:
        leftover: the largest of `errors`, or the width of the widest axis where these are not promised; data
            units.
        radius_blocks: the released radius holds as many answers as there are stable ones, but for
            `radius_blocks` at most. They need not be the stable ones, where others are nearer to the value.
            None where no radius is released, or nothing is promised about it.
        errors: see above, one for each axis, data units; None where nothing is promised.
        spread_factor: see above; None where nothing is promised.
        mean_errors: the released value is within mean_errors[i] of the mean of the answers on axis i, data
            units; None where this is not promised before the run.
        failed_error: the released number of failed blocks is off by at most this; None where they are not
            counted.
        failed_most: a run whose released number of failed blocks is above this ends as not_found.
    """

    leftover: float
    radius_blocks: int | None
    errors: tuple[float, ...] | None = None
    spread_factor: float | None = None
    mean_errors: tuple[float, ...] | None = None
    failed_error: int | None = None
    failed_most: int | None = None


@dataclass(frozen=True)
class Result:
    """The answer.

    Args:
        value: a point, data units.
        radius: about the value, data units; None where the rank error leaves no promise.
        errors: half the width, on each axis, of an interval about the value that holds the exact aggregate of
            the answers: for `average` their mean, of answers clamped to their noisy quartiles if `ranges` is
            loose, and their median for the others. Data units; None where no such interval is promised.
        failed_blocks: noisy number of blocks that failed; None where they are not counted.
    """

    value: tuple[float, ...]
    radius: float | None
    errors: tuple[float, ...] | None = None
    failed_blocks: int | None = None


@dataclass(frozen=True)
class Stable:
    """A released point, and how far the blocks' answers are from it.

    Args:
        value: shape (d,), grid steps.
        radius: grid steps, or None.
        errors: see `Result`; grid steps.
        failed: see `Result`.
    """

    value: Ints
    radius: int | None
    errors: tuple[float, ...] | None = None
    failed: int | None = None

    def result(self, grid: Grid) -> Result:
        """Return the answer in data units."""
        return Result(
            tuple(grid.restore(self.value).tolist()),
            None if self.radius is None else grid.length(self.radius),
            None if self.errors is None else tuple(error * grid.step for error in self.errors),
            self.failed,
        )


@dataclass(frozen=True)
class Unstable:
    """No point was found, because too many blocks failed or no point has enough answers."""

    def result(self, grid: Grid) -> None:
        """Return None: the outcome is not_found."""
        return
