"""Axes of dates or timestamps: a grid of whole steps, and what its points and lengths are called.

The grid of such a job is 0, 1, ..., n on each axis, of step 1, like that of any job on whole numbers. So the
mathematics of a task never sees a date. This module says which instant a point is, and rounds instants to
points. A calendar day has 24 hours here, a minute 60 seconds, and no instant depends on a time zone: a
timestamp with a zone is an instant in UTC, and one without is taken as it is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidValue
from core.instants import OF_TIMESTAMPS, TICKS, UNITS, read_bounds, read_duration, read_instant, read_step

Ints = NDArray[np.int64]
Instants = NDArray[np.datetime64]

_FINER = 1000
"""A point between two points of the grid is written in parts of at least a thousandth of a step."""

_FIRST, _LAST = -62_135_596_800, 253_402_300_800
"""Seconds from 1970-01-01 to the beginning of the year 1, and to the end of the year 9999."""


@dataclass(frozen=True)
class Times:
    """What the points 0, 1, ..., n of a grid's axes are.

    Args:
        tick: the unit of the numbers below, a key of `TICKS`.
        lower: of each axis the instant of point 0, in ticks since 1970-01-01; None for an axis of numbers.
        upper: of each axis the instant of point n.
        step: ticks from one point to the next.
        amount: the step as it was written, such as 15,
        unit: and its unit, such as minute.
        zoned: whether the instants are in UTC; else they are taken as they are written.
    """

    tick: str
    lower: tuple[int | None, ...]
    upper: tuple[int | None, ...]
    step: int
    amount: int
    unit: str
    zoned: bool

    @classmethod
    def of(cls, lower: Sequence[Any], upper: Sequence[Any], step: Any) -> "Times":
        """Return the times of a domain that is written with dates or timestamps.

        Bounds of an axis that are both numbers make it an axis of numbers, of step 1.

        Raises:
            InvalidValue: a bound or the step is not what it must be.
        """
        if len(lower) != len(upper):
            problem = f"has {len(lower)} and upper {len(upper)} values"
            raise InvalidValue("lower", lower, "give both one value per axis", problem)
        ends = [
            None if _numeric(low) and _numeric(high) else read_bounds(low, high)
            for low, high in zip(lower, upper, strict=True)
        ]
        written = [end for pair in ends if pair is not None for end in pair]
        kinds = list(dict.fromkeys(end.kind for end in written))
        if len(kinds) > 1:
            allowed = "all bounds must be of one kind"
            raise InvalidValue("lower", lower, allowed, f"and upper have {kinds[0]} and {kinds[1]}")
        for pair, low, high in zip(ends, lower, upper, strict=True):
            if pair is None and not (float(low).is_integer() and float(high).is_integer()):
                allowed = "beside axes of dates or timestamps, bounds that are numbers must be whole"
                raise InvalidValue("lower", low, allowed, f"has {low} and upper {high}")
        length, amount, unit = read_step(step)
        timed, zoned = (any(getattr(end, name) for end in written) for name in ("timed", "zoned"))
        if not timed and length % TICKS["D"]:
            allowed = (
                "between dates it must be whole days or weeks; for finer steps write bounds as timestamps"
            )
            raise InvalidValue("step", step, allowed)
        whole = [length, *(end.at for end in written)]
        fits = [tick for tick in OF_TIMESTAMPS if not any(each % TICKS[tick] for each in whole)]
        tick = fits[0] if timed else "D"
        for pair, low, high in zip(ends, lower, upper, strict=True):
            if pair is not None:
                _check_axis(pair[0].at, pair[1].at, low, high, length, step, tick)
        ticks = [None if pair is None else tuple(end.at // TICKS[tick] for end in pair) for pair in ends]
        lows, highs = (tuple(None if pair is None else pair[i] for pair in ticks) for i in (0, 1))
        return cls(tick, lows, highs, length // TICKS[tick], amount, unit, zoned)

    @property
    def kind(self) -> str:
        """What the axes are, in words."""
        if self.tick == "D":
            return "dates"
        return "timestamps with a zone" if self.zoned else "timestamps without a zone"

    @property
    def written(self) -> str:
        """The step as text."""
        return self.length(1)

    def extent(self, axis: int) -> int:
        """Return the last point of an axis of times."""
        low, high = self._ends(axis)
        return (high - low) // self.step

    def _ends(self, axis: int) -> tuple[int, int]:
        low, high = self.lower[axis], self.upper[axis]
        if low is None or high is None:
            raise ValueError(f"Axis {axis} is not one of times.")
        return low, high

    def points(self, values: Ints, tick: str, axis: int) -> Ints:
        """Round instants to points of an axis, halves to even points, exactly.

        Numbers are rounded by the same rule; see `core.domain.Grid.quantize_axis`.

        - Let L and U be the bounds and S the step, in ticks of this grid, and n = (U - L) / S.
        - An instant before L becomes -1, and one after U becomes n + 1. The grid moves both to its bounds.
        - If a tick of the values is m ticks of the grid, instants from L to U are v m, which fits into int64.
        - If a tick of the grid is m ticks of the values, and L m and U m fit into int64, these are the grid.
          If they do not, the instant is h + r / m with 0 <= r < m. Let h - L = k S + e. The instant is above
          the middle between the points k and k + 1 if and only if 2 r > (S - 2 e) m. As 0 <= 2 r < 2 m, this
          can depend on r only where S - 2 e is 0 or 1.

        Args:
            values: shape (n,), ticks since 1970-01-01.
            tick: of the values, a key of `TICKS`.
            axis: which one.

        Returns:
            Shape (n,).
        """
        (low, high), step = self._ends(axis), self.step
        own, theirs = TICKS[self.tick], TICKS[tick]
        coarser, finer = max(1, theirs // own), max(1, own // theirs)
        most = max(-low, high, high - low) * finer
        if finer > 1 and most < 2**63:
            low, high, step, finer = low * finer, high * finer, step * finer, 1
        at = values // finer if finer > 1 else values  # numpy divides by a number much faster than divmod
        rest = values - at * finer if finer > 1 else None
        first, last = -(-low // coarser), high // coarser
        below, above = at < first, at > last
        if rest is not None:
            above |= (at == last) & (rest > 0)
        inside = np.where(below | above, 0, at) * coarser
        distance = inside.astype(np.uint64) - np.uint64(low % 2**64)  # modulo 2^64, in which it fits
        if step == 1 and rest is None:
            point = distance.astype(np.int64)
        else:
            steps = distance // np.uint64(step)
            point, over = steps.astype(np.int64), (distance - steps * np.uint64(step)).astype(np.int64)
            more = step - over - over
            up, half = more < 0, more == 0
            if rest is not None:
                twice = 2 * rest
                up |= (half & (twice > 0)) | ((more == 1) & (twice > finer))
                half = (half & (twice == 0)) | ((more == 1) & (twice == finer))
            point += up | (half & (point % 2 == 1))
        point[below] = -1
        point[above] = self.extent(axis) + 1
        return point

    def instants(self, points: NDArray[Any], axis: int, between: bool = False) -> Instants:
        """Return the instants of points of an axis; NaT where a point is NaN.

        Args:
            points: any shape; integers, or floats that may lie between points of the grid.
            axis: which one.
            between: whether to return them in the ticks of `finer`, in which they may lie between points.
        """
        tick = self.finer if between else self.tick
        times = TICKS[self.tick] // TICKS[tick]
        low, _ = self._ends(axis)
        known = np.isfinite(points)
        if np.asarray(points).dtype.kind == "f":
            whole = np.floor(np.where(known, points, 0))
            parts = np.rint((np.where(known, points, 0) - whole) * self.step * times).astype(np.int64)
        else:
            whole, parts = points, np.zeros(np.shape(points), dtype=np.int64)
        ticks = whole.astype(np.int64) * np.int64(self.step) + np.int64(low)
        found = (ticks * times + parts).view(f"datetime64[{tick}]")
        return np.where(known, found, np.array("NaT", found.dtype))

    @property
    def finer(self) -> str:
        """The tick in which points between two points of the grid are written, at most a second."""
        length = self.step * TICKS[self.tick]
        low = min(each for each in self.lower if each is not None)
        high = max(each for each in self.upper if each is not None)
        for tick in OF_TIMESTAMPS:
            fits = all(-(2**63) < each * TICKS[self.tick] // TICKS[tick] < 2**63 for each in (low, high))
            if not fits:
                break
            finest = tick
            if TICKS[tick] <= TICKS[self.tick] and TICKS[tick] * _FINER <= length:
                break
        return finest

    def place(self, instants: Instants, axis: int) -> NDArray[np.float64]:
        """Return where instants lie on an axis, in steps; NaN for NaT."""
        theirs, own = TICKS[np.datetime_data(instants.dtype)[0]], TICKS[self.tick]
        finer, coarser = max(1, own // theirs), max(1, theirs // own)
        low, _ = self._ends(axis)
        distance = instants.astype(np.int64) * coarser - low * finer
        return np.where(np.isnat(instants), np.nan, distance / (self.step * finer))

    def position(self, point: float, axis: int, between: bool = False) -> str:
        """Return a point of an axis as text: a date, or a timestamp; see `instants`."""
        text = str(self.instants(np.array([point]), axis, between)[0])
        return f"{text}Z" if self.zoned else text

    def length(self, steps: float) -> str:
        """Return a finite number of steps as text, in the unit in which the step is written."""
        amount: float = steps * self.amount
        amount = int(amount) if float(amount).is_integer() and abs(amount) < 2**53 else amount
        return f"{amount} {self.unit}{'' if amount == 1 else 's'}"

    def read_position(self, text: str, axis: int, between: bool = False) -> float | None:
        """Return where a written date or timestamp lies on an axis, in steps, or None if it is none here.

        Args:
            text: what is written.
            axis: which one.
            between: see `position`.
        """
        found = read_instant(text)
        if found is None or (found.timed, found.zoned) != (self.tick != "D" or between, self.zoned):
            return None
        low, _ = self._ends(axis)
        return float(Fraction(found.at - low * TICKS[self.tick], self.step * TICKS[self.tick]))

    def read_length(self, text: str) -> float | None:
        """Return a written duration in steps; None if the text is none."""
        found = read_duration(text)
        if found is None:
            return None
        amount, unit = found
        return float(amount * UNITS[unit] / (self.step * TICKS[self.tick]))


def _text(ticks: int, tick: str) -> str:
    return str(np.array(ticks, dtype=f"datetime64[{tick}]"))


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_axis(start: int, end: int, low: str, high: str, length: int, step: str, tick: str) -> None:
    """Check the bounds of an axis, in nanoseconds, and the length of a step."""
    if start >= end:
        raise InvalidValue("lower", low, "lower must be before upper", f"has {low} and upper {high}")
    if length > end - start:
        allowed = "it must be at most upper - lower"
        raise InvalidValue("step", step, allowed, f"is {step}, longer than from {low} to {high}")
    last = end + length  # a threshold may be one step above the upper bound
    inside = _FIRST * TICKS["s"] <= start and last < _LAST * TICKS["s"]
    if not inside or not -(2**63) <= start // TICKS[tick] <= last // TICKS[tick] < 2**63:
        allowed = (
            "bounds, and one step more, must be in the years 0001 to 9999, and in 1678 to 2261 if they have "
            "nanoseconds"
        )
        raise InvalidValue("upper", high, allowed, f"has {high}, with lower {low} and step {step}")
    over = (end - start) % length
    if over:
        ends = (_text((end - over + more) // TICKS[tick], tick) for more in (0, length))
        allowed = (
            f"let upper be {' or '.join(ends)}{' in UTC' if high.endswith('Z') else ''}, or take another step"
        )
        problem = f"is {step}, which does not divide the time from {low} to {high}"
        raise InvalidValue("step", step, allowed, problem)
