"""The job that describes every column of a file, from the names and types of its columns alone.

Nobody has to choose bounds: each numeric column is asked for quantiles over all values of its type, by
methods whose error grows with the logarithm of their number. It is one job of several questions with one
budget, so it is planned, charged and released like any other; see docs/guarantee.md. Of the file only the
schema is used, which is public. No row is read.

A column becomes:

- whole numbers: quantiles over the range of the type, and of 64-bit columns over 2^62 numbers around 0;
- other numbers: quantiles of millionths, of values up to 2 * 10^12 in absolute value;
- dates and timestamps: quantiles over the years 1 to 9999, in days or seconds;
- texts: numbers of rows of the values that enough rows share, which need delta;
- true or false: the number of rows of each.

One more question has the number of rows and the share of nulls of every column.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.nearest import meant, nearest
from pipelines.console.printable import CONTROL
from pipelines.errors import JobError
from pipelines.job.questions import QUESTIONS
from pipelines.job.text import override_key

if TYPE_CHECKING:
    import pyarrow as pa

PROBABILITIES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Of the quantiles of a column."""

ROWS = "rows"
"""The question about the number of rows and the shares of nulls."""

PARTS = 10**6
"""Parts of 1 in which numbers that are not whole are counted."""

_MOST = 50  # columns: each may derive two, and a job may derive 100
_LARGEST = 2 * 10**12  # of numbers that are not whole: in millionths it is below 2^61
_DATES = ("0001-01-01", "9999-12-30", "1 day")
_TIMES = ("0001-01-01T00:00:00", "9999-12-30T00:00:00", "1 second")


@dataclass(frozen=True)
class Described:
    """A column of the file.

    Args:
        name: its name.
        kind: the name of its type.
        question: the name of the question about it.
        parts: into how many parts the question divides 1.
    """

    name: str
    kind: str
    question: str
    parts: int = 1


@dataclass(frozen=True)
class Description:
    """A job that describes a file.

    Args:
        job: as a job file has it.
        columns: what it describes, in the order in which `ROWS` has their nulls.
        others: columns whose types it cannot describe, with their types.
    """

    job: Mapping[str, Any]
    columns: Sequence[Described]
    others: Sequence[str]


def describe(
    path: str,
    epsilon: float,
    delta: float,
    unit: str | None = None,
    wanted: Sequence[str] = (),
    overrides: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
) -> Description:
    """Return the job that describes the columns of a file.

    Args:
        path: a file, a folder or a glob.
        epsilon: of all columns together.
        delta: of all columns together; texts need it.
        unit: column of the privacy unit, which is not described; None where each row is one.
        wanted: names of the columns; all where it is empty.
        overrides: each `dotted.key=value`; they cannot change the questions.
        types: of columns that have none in the file, as `input.types` of a job; None for none.

    Raises:
        JobError: no column has a type, or the file has not these columns, or none or too many that can be
            described.
        InputError: there is no such file, or it cannot be read.
    """
    schema = _schema(path, types or {}, unit)
    names = [name for name in dict.fromkeys(wanted or schema.names) if name != unit]
    for name in (*wanted, *([] if unit is None else [unit])):
        if name not in schema.names:
            option = "--unit" if name == unit and name not in wanted else "--columns"
            near, known = meant(nearest(name, schema.names)), ", ".join(schema.names)
            raise JobError(f"{option}: {path} has no column {name!r}{near}: its columns are {known}.")
    columns: list[Described] = []
    others: list[str] = []
    questions: dict[str, Any] = {}
    derived: dict[str, str] = {}
    for name in names:
        kind = _kind_of(schema, name)
        made = None if _quoted(name) is None else _question(schema, name, unit is not None)
        why = "" if made is None else _why_not(name, made, delta)
        if made is None or why:
            others.append(f"{name} ({kind}{why})")
            continue
        slug = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:40]
        described = Described(name, kind, f"{len(columns) + 1}-{slug}", made.parts)
        columns.append(described)
        derived |= made.derived
        questions[described.question] = made.asked
    if not columns:
        left = f" Not described: {', '.join(others)}." if others else ""
        raise JobError(f"{path} has no column that can be described: {_ALLOWED}.{left}")
    if len(columns) > _MOST:
        raise JobError(
            f"{path} has {len(columns)} columns: at most {_MOST} can be described together, so name some "
            "with --columns."
        )
    nulls = {_null(each.name): f"is_null({_quoted(each.name)})" for each in columns}
    taken = [name for name in (*derived, *nulls) if name in schema.names]
    if taken:
        raise JobError(f"{path} has a column {taken[0]}, which is the name of a derived one: rename it.")
    optional = {"unit": unit, "types": None if types is None else dict(types)}
    given = {key: value for key, value in optional.items() if value is not None}
    job: dict[str, Any] = {
        "input": {"path": path, **given, "derive": {**derived, **nulls}},
        "privacy": {"epsilon": epsilon, "delta": delta, "neighbors": "add_or_remove_one"},
    }
    for each in overrides:
        override_key(job, each)
    if QUESTIONS in job:
        raise JobError(
            f"--set {QUESTIONS}: describe makes the questions itself, so print its job with --job, change "
            "it, and run it with shoal run."
        )
    about_rows = {
        "task": "statistics",
        "columns": list(nulls),
        "domain": {"lower": [0] * len(nulls), "upper": [1] * len(nulls), "step": 1},
        "params": {"measures": ["count", "mean"]},
        "checks": 0,
    }
    output = job.pop("output", "releases/{run_id}")
    asked = {QUESTIONS: {ROWS: about_rows, **questions}, "output": output}
    return Description(copy.deepcopy(job | asked), columns, others)


