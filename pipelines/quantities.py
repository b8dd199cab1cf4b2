"""Numbers of an answer that show themselves with their unit: degrees, metres, or the unit of a column."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

from core.marks import Mark, translate

_METRES_OF_DEGREE = 111_000
_KILOMETRE = 1000
_WHOLE = 1000  # from here on metres and kilometres are shown without decimals


class Quantity(float):
    """A number that shows itself as text."""

    def shown(self, digits: int) -> str:
        """Return the text with so many significant digits, where that applies."""
        raise NotImplementedError

    def on_grid(self) -> str:
        """Return the text with as many digits as the grid has."""
        return self.shown(12)


class OnEarth(Quantity):
    """A number in degrees or metres, with the step of its grid in metres."""

    step: float

    def __new__(cls, value: float, step: float) -> Self:
        """Return the number.

        Args:
            value: the number.
            step: of the grid, in metres.
        """
        made = super().__new__(cls, value)
        made.step = step
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (float(self), self.step)


class Degrees(OnEarth):
    """A latitude or a longitude."""

    def shown(self, digits: int) -> str:
        """See `Quantity.shown`; the digits are those that the step has, without zeros at the end."""
        decimals = max(1, math.ceil(math.log10(_METRES_OF_DEGREE / self.step)))
        return f"{float(self):.{min(decimals, 12)}f}".rstrip("0").rstrip(".") + "°"


class Metres(OnEarth):
    """A distance on the Earth; from a kilometre on it is shown in kilometres."""

    def shown(self, digits: int) -> str:
        """See `Quantity.shown`."""
        length, unit = self._unit
        value = float(self) / length
        return f"{value:,.0f} {unit}" if value >= _WHOLE else f"{significant(value, digits)} {unit}"

    def on_grid(self) -> str:
        """See `Quantity.on_grid`."""
        length, unit = self._unit
        return f"{decimal(float(self) / length, self.step / length)} {unit}"

    @property
    def _unit(self) -> tuple[float, str]:
        return (_KILOMETRE, "km") if abs(self) >= _KILOMETRE else (1, "m")


class Amount(Quantity):
    """A value of a column that has a unit, or a distance along it."""

    value: float
    unit: str
    step: float

    def __new__(cls, value: float, unit: str, step: float) -> "Amount":
        """Return the number.

        Args:
            value: the number; a whole one is shown exactly, however large it is.
            unit: of the column.
            step: of the grid, in that unit.
        """
        made = super().__new__(cls, value)
        made.value, made.unit, made.step = value, unit, step
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Amount, (self.value, self.unit, self.step)

    def shown(self, digits: int) -> str:
        """See `Quantity.shown`."""
        return f"{significant(self.value, digits)} {self.unit}"

    def on_grid(self) -> str:
        """See `Quantity.on_grid`."""
        return f"{decimal(self.value, self.step)} {self.unit}"


class UnitColumn(str):
    """The name of a column that has a unit."""

    unit: str

    def __new__(cls, name: str, unit: str) -> "UnitColumn":
        """Return the name.

        Args:
            name: of the column.
            unit: of its values.
        """
        made = super().__new__(cls, name)
        made.unit = unit
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return UnitColumn, (str(self), self.unit)


def titled(name: str, power: str = "") -> str:
    """Return the name of a column with its unit, if it has one, as axes and headers of tables have it."""
    return f"{name} ({name.unit}{power})" if isinstance(name, UnitColumn) else str(name)


def after(name: str | None, power: str = "") -> str:
    """Return what follows a number of a column: its unit, if it has one."""
    return f" {name.unit}{power}" if isinstance(name, UnitColumn) else ""


def decimal(value: float, step: float) -> str:
    """Return a number with as many decimals as the step has."""
    if isinstance(value, int):
        return f"{value:,}"
    decimals = max(0, min(12, math.ceil(-math.log10(step) - 1e-9)))
    return f"{value:,.{decimals}f}"


def significant(value: float, digits: int = 4) -> str:
    """Return `value` with `digits` significant digits, separated thousands, and 1e-9 for 1e-09."""
    if math.isfinite(value) and 10**digits - 0.5 <= abs(value) < 10**15:  # which rounds to 10**digits
        return f"{value:,.0f}"
    return re.sub(r"e([-+])0+", r"e\1", f"{value:,.{digits}g}")


def with_units(kind: Any, value: Any, domain: Mapping[str, Any], axis: int | None = None) -> Any:
    """Return a value whose marked numbers show their units, where the domain has some; see `core.marks`.

    Args:
        kind: the type of the value.
        value: the value, where dataclasses are mappings.
        domain: as a release has it.
        axis: of the value, if it is about one.
    """
    step = domain["step"]
    if domain.get("geography") is not None:
        return translate(kind, value, partial(_on_earth, step))
    if domain.get("units"):
        units = tuple(map(domain["units"].get, domain["columns"]))
        return translate(kind, value, partial(_in_unit, units, step), axis)
    return value


def _in_unit(units: Sequence[str | None], step: float, mark: Mark, axis: int | None, value: Any) -> Any:
    """Return a number with the unit of its column; one about all columns has a unit if it is that of all."""
    mixed = mark is Mark.LENGTH and axis is None and len(set(units)) > 1
    unit = None if mixed else units[axis or 0]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return Amount(value, unit, step) if number and unit is not None else value


def _on_earth(step: float, mark: Mark, axis: int | None, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return Metres(value, step) if mark is Mark.LENGTH else Degrees(value, step)
