"""Answers: how a plan or a release is explained on the terminal and in the report."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Any, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from numpy.typing import NDArray

from core.errors import InvalidValue
from core.marks import Length, Point
from pipelines.answers.picture import Picture
from pipelines.dates import Instant, Span, TimeColumn, as_steps, grid_of, times_of
from pipelines.errors import JobError, quoted
from pipelines.quantities import UnitColumn, titled, with_units

Release = Mapping[str, Any]
"""A value as in release.json."""

Rows = Mapping[str, NDArray[Any]] | None
"""The columns of result.parquet; None where the answer is not a table, or the table was not read."""

T = TypeVar("T")

_FIGURE = 28
"""Characters of a figure that a report shows in large letters."""


@dataclass(frozen=True)
class _Bounds:
    lower: Point
    upper: Point
    step: Length


@dataclass(frozen=True)
class Fact:
    """One figure of the answer.

    Args:
        name: what it is; a name that is a column's stays as it is.
        lines: the figure.
        note: what a report says of it.
        of_column: whether the name is a column's.
        range: where the true one is, for a line that has no room for the note; empty where that is not said.
        said: whether the headline says it.
    """

    name: str
    lines: tuple[str, ...]
    note: str = ""
    of_column: bool = False
    range: str = ""
    said: bool = False

    @property
    def title(self) -> str:
        """The name as a heading."""
        return self.name if self.of_column else self.name[:1].upper() + self.name[1:]

    @property
    def is_long(self) -> bool:
        """Whether a line is too long for the large letters of a figure."""
        return any(len(line) > _FIGURE for line in self.lines)


@dataclass(frozen=True)
class Figure:
    """A picture and its caption."""

    picture: Picture
    caption: str


@dataclass(frozen=True)
class Table:
    """A table of the answer: a title, headers and rows of text. All columns but the first are numbers."""

    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", tuple(map(titled, self.headers)))


@dataclass(frozen=True)
class Answer:
    """An answer as text, figures and tables.

    Args:
        headline: the answer in one sentence without a full stop.
        lead: what the answer means.
        facts: its figures, which are also the lines on a terminal.
        figures: its pictures.
        tables: its tables.
        advice: if nothing was found: what may help, each as a phrase and a sentence.
    """

    headline: str
    lead: str
    facts: tuple[Fact, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    advice: tuple[tuple[str, str], ...] = ()

    @property
    def brief(self) -> str:
        """The answer on one line: the headline, and the figures that it does not say."""
        figures = [self._brief(fact) for fact in self.facts if fact.range or not fact.said]
        return f"{self.headline}: {'; '.join(figures)}" if figures and not self.advice else self.headline

    def _brief(self, fact: Fact) -> str:
        if fact.said:
            return fact.range
        return f"{fact.name} {', '.join(fact.lines)}{f' ({fact.range})' if fact.range else ''}"


class Answers(Protocol):
    """What every module of this package that serves a task has."""

    def promises(self, release: Release) -> list[str]:
        """Return the accuracy that a plan or a release promises, one sentence each."""

    def unpromised(self, release: Release) -> str | None:
        """Return what is not promised although a reader might expect it, or None."""

    def answer(self, release: Release, rows: Rows) -> Answer:
        """Return the answer of a release."""


def promises_of(kind: type[T], release: Release) -> T:
    """Return the promises of a plan or release as the dataclass of the task; see `parse`."""
    return _read(kind, release, release["accuracy"]["promises"], "accuracy.promises")


def result_of(kind: type[T], release: Release) -> T | None:
    """Return the result of a release as the dataclass of the task, or None if nothing was found."""
    return None if release["result"] is None else _read(kind, release, release["result"], "result")


def _read(kind: type[T], release: Release, value: Any, name: str) -> T:
    """Return a value of a release. Dates become numbers of steps that show the date; see `as_steps`."""
    domain = release.get("domain")
    times = None if domain is None else times_of(domain)
    try:
        shown = as_steps(kind, value, times, name)
        return parse(kind, shown if domain is None else with_units(kind, shown, domain), name)
    except InvalidValue as error:
        raise _mismatch(name, error.value) from None


def domain_of(release: Release) -> dict[str, Any]:
    """Return the domain of a release. Bounds that are dates are numbers of steps that show the date.

    Bounds and a step with a unit show it.
    """
    domain, times = dict(release["domain"]), times_of(release["domain"])
    if times is None:
        bounds = {key: domain[key] for key in ("lower", "upper", "step")}
        units = domain.get("units") or {}
        named = [UnitColumn(name, units[name]) if name in units else name for name in domain["columns"]]
        return {**domain, **with_units(_Bounds, bounds, domain), "columns": named}
    grid = grid_of(release["domain"])
    for key, ends in (("lower", grid.lower), ("upper", grid.upper)):
        shown = zip(ends, domain[key], strict=True)
        domain[key] = [Instant(end, text) if isinstance(text, str) else end for end, text in shown]
    columns = [
        name if low is None else TimeColumn(name, times, axis)
        for axis, (name, low) in enumerate(zip(domain["columns"], times.lower, strict=True))
    ]
    return {**domain, "columns": columns, "step": Span(1, times)}


def length_of(release: Release, value: float, axis: int) -> float:
    """Return a computed distance along an axis in data units; it shows its unit, or itself as a duration."""
    times = times_of(release["domain"])
    return with_units(Length, value, release["domain"], axis) if times is None else Span(value, times)


def steps_of(release: Release, column: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return a column of a table in the units of `domain_of`: instants become numbers of steps."""
    times = times_of(release["domain"])
    return column if times is None or column.dtype.kind != "M" else times.place(column, axis)


def parse(kind: type[T], value: object, name: str) -> T:
    """Return a JSON value as a dataclass.

    Fields may be numbers, dataclasses and tuples of these, or None. A missing key is None where its type
    allows that. Null is infinity where its type is float, because JSON has no infinity.

    Args:
        kind: the dataclass.
        value: the JSON value.
        name: of the value, for the error.

    Raises:
        JobError: a key is missing or unknown, or a value has another type.
    """
    if not isinstance(value, Mapping):
        raise _mismatch(name, value)
    hints = get_type_hints(kind)
    unknown = [str(key) for key in value if key not in hints]
    if unknown:
        raise JobError(f"{name}.{unknown[0]} is not a known key: the keys of {name} are {', '.join(hints)}.")
    fields = {}
    for key, hint in hints.items():
        if key not in value and NoneType not in get_args(hint):
            raise JobError(f"{name}.{key} is missing: {name} needs {', '.join(hints)}.")
        fields[key] = _parse(hint, value.get(key), f"{name}.{key}")
    return kind(**fields)


def _parse(kind: Any, value: object, name: str) -> Any:
    """Return a JSON value as a dataclass, a tuple or a number. Integers are allowed as floats."""
    if get_origin(kind) in (Union, UnionType):
        if value is None:
            return None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if isinstance(kind, type) and is_dataclass(kind):
        return parse(kind, value, name)
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise _mismatch(name, value)
        return tuple(_parse(get_args(kind)[0], item, f"{name}[{i}]") for i, item in enumerate(value))
    if kind is float and value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise _mismatch(name, value)
    return value


def _mismatch(name: str, value: object) -> JobError:
    return JobError(f"{name} is {quoted(value)}, which is not a value of its task.")