_ALLOWED = "it takes numbers, dates, timestamps, texts and booleans"


@dataclass(frozen=True)
class _Made:
    """A question about a column, and the columns that it derives; see `Described.parts`."""

    asked: Mapping[str, Any]
    derived: Mapping[str, str]
    parts: int = 1
    needs_delta: bool = False


def _schema(path: str, types: Mapping[str, str], unit: str | None) -> "pa.Schema":
    """Return the columns that have a type: in the first of the files at `path`, or in `types`.

    A unit is text where it has none.
    """
    import pyarrow as pa

    from pipelines.storage.locate import absolute
    from transforms.column_types import KINDS
    from transforms.file_format import WITHOUT_TYPES
    from transforms.open_source import open_files

    for name, kind in types.items():
        if kind not in KINDS:
            raise JobError(
                f"The type of {name} is {kind}{meant(nearest(kind, KINDS))}: give one of {', '.join(KINDS)}."
            )
    files, schemas, _ = open_files(absolute(path))
    bare = files[0].format in WITHOUT_TYPES
    if bare and not types:
        raise JobError(
            f"{path} is {files[0].format}, which has no types of columns, and a type must not be guessed "
            "from rows: say which columns to describe with their types, such as --types "
            f"age=integer,city=text. Types are {', '.join(KINDS)}."
        )
    known = [] if bare else list(schemas[0])
    named = {} if unit is None or not bare else {unit: "text"}
    said = {**named, **types}
    names = {field.name for field in known}
    return pa.schema([*known, *((name, KINDS[kind]) for name, kind in said.items() if name not in names)])


def _kind_of(schema: "pa.Schema", name: str) -> str:
    """Return the name of a column's type, or that several columns have the name."""
    at = schema.get_all_field_indices(name)
    return str(schema.field(at[0]).type) if len(at) == 1 else "several columns"


def _question(schema: "pa.Schema", name: str, of_units: bool) -> _Made | None:
    """Return the question about a column; None where its type cannot be described."""
    import pyarrow as pa

    at = schema.get_all_field_indices(name)
    if len(at) > 1:
        return None
    kind = schema.field(at[0]).type
    if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return _Made(_quantiles(name, *_range(kind), 1), {})
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        parts = f"{name} * {PARTS}"
        clamped = f"max(min({_quoted(name)}, {_LARGEST}), {-_LARGEST})"
        asked = _quantiles(parts, -_LARGEST * PARTS, _LARGEST * PARTS, 1)
        return _Made(asked, {parts: f"round({clamped} * {PARTS})"}, PARTS)
    if pa.types.is_date(kind):
        return _Made(_quantiles(name, *_DATES), {})
    if pa.types.is_timestamp(kind):
        low, high, step = _TIMES
        zone = "" if kind.tz is None else "Z"
        return _Made(_quantiles(name, low + zone, high + zone, step), {})
    if pa.types.is_boolean(kind):
        return _Made(_by_value(name, [True, False], of_units), {})
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _Made(_by_value(name, "private", of_units), {}, needs_delta=True)
    return None


def _range(kind: "pa.DataType") -> tuple[int, int]:
    """Return the least and the largest whole number of a type, as far as an axis may be long."""
    bits = min(kind.bit_width, 62)
    signed = str(kind).startswith("int")
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


_OF_COUNTS = re.compile(r"count(_[0-9]+)?(_error|_low|_high)?")
"""Names of the columns of a table of counts, which no key may have."""


def _why_not(name: str, made: _Made, delta: float) -> str:
    """Return why a column is left out for which there is a question; nothing where it is not."""
    if made.needs_delta and not delta:
        return ": texts need delta"
    taken = "group_by" in made.asked and _OF_COUNTS.fullmatch(name)
    return ": rename it, as the numbers of its values have this name" if taken else ""


def _quantiles(column: str, low: Any, high: Any, step: Any) -> dict[str, Any]:
    domain = {"lower": [low], "upper": [high], "step": step}
    params = {"probabilities": list(PROBABILITIES)}
    return {"task": "quantiles", "columns": [column], "domain": domain, "params": params, "checks": 0}


def _by_value(column: str, keys: Any, of_units: bool) -> dict[str, Any]:
    """Return the question how many rows have each value, or how many units by one random value of theirs.

    It counts a column that has no nulls.
    """
    domain = {"lower": [0], "upper": [1], "step": 1}
    params = {"measures": ["count"]}
    groups = {"columns": [column], "keys": keys}
    bounds = {"contributions": {"groups": 1, "rows": 1}} if of_units else {}
    counted = {"task": "statistics", "columns": [_null(column)], "domain": domain, "params": params}
    return {**counted, "group_by": groups, **bounds, "checks": 0}


def _null(name: str) -> str:
    """Return the name of the derived column that says whether a column is null."""
    return f"nulls of {name}"


def _quoted(name: str) -> str | None:
    """Return a column in an expression; None where its name cannot be written."""
    if not name or CONTROL.search(name) or "\\" in name:
        return None
    if "`" not in name:
        return f"`{name}`"
    return next((f"col({quote}{name}{quote})" for quote in "'\"" if quote not in name), None)
