"""Dates and durations in what is read and written: steps of a grid of times become text, and text steps."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from core.domain import Grid
from core.errors import InvalidValue
from core.geography import Geography
from core.instants import TICKS, UNITS
from core.marks import Mark, translate
from core.times import Times
from pipelines.quantities import Quantity, significant

_LARGE, _SHOWN = 1000, tuple(unit for unit in UNITS if unit != "week")
"""From so many of its unit on, a duration is shown in a larger one; but not in weeks."""

_LONG = 10 * TICKS["D"]
"""A plot that is longer has days as labels."""


class Instant(Quantity):
    """A position in steps that shows itself as the date or timestamp that it is."""

    text: str

    def __new__(cls, steps: float, text: str) -> "Instant":
        """Return the number.

        Args:
            steps: from the lower bound of its axis.
            text: what it shows.
        """
        made = super().__new__(cls, steps)
        made.text = text
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Instant, (float(self), self.text)

    def __repr__(self) -> str:
        return self.text

    def shown(self, digits: int) -> str:
        """See `Quantity.shown`."""
        return self.text


class Span(Quantity):
    """A distance in steps that shows itself as the duration that it is."""

    times: Times

    def __new__(cls, steps: float, times: Times) -> "Span":
        """Return the number.

        Args:
            steps: how long it is.
            times: of the grid.
        """
        made = super().__new__(cls, steps)
        made.times = times
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Span, (float(self), self.times)

    @property
    def parts(self) -> tuple[float, str]:
        """Its number and its unit, which is a larger one than that of the step where the number is large."""
        amount, unit = float(self) * self.times.amount, self.times.unit
        if amount >= _LARGE:
            length = amount * UNITS[unit]
            unit = max((each for each in _SHOWN if 2 * UNITS[each] <= length), key=UNITS.__getitem__)
            amount = length / UNITS[unit]
        return amount, unit if amount == 1 else f"{unit}s"

    def __repr__(self) -> str:
        return self.times.length(float(self))

    def shown(self, digits: int) -> str:
        """See `Quantity.shown`."""
        amount, unit = self.parts
        return f"{significant(amount, digits)} {unit}"


class TimeColumn(str):
    """The name of a column of dates or timestamps, which labels points of a plot of it."""

    times: Times
    axis: int

    def __new__(cls, name: str, times: Times, axis: int) -> "TimeColumn":
        """Return the name.

        Args:
            name: of the column.
            times: of the grid.
            axis: number of the column.
        """
        made = super().__new__(cls, name)
        made.times, made.axis = times, axis
        return made

    def label(self, steps: float, width: float) -> str:
        """Return a short label of a point in a plot that is so many steps wide."""
        text = self.times.position(round(steps), self.axis)
        long = self.times.tick == "D" or width * self.times.step * TICKS[self.times.tick] > _LONG
        return text[:10] if long else f"{text[5:10]} {text[11:16]}"


def has_text(domain: Any) -> bool:
    """Return whether a domain as a job writes it has text among its bounds, as one of dates has."""
    if not isinstance(domain, Mapping):
        return False
    ends = [domain.get(key) for key in ("lower", "upper")]
    return any(isinstance(value, str) for each in ends if isinstance(each, list | tuple) for value in each)


def times_of(domain: Mapping[str, Any]) -> Times | None:
    """Return the times of a domain as a job writes it; None where it has numbers.

    Raises:
        InvalidValue: a bound or the step is not what it must be.
    """
    if not has_text(domain) or domain.get("geography") is not None:
        return None
    return Times.of(domain["lower"], domain["upper"], domain["step"])


def grid_of(domain: Mapping[str, Any]) -> Grid:
    """Return the universe of a domain as a job writes it, without its ball.

    Raises:
        InvalidValue: it is not one.
    """
    lower, upper = domain["lower"], domain["upper"]
    if domain.get("geography") is not None:
        return Grid.on_earth(Geography.of(lower, upper, domain["step"]))
    times = times_of(domain)
    if times is None and isinstance(domain["step"], str):
        allowed = "between numbers it must be a number"
        raise InvalidValue("step", domain["step"], allowed, f"is {domain['step']!r}")
    if times is None:
        return Grid(tuple(lower), tuple(upper), domain["step"])
    axes = [
        (low, high) if start is None else (0, times.extent(axis))
        for axis, (low, high, start) in enumerate(zip(lower, upper, times.lower, strict=True))
    ]
    lows, highs = zip(*axes, strict=True)
    return Grid(lows, highs, 1, times=times)


def as_text(kind: Any, value: Any, times: Times | None) -> Any:
    """Return a value with positions as dates or timestamps, and distances as durations.

    Args:
        kind: the type of the value, with marks; see `core.marks`.
        value: the value, where dataclasses are mappings.
        times: of the grid; None where its axes are numbers.
    """
    return value if times is None else translate(kind, value, partial(_text, times))


def _text(times: Times, mark: Mark, axis: int | None, value: float) -> str | float:
    axis = axis or 0
    if mark is Mark.LENGTH:
        return times.length(value) if np.isfinite(value) else value
    return value if times.lower[axis] is None else times.position(value, axis, mark is Mark.BETWEEN)


def as_steps(kind: Any, value: Any, times: Times | None, field: str = "") -> Any:
    """Return a value with texts of dates and durations as numbers of steps that show the text; see `as_text`.

    Raises:
        InvalidValue: a text is not a date, or not a duration.
    """
    return value if times is None else translate(kind, value, partial(_steps, times, field))


def written_steps(kind: Any, value: Any, grid: Grid, field: str) -> Any:
    """Return a value of a job file in steps, where the grid is of times; see `as_steps`.

    Raises:
        InvalidValue: a text is not a date or a duration, or there is a number where one must be.
    """
    times = grid.times
    if times is None:
        return value
    return translate(kind, value, partial(_written, times, field))


def _written(times: Times, field: str, mark: Mark, axis: int | None, value: Any) -> Any:
    axis = min(axis or 0, len(times.lower) - 1)  # whoever takes the list refuses one that is too long
    number = times.lower[axis] is None
    if isinstance(value, str) == number:
        shown = times.written if mark is Mark.LENGTH else times.position(0, axis)
        allowed = (
            "this column has numbers" if number else f"as domain has {times.kind}, write it like {shown}"
        )
        raise InvalidValue(field, value, allowed, f"has {value!r}")
    return _steps(times, field, mark, axis, value)


def _steps(times: Times, field: str, mark: Mark, axis: int | None, value: Any) -> Any:
    axis = axis or 0
    if not isinstance(value, str):
        return value
    if mark is Mark.LENGTH:
        steps = times.read_length(value)
        if steps is None:
            allowed = f"write a number and a unit, such as {times.length(3)}"
            raise InvalidValue(field, value, allowed, f"has {value!r}")
        return Span(steps, times)
    between = mark is Mark.BETWEEN
    point = times.read_position(value, axis, between)
    if point is None:
        allowed = f"as domain has {times.kind}, write it like {times.position(0, axis, between)}"
        raise InvalidValue(field, value, allowed, f"has {value!r}")
    return Instant(point, value)
