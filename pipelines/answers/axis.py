"""Axes of pictures: what part of a column is drawn, with its name, its unit and the form of its ticks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.instants import TICKS, UNITS
from core.times import Times
from pipelines.dates import TimeColumn
from pipelines.quantities import titled

_CLOSE = 1e-6
"""In a plot that is narrower than this part of its values, ticks are differences from a fixed value."""

_LEAST = 1e-200
"""Less is drawn like 0."""

_SHORTEST = UNITS["minute"]
"""In a shorter plot of a column of times, ticks are durations; nanoseconds."""

_FEW_DAYS = 8 * UNITS["day"]
_CLOCKS = ((4 * UNITS["day"], "date", "%Y-%m-%d"), (UNITS["hour"], "time", "%m-%d %H:%M"),
           (0, "time", "%H:%M:%S"))  # fmt: skip
"""From which length of a plot on its ticks show what, in which form."""


_LETTERS = "~s"
"""The form of large numbers: 40k, 3M, and 2bn for a billion."""


@dataclass(frozen=True)
class Axis:
    """An axis of a plot. Values are in data units, or in steps of a column of times; see `domain_of`.

    Args:
        title: what it shows, with its unit.
        low: of the plot.
        high: of the plot, above `low`.
        origin: the value that Vega-Lite has at 0,
        scale: and how much it has for each data unit. It has milliseconds since 1970 for instants.
        clock: the form of instants; None for an axis of numbers.
        whole: whether all values are whole numbers.
        logarithmic: whether equal ratios are equally long. Then `low` must be above 0.
    """

    title: str
    low: float
    high: float
    origin: float = 0
    scale: float = 1.0
    clock: str | None = None
    whole: bool = False
    logarithmic: bool = False

    @classmethod
    def of(cls, name: str, low: float, high: float, whole: bool = False) -> "Axis":
        """Return the axis of a column, or of a figure, from `low` to `high`, which may be equal."""
        widest = max(abs(low), abs(high))
        if high - low <= max(_LEAST, 1e-14 * widest):  # float64 hardly tells them apart
            unit = whole or isinstance(name, TimeColumn) or widest <= _LEAST
            room = 1e-12 * widest + (1 if unit else widest / 2)
            low, high = low - room, high + room
        if isinstance(name, TimeColumn):
            return _of_times(name, name.times, low, high)
        if high - low >= _CLOSE * widest:
            return cls(titled(name), low, high, whole=whole)
        origin = int(low) if high - low > 10 else low
        return cls(f"{titled(name)} less {origin:,}", low, high, origin, whole=whole)

    @classmethod
    def around(cls, name: str, values: Iterable[float | None], whole: bool = False) -> "Axis":
        """Return the axis of a column with room for some values; of these, None is left out."""
        known = [value for value in values if value is not None]
        low, high = min(known), max(known)
        room = (high - low) / 16
        return cls.of(name, low - room if low else 0, high + room if high else 0, whole)

    @classmethod
    def of_instants(cls, name: str, seconds: Sequence[float]) -> "Axis":
        """Return the axis of instants, in seconds since 1970, with room for all; of none, that of 1970."""
        low, high = min(seconds, default=0.0), max(seconds, default=0.0)
        room = max(43_200.0, (high - low) / 16)
        low, high = low - room, high + room
        unit, clock = _clock((high - low) * 1e9)
        return cls(f"{name} ({unit} in UTC)", low, high, 0, 1000.0, clock)

    def place(self, value: Any) -> Any:
        """Return where a value, or an array of values, is in Vega-Lite."""
        placed = (value - self.origin) * self.scale
        return placed if isinstance(placed, np.ndarray) else float(placed)

    def encoded(self, field: str) -> dict[str, Any]:
        """Return the encoding of a field of places as a position on this axis."""
        ends = [self.place(self.low), self.place(self.high)]
        kind = "quantitative" if self.clock is None else "temporal"
        ticks: dict[str, Any] = {"tickMinStep": 1} if self.whole else {}
        if (form := self.clock or _form(*ends)) == _LETTERS:
            ticks["labelExpr"] = f"replace(format(datum.value, '{form}'), 'G', 'bn')"
        elif form is not None:
            ticks["format"] = form
        return {
            "field": field,
            "type": kind,
            "title": self.title,
            "scale": {
                "domain": ends,
                "nice": False,
                "zero": False,
                **({"type": "utc"} if self.clock else {"type": "log"} if self.logarithmic else {}),
            },
            "axis": ticks,
        }


def _of_times(name: TimeColumn, times: Times, low: float, high: float) -> Axis:
    tick = times.step * TICKS[times.tick]
    length, first = (high - low) * tick, times.position(round(low), name.axis)
    if length < _SHORTEST:
        unit, of = next((unit, of) for unit, of in reversed(UNITS.items()) if of <= max(1, length))
        return Axis(f"{name} ({unit}s after {first})", low, high, round(low), tick / of)
    if times.tick == "D" and length < _FEW_DAYS:  # ticks between days would have the same date
        low, high = (low + high - _FEW_DAYS / tick) / 2, (low + high + _FEW_DAYS / tick) / 2
        length = _FEW_DAYS
    unit, clock = _clock(length)
    day = f" on {first[:10]}" if "d" not in clock else ""
    origin = -(times.lower[name.axis] or 0) / times.step
    title = f"{name} ({unit}{' in UTC' if times.zoned else ''}{day})"
    return Axis(title, low, high, origin, tick / TICKS["ms"], clock)


def _clock(length: float) -> tuple[str, str]:
    """Return what the ticks of a plot of a length in nanoseconds show, and in which form."""
    return next((unit, clock) for shortest, unit, clock in _CLOCKS if length >= shortest)


def _form(low: float, high: float) -> str | None:
    """Return the form of an axis's numbers: with letters such as k for thousands where they are large."""
    most = max(abs(low), abs(high))
    if most >= 1e15 or high - low < 1e-6:
        return ".4~g"
    return _LETTERS if most >= 1e5 and high - low >= most / 1000 else None
