"""The finite universe X^d: bounds, step, and conversion between data units and integer grid steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.decimals import last_up_to, with_decimals
from core.errors import InvalidValue
from core.geography import FAR, RADIUS, STRETCH, Geography
from core.times import Times

Points = NDArray[np.int64]
"""Grid points, shape (n, d), in steps above the lower bound of each axis."""

Whole = NDArray[np.int64] | NDArray[np.uint64]

_MAX_SQUARED_DIAMETER = 2**62
_MAX_STEPS = 2**31
_MAX_WIDE = 2**62  # points of an axis: keys are int64, and twice a point plus a label must fit
_EXACT = 2**53  # up to here float64 holds every whole number


def distances_squared(points: Points, center: NDArray[Any]) -> NDArray[Any]:
    """Return the squared L2 distances of points (n, d) from a center (d,), shape (n,), exact for int64."""
    moved = points - center
    return np.asarray(np.einsum("ij,ij->i", moved, moved))


@dataclass(frozen=True)
class Ball:
    """A public L2 ball in data units that every record is moved onto."""

    center: tuple[float, ...]
    radius: float


def _bounds(axis: int, low: float, high: float, allowed: str) -> InvalidValue:
    return InvalidValue("lower", low, allowed, f"is {low} and upper {high} on axis {axis}")


@dataclass(frozen=True)
class Grid:
    """The universe X^d: on each axis the points lower, lower + step, ..., at most upper.

    Bounds and step are floats, and distances between grid points are exact in int64. A universe of whole
    numbers may be too large for that. Such a universe is `wide`: its bounds and step are Python integers, and
    its arithmetic works axis by axis and is exact for every int64 and uint64. Code that needs distances calls
    `check_distances` first.

    Args:
        lower: lower bound of each axis, data units, shape (d,).
        upper: upper bound of each axis, data units, shape (d,).
        step: distance between neighboring grid points, data units, the same on all axes.
        ball: optional public L2 ball; points outside it are moved radially onto it.
        times: what the points are where axes are of dates or timestamps. Such an axis has the bounds 0 and n,
            and the step is 1.
        geography: what the points are where the columns are latitude and longitude; see `on_earth`. Data
            units are then degrees for places and metres for lengths, while bounds are in metres.

    Raises:
        InvalidValue: a value is out of range, or the universe is too large.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    step: float
    ball: Ball | None = None
    times: Times | None = None
    geography: Geography | None = None

    def __post_init__(self) -> None:
        if not self.lower or len(self.lower) != len(self.upper):
            raise InvalidValue(
                "lower",
                self.lower,
                "give both one value per axis",
                f"has {len(self.lower)} and upper {len(self.upper)} values",
            )
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not all(-(2**63) <= x < 2**64 for x in (low, high) if isinstance(x, int)):
                raise _bounds(axis, low, high, "they must fit into int64 or uint64")
            if not (math.isfinite(low) and math.isfinite(high)):
                raise _bounds(axis, low, high, "they must be finite numbers")
            if low >= high:
                raise _bounds(axis, low, high, "lower must be below upper")
        if not (self.step > 0 and (isinstance(self.step, int) or math.isfinite(self.step))):
            raise InvalidValue("step", self.step, "it must be a finite number above 0")
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if self.step > high - low:
                raise InvalidValue(
                    "step",
                    self.step,
                    "it must be at most upper - lower",
                    f"is {self.step}, larger than the range {high - low} of axis {axis}",
                )
        excess = self._excess()
        whole = all(map(_is_whole, (*self.lower, *self.upper, self.step)))
        if excess is not None and not whole:
            raise excess
        kind: type[float] = float if excess is None else int
        object.__setattr__(self, "lower", tuple(map(kind, self.lower)))
        object.__setattr__(self, "upper", tuple(map(kind, self.upper)))
        object.__setattr__(self, "step", kind(self.step))
        if self.wide:
            self._check_wide()
        if self.ball is not None:
            self.check_distances()
            self._check_ball(self.ball)

    @classmethod
    def on_earth(cls, geography: Geography) -> "Grid":
        """Return the universe of a region of the Earth.

        Raises:
            InvalidValue: the step is too fine or too large for it.
        """
        ends = [(low * geography.step, high * geography.step) for low, high in geography.extents]
        lower, upper = zip(*ends, strict=True)
        return cls(lower, upper, geography.step, geography=geography)

    def _excess(self) -> InvalidValue | None:
        """Return in what the universe exceeds float64 coordinates and int64 distances, if it does."""
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if self.step < 4 * max(math.ulp(low), math.ulp(high)):
                return InvalidValue(
                    "step",
                    self.step,
                    "use a larger one",
                    f"is {self.step}, finer than float64 can tell apart near {low} and {high} of axis {axis}",
                )
            for bound in (low, high):
                if bound != float(bound):
                    return InvalidValue(
                        "lower" if bound == low else "upper",
                        bound,
                        f"use {int(float(bound))}",
                        f"is {bound} on axis {axis}, which is not exact in float64",
                    )
            if (high - low) / self.step >= _MAX_STEPS:
                return InvalidValue(
                    "step",
                    self.step,
                    "use a larger one, or narrower bounds",
                    f"is {self.named_step}, which makes more than 2^31 steps of axis {axis}, too large for "
                    "exact int64 distances",
                )
        if sum(size**2 for size in self.extents) >= _MAX_SQUARED_DIAMETER:
            return InvalidValue(
                "step",
                self.step,
                "use a larger one, or narrower bounds",
                f"is {self.named_step}, which makes a squared diameter of 2^62 steps or more, too large for "
                "exact int64 distances",
            )
        return None

    def _check_wide(self) -> None:
        if min(self.lower) < 0 and max(self.upper) >= 2**63:
            raise InvalidValue(
                "lower",
                self.lower,
                "use narrower bounds",
                f"and upper go from {min(self.lower)} to {max(self.upper)}, which fit neither into int64 nor "
                "into uint64",
            )
        for axis, extent in enumerate(self.extents):
            if extent >= _MAX_WIDE:
                raise InvalidValue(
                    "step",
                    self.step,
                    "int64 keys, which also hold a label, allow 2^62; use a larger one or narrower bounds",
                    f"is {self.named_step}, which makes {extent + 1} points of axis {axis}",
                )

    @property
    def named_step(self) -> float | str:
        """The step as a job writes it."""
        return self.step if self.times is None else self.times.written

    @property
    def wide(self) -> bool:
        """Whether this is a universe of whole numbers that is too large for distances."""
        return isinstance(self.step, int)

    def check_distances(self) -> None:
        """Raise an InvalidValue where float64 coordinates and int64 distances don't serve."""
        excess = self._excess()
        if excess is not None:
            raise excess

    def _check_ball(self, ball: Ball) -> None:
        if len(ball.center) != self.dimension or not all(map(math.isfinite, ball.center)):
            raise InvalidValue(
                "ball.center", list(ball.center), f"it needs {self.dimension} finite values, one per axis"
            )
        if not (math.isfinite(ball.radius) and ball.radius >= self.step):
            raise InvalidValue("ball.radius", ball.radius, "it must be a finite number of at least one step")
        inside = all(
            low <= c <= high for low, c, high in zip(self.lower, ball.center, self.upper, strict=True)
        )
        if not inside:
            raise InvalidValue("ball.center", list(ball.center), "it must lie between lower and upper")

    @property
    def dimension(self) -> int:
        """Number of axes d."""
        return len(self.lower)

    @property
    def columns(self) -> int:
        """Number of columns that become the axes."""
        return self.dimension if self.geography is None else 2

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Largest grid coordinate of each axis, in steps."""
        if self.wide:
            return tuple(
                int((high - low) // self.step) for low, high in zip(self.lower, self.upper, strict=True)
            )
        return tuple(
            last_up_to(high, low, self.step, _MAX_STEPS)
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
        """Radius about `bounding_center` that holds all grid points that a record can have, in steps."""
        if self.ball is None:
            box = math.isqrt(sum((extent - extent // 2) ** 2 for extent in self.extents)) + 1
            return box if self.geography is None else min(box, self._radius_of_sphere(self.geography))
        # Half a step per axis for the point and for the center, and one for what float64 rounds.
        rounding = math.sqrt(self.dimension) + 1
        return math.ceil(min(self.ball.radius / self.step + rounding, self.diameter + 1))

    def _radius_of_sphere(self, geography: Geography) -> int:
        """Return a radius about `bounding_center` that holds all points of the sphere, in steps."""
        if geography.flat:
            return self.diameter + 1
        middle = [low + at * self.step for low, at in zip(self.lower, self.bounding_center, strict=True)]
        return math.ceil((RADIUS + math.hypot(*middle)) / self.step + math.sqrt(self.dimension) / 2)

    def quantize(self, values: NDArray[Any]) -> Points:
        """Clamp finite values to the bounds (and the ball) and round them to the grid.

        Args:
            values: shape (n, columns), data units, all finite; for a wide grid see `quantize_axis`.

        Returns:
            Shape (n, d), int64 steps.
        """
        if self.wide:
            axes = [self.quantize_axis(values[:, axis], axis) for axis in range(self.dimension)]
            return np.stack(axes, axis=1)
        if self.geography is not None:
            values = self.geography.place(values)
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
        return np.asarray(np.clip(clamped.astype(np.int64), 0, np.asarray(self.extents)))

    def outside(self, values: NDArray[Any], axis: int) -> NDArray[np.bool_]:
        """Return which values of a column, in data units, are not within its bounds; NaN may be either."""
        if self.geography is not None:
            return self.geography.outside(values, axis)
        with np.errstate(invalid="ignore"):
            return np.asarray((values < self.lower[axis]) | (values > self.upper[axis]))

    def serves_floats(self, axis: int) -> bool:
        """Whether float64 holds every whole number between the bounds of an axis, and every distance."""
        low, high = self.lower[axis], self.upper[axis]
        return low >= -_EXACT and high <= _EXACT and high - low <= _EXACT

    def quantize_axis(self, values: NDArray[Any], axis: int) -> NDArray[np.int64]:
        """Clamp values to an axis of a wide grid and round them to its points, halves to even steps.

        Args:
            values: shape (n,), data units. They are int64 or uint64, which are rounded exactly, or finite
                floats on an axis that `serves_floats`.
            axis: which one.

        Returns:
            Shape (n,), steps.
        """
        low, high, step = (int(x) for x in (self.lower[axis], self.upper[axis], self.step))
        extent = self.extents[axis]
        if values.dtype.kind == "f":
            rounded = np.rint((np.clip(values, low, high) - low) / step)
            return np.asarray(np.clip(rounded.astype(np.int64), 0, extent))
        held = np.iinfo(values.dtype)
        if low > held.max or high < held.min:
            return np.full(len(values), 0 if low > held.max else extent, dtype=np.int64)
        inside = np.clip(values, max(low, held.min), min(high, held.max))
        above = inside.astype(np.uint64) - np.uint64(low % 2**64)  # modulo 2^64, in which it fits
        if step > 1:
            above, rest = np.divmod(above, np.uint64(step))
            half = np.uint64(step) - rest
            above += (rest > half) | ((rest == half) & (above % np.uint64(2) == 1))
        return np.asarray(np.minimum(above.astype(np.int64), extent))

    def onto(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Return points (n, d), in steps, moved onto the sphere if the grid is one."""
        if self.geography is None:
            return steps
        return np.asarray((self.geography.onto(self.place(steps)) - np.asarray(self.lower)) / self.step)

    def place(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Return points (..., d), which may lie between grid points, in the units of the bounds."""
        return np.asarray(np.asarray(self.lower) + np.asarray(steps, dtype=np.float64) * self.step)

    def restore(self, steps: NDArray[Any]) -> NDArray[Any]:
        """Return points (..., d) in data units: floats, or exact int64 or uint64 if the grid is wide.

        Floats of grid points have the decimals of the bounds and the step; see `with_decimals`. With
        geography, these are latitudes and longitudes, of shape (..., 2).
        """
        if self.wide:
            axes = [self.restore_axis(steps[..., axis], axis) for axis in range(self.dimension)]
            return np.stack(axes, axis=-1)
        if self.geography is not None:
            return np.asarray(self.geography.locate(self.place(steps)))
        return self.with_decimals(self.place(steps), steps)

    def with_decimals(self, values: ArrayLike, steps: ArrayLike) -> NDArray[np.float64]:
        """Return values of a grid that is not wide, given in data units and in steps; see `core.decimals`."""
        largest = max(map(abs, (*self.lower, *self.upper)))
        return with_decimals(values, steps, (*self.lower, self.step), largest)

    def length(self, steps: float) -> float:
        """Return a distance in steps in data units; see `with_decimals`."""
        return float(self.with_decimals(steps * self.step, steps))

    def restore_ball(self, center: NDArray[np.int64], radius: int) -> tuple[tuple[float, ...], float]:
        """Return center and radius of a ball, in grid steps, in data units."""
        if self.geography is None:
            return tuple(self.restore(center).tolist()), self.length(radius)
        middle, wide = self.geography.cap(self.place(center), radius * self.step)
        return tuple(middle.tolist()), wide

    def place_ball(self, center: Sequence[float], radius: float) -> tuple[NDArray[np.float64], float]:
        """Return center and radius of a ball, in data units, in steps, which may lie between grid points."""
        at, wide = np.asarray(center, dtype=np.float64), radius
        if self.geography is not None:
            at, wide = self.geography.ball(center, radius)
        return (at - np.asarray(self.lower)) / self.step, wide / self.step

    @property
    def stretch(self) -> float:
        """How many times more a ratio of true lengths may be than that of the same lengths on the grid."""
        return 1.0 if self.geography is None else STRETCH

    def shows(self, radius: float) -> bool:
        """Return whether `stretch` holds for balls of a radius in data units."""
        return self.geography is None or self.geography.flat or radius <= FAR

    def restore_axis(self, steps: NDArray[np.int64], axis: int) -> Whole:
        """Return points of an axis of a wide grid, shape (n,), in data units, as exact int64 or uint64."""
        values = steps.astype(np.uint64)
        values *= np.uint64(self.step)
        values += np.uint64(int(self.lower[axis]) % 2**64)  # modulo 2^64, in which they fit
        return values.view(np.int64) if max(self.upper) < 2**63 else values


def _is_whole(value: float) -> bool:
    """Return whether a number is surely whole; a large float may be the rounding of another number."""
    return isinstance(value, int) or (value.is_integer() and abs(value) <= _EXACT)
