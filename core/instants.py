"""Dates, timestamps and durations as a job writes them."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from core.errors import InvalidValue

TICKS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds of a tick, by the names that numpy and Arrow give to it; D is a day."""

OF_TIMESTAMPS = ("s", "ms", "us", "ns")
"""Ticks of columns of timestamps."""

UNITS = {
    "nanosecond": 1,
    "microsecond": 10**3,
    "millisecond": 10**6,
    "second": 10**9,
    "minute": 60 * 10**9,
    "hour": 3_600 * 10**9,
    "day": TICKS["D"],
    "week": 7 * TICKS["D"],
}
"""Nanoseconds of the units of durations."""

_DATE = re.compile(r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    rf"({_DATE.pattern})[T ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{{1,9}}))?)?"
    r"(Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
)
_DURATION = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,3})?) *([a-z]+?)s?")
_FORM = "write a number, a date such as 2013-01-31, or a timestamp such as 2013-01-31T06:00:00Z"
_DURATIONS = f"write a whole number and one of {', '.join(reversed(UNITS))}, such as 15 minutes"
_IRREGULAR = ("month", "quarter", "year", "decade", "century")


@dataclass(frozen=True)
class WrittenInstant:
    """A written bound: nanoseconds since 1970-01-01, and whether it has a time of the day, and a zone."""

    at: int
    timed: bool
    zoned: bool

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if not self.timed:
            return "a date"
        return "a timestamp with a zone" if self.zoned else "a timestamp without a zone"


def read_instant(text: str) -> WrittenInstant | None:
    """Return what a text says; None where it is neither a date nor a timestamp."""
    timed = _TIMESTAMP.fullmatch(text)
    if timed is None and not _DATE.fullmatch(text):
        return None
    try:
        day = int(np.datetime64(timed[1] if timed else text, "D").astype(np.int64))
    except ValueError:  # such as the 30th of February
        return None
    if timed is None:
        return WrittenInstant(day * TICKS["D"], timed=False, zoned=False)
    hour, minute, second = (int(part or 0) for part in timed.group(2, 3, 4))
    zone, away = timed[6], 0
    if zone is not None and zone != "Z":
        away = int(f"{zone[0]}1") * (int(zone[1:3]) * 60 + int(zone[4:6]))
    seconds = ((hour * 60) + minute - away) * 60 + second
    return WrittenInstant(
        day * TICKS["D"] + seconds * 10**9 + int((timed[5] or "").ljust(9, "0")), True, bool(zone)
    )


def read_duration(text: str) -> tuple[Fraction, str] | None:
    """Return the number and the unit of a duration; None where the text is none."""
    found = _DURATION.fullmatch(text)
    return (Fraction(found[1]), found[2]) if found and found[2] in UNITS else None


def read_bounds(low: Any, high: Any) -> tuple[WrittenInstant, WrittenInstant]:
    """Return what the bounds of an axis say.

    Raises:
        InvalidValue: one is neither a date nor a timestamp, or is a number beside a date.
    """
    # A text that is wrong is told before a number beside one that is right.
    for field, value in (("lower", low), ("upper", high)):
        if isinstance(value, str) and read_instant(value) is None:
            raise InvalidValue(field, value, f"{_FORM}, of the years 0001 to 9999", f"has {value!r:.60}")
    read = []
    for field, value in (("lower", low), ("upper", high)):
        found = read_instant(value) if isinstance(value, str) else None
        if found is None:
            allowed = "write two numbers or two dates as the bounds of an axis"
            raise InvalidValue(field, value, allowed, f"has {value!r:.60} beside a date")
        read.append(found)
    return read[0], read[1]


def read_step(written: Any) -> tuple[int, int, str]:
    """Return the nanoseconds of a step, its number and its unit.

    Raises:
        InvalidValue: it is not a whole number of a unit, above 0.
    """
    text = written if isinstance(written, str) else ""
    found = read_duration(text)
    if found is None:
        irregular = next((unit for unit in _IRREGULAR if re.search(unit[:-1], text)), None)
        if irregular is not None:
            allowed = f"not every {irregular} has the same length, so give days or weeks"
            raise InvalidValue("step", written, allowed, f"is {written!r:.60}")
        raise InvalidValue(
            "step", written, f"between dates or timestamps {_DURATIONS}", f"is {written!r:.60}"
        )
    amount, unit = found
    if amount <= 0 or amount.denominator != 1:
        allowed = f"{_DURATIONS}, above 0"
        raise InvalidValue("step", written, allowed, f"is {written!r:.60}")
    return int(amount) * UNITS[unit], int(amount), unit
