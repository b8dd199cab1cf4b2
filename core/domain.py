"""The finite universe X^d: bounds, step, and the way between data units and integer grid steps."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.int64]
"""Grid points, shape (n, d), in steps above the lower bound of each axis."""

_MAX_SQUARED_DIAMETER = 2**62


@dataclass(frozen=True)
class Ball:
    """A public L2 ball in data units that every record is moved onto."""

    center: tuple[float, ...]
    radius: float


@dataclass(frozen=True)
class Grid:
    """The universe X^d: per axis the points lower, lower + step, ..., at most upper.

    Args:
        lower: lower bound of each axis, data units, shape (d,).
        upper: upper bound of each axis, data units, shape (d,).
        step: distance between neighboring grid points, data units, the same on all axes.
        ball: optional public L2 ball; points outside it are moved radially onto it.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    step: float
    ball: Ball | None = None

    def __post_init__(self) -> None:
        if not self.lower or len(self.lower) != len(self.upper):
            raise ValueError(
                f"domain.lower has {len(self.lower)} and domain.upper {len(self.upper)} values: "
                "give both one value per column."
            )
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not (math.isfinite(low) and math.isfinite(high)):
                raise ValueError(
                    f"domain.lower {low} and domain.upper {high} on axis {axis} must be finite numbers."
                )
            if low >= high:
                raise ValueError(f"domain.lower {low} must be below domain.upper {high} on axis {axis}.")
        if not (math.isfinite(self.step) and self.step > 0):
            raise ValueError(f"domain.step is {self.step}: it must be a finite number above 0.")
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if self.step > high - low:
                raise ValueError(
                    f"domain.step {self.step} is larger than the range {high - low} of axis {axis}: "
                    "it must be at most upper - lower."
                )
            if self.step < 4 * max(math.ulp(low), math.ulp(high)):
                raise ValueError(
                    f"domain.step {self.step} is finer than float64 can tell values near {low} and {high} of "
                    f"axis {axis} apart: use a larger domain.step."
                )
            if (high - low) / self.step >= 2**31:
                raise ValueError(
                    f"domain: axis {axis} has more than 2^31 steps, too large for exact int64 distances; "
                    "use a larger domain.step or narrower bounds."
                )
        if sum(size**2 for size in self.extents) >= _MAX_SQUARED_DIAMETER:
            raise ValueError(
                "domain: the squared diameter in steps is 2^62 or more, too large for exact int64 "
                "distances; use a larger domain.step or narrower bounds."
            )
        if self.ball is not None:
            self._check_ball(self.ball)

    def _check_ball(self, ball: Ball) -> None:
        if len(ball.center) != self.dimension or not all(map(math.isfinite, ball.center)):
            raise ValueError(f"domain.ball.center needs {self.dimension} finite values, one per column.")
        if not (math.isfinite(ball.radius) and ball.radius >= self.step):
            raise ValueError(
                f"domain.ball.radius is {ball.radius}: it must be a finite number of at least domain.step."
            )
        inside = all(
            low <= c <= high for low, c, high in zip(self.lower, ball.center, self.upper, strict=True)
        )
        if not inside:
            raise ValueError("domain.ball.center must lie between domain.lower and domain.upper.")

    @property
    def dimension(self) -> int:
        """Number of axes d."""
        return len(self.lower)

    @property
    def extents(self) -> tuple[int, ...]:
        """Largest grid coordinate of each axis, in steps."""
        return tuple(
            math.floor((high - low) / self.step + 1e-9)
            for low, high in zip(self.lower, self.upper, strict=True)
        )

    @property
    def bounding_center(self) -> tuple[int, ...]:
        """Grid point in the middle of the universe (or of its ball), in steps."""
        if self.ball is None:
            return tuple(extent // 2 for extent in self.extents)
        center = self.quantize(np.array([self.ball.center]))[0]
        return tuple(int(c) for c in center)

    @property
    def diameter(self) -> int:
        """Distance between opposite corners, in steps, rounded down: its square is exact in int64."""
        return math.isqrt(sum(extent**2 for extent in self.extents))

    @property
    def bounding_radius(self) -> int:
        """Radius about `bounding_center` that holds every grid point a record can take, in steps."""
        if self.ball is None:
            return math.isqrt(sum((extent - extent // 2) ** 2 for extent in self.extents)) + 1
        # Half a step per axis for the point and for the center, and one for what float64 rounds.
        rounding = math.sqrt(self.dimension) + 1
        return min(math.ceil(self.ball.radius / self.step + rounding), self.diameter + 1)

    def quantize(self, values: NDArray[np.float64]) -> Points:
        """Clamp finite values to the bounds (and the ball) and round them to the grid.

        Args:
            values: shape (n, d), data units, all finite.

        Returns:
            Shape (n, d), int64 steps.
        """
        low = np.asarray(self.lower)
        clamped = np.clip(values, low, np.asarray(self.upper))
        if self.ball is not None:
            center = np.asarray(self.ball.center)
            clamped -= center
            # Axis by axis: sums in an order that depends on the number of rows would let a row move another.
            squares = np.zeros(len(clamped))
            for axis in range(self.dimension):
                squares += clamped[:, axis] ** 2
            norm = np.sqrt(squares)
            clamped *= np.minimum(1.0, self.ball.radius / np.maximum(norm, self.ball.radius))[:, None]
            # Not by way of the center's own coordinates, whose float64 spacing may exceed the step.
            clamped += center - low
        else:
            clamped -= low
        clamped /= self.step
        np.rint(clamped, out=clamped)
        return np.clip(clamped.astype(np.int64), 0, np.asarray(self.extents))

    def restore(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return grid points (..., d) in data units."""
        return np.asarray(self.lower) + np.asarray(steps, dtype=np.float64) * self.step
