"""The values of expressions: few Arrow types, into which columns are read, and literals converted."""

import re
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.parse_expression import ExpressionError

Value = Any
"""An array or scalar of Arrow, which comes without types: a value for each row, or one that all rows share.

No float is NaN.
"""

INTEGER, NATURAL, NUMBER = pa.int64(), pa.uint64(), pa.float64()
TEXT, TRUTH, DATE, TIME, NULL = pa.large_string(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.null()

WHOLE = (INTEGER, NATURAL)
NUMBERS = (*WHOLE, NUMBER)
ZONED = pa.timestamp("us", "UTC")
"""Timestamps of a column with a zone, until a function or a comparison takes them as `TIME`, in UTC."""
TIMES = (DATE, TIME)

KINDS = {
    INTEGER: "a number",
    NATURAL: "a number",
    NUMBER: "a number",
    TEXT: "text",
    TRUTH: "true or false",
    DATE: "a date",
    TIME: "a timestamp",
    ZONED: "a timestamp",
    NULL: "null",
}
"""What errors call the types."""

READ = "integers, floats, decimals, booleans, text, dates and timestamps"
"""What expressions read."""


_PER_DAY = 86_400_000_000
_FIRST_DAY, _LAST_DAY = date(1, 1, 1).toordinal() - 719_163, date(9999, 12, 31).toordinal() - 719_163
_PER_UNIT = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
"""Microseconds of a unit, and units of a microsecond."""

_DATE, _TIME = r"\d{4}-\d{2}-\d{2}", r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_ZONE = r"(Z|[+-]\d{2}:\d{2})"
_ALL_DIGITS = pa.decimal128(20, 0)
"""A type that holds every int64 and uint64."""


def named(*values: Value) -> str:
    """Return what values are, such as "text and a number"."""
    return " and ".join(KINDS[value.type] for value in values)


def column_values(name: str, column: pa.Array) -> pa.Array:
    """Return a column with a type of expressions.

    A NaN becomes null. So does a date or timestamp outside of the years 1 to 9999. Timestamps are cut to
    microseconds, and those with a zone are in UTC. A text keeps its dictionary.

    Args:
        name: of the column, for an error.
        column: shape (n,).

    Raises:
        ExpressionError: the column has a type that expressions cannot read.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        values = column_values(name, column.dictionary)
        if values.type != TEXT:
            return values.take(column.indices)
        indices = column.indices if column.indices.type == pa.int32() else pc.cast(column.indices, INTEGER)
        return pa.DictionaryArray.from_arrays(indices, values)
    if pa.types.is_uint64(kind) or pa.types.is_boolean(kind):
        return column
    if pa.types.is_integer(kind):
        return pc.cast(column, INTEGER)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return without_nan(pc.cast(column, NUMBER, safe=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pc.cast(column, TEXT)
    if pa.types.is_date32(kind):
        return _days(pc.cast(column, pa.int32()), 1)
    if pa.types.is_date64(kind):
        return _days(pc.cast(column, INTEGER), 86_400_000)
    if pa.types.is_timestamp(kind):
        return _microseconds(pc.cast(column, INTEGER), kind.unit)
    raise ExpressionError(f"{name} is {kind}, but an expression reads {READ}")


def _days(column: pa.Array, per_day: int) -> pa.Array:
    if per_day == 1 and _within(column, _FIRST_DAY, _LAST_DAY):
        return column.view(DATE)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False) // per_day
    held = (values >= _FIRST_DAY) & (values <= _LAST_DAY) & _held(column)
    return pa.array(np.where(held, values, 0).astype(np.int32), DATE, mask=~held)


def _microseconds(column: pa.Array, unit: str) -> pa.Array:
    times, parts = _PER_UNIT[unit]
    first, last = (day * _PER_DAY * parts // times for day in (_FIRST_DAY, _LAST_DAY + 1))
    if parts == 1 and _within(column, first, last - 1):
        return (column if times == 1 else pc.multiply(column, times)).view(TIME)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    held = (values >= first) & (values < last) & _held(column)
    return pa.array(np.where(held, values, 0) * times // parts, INTEGER, mask=~held).view(TIME)


def _within(column: pa.Array, first: int, last: int) -> bool:
    """Return whether all values are from `first` to `last`, which is usual and needs no copy."""
    bounds = pc.min_max(column).as_py()
    return bounds["min"] is None or (first <= bounds["min"] and bounds["max"] <= last)


def _held(column: pa.Array) -> Any:
    return pc.is_valid(column).to_numpy(zero_copy_only=False)


def without_nan(values: Value) -> Value:
    """Return floats with null in place of NaN."""
    total = pc.sum(values).as_py() if isinstance(values, pa.Array) else values.as_py()
    if total is None or total == total:  # a NaN would make the sum one
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, NUMBER), values)


def literal(value: bool | int | float | str | None) -> pa.Scalar:
    """Return a literal as a value."""
    if isinstance(value, bool) or value is None:
        return pa.scalar(value)
    if isinstance(value, int):
        return pa.scalar(value, INTEGER if value < 2**63 else NATURAL)
    return pa.scalar(value, TEXT if isinstance(value, str) else NUMBER)


def as_floats(values: Value) -> Value:
    """Return numbers as float64."""
    return values if values.type == NUMBER else pc.cast(values, NUMBER, safe=False)


def as_signed(values: Value) -> Value:
    """Return whole numbers as int64; those from 2^63 on become null."""
    if values.type == INTEGER:
        return values
    fits = pc.less_equal(values, pa.scalar(2**63 - 1, NATURAL))
    return pc.cast(pc.if_else(fits, values, pa.scalar(None, NATURAL)), INTEGER)


def with_zone(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values of a column, timestamps as `ZONED` where the type of the column has a zone."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return values.view(ZONED) if pa.types.is_timestamp(kind) and kind.tz is not None else values


def without_zone(values: Value) -> Value:
    """Return values with timestamps of a zone in UTC, as those without one."""
    return values.view(TIME) if values.type == ZONED else values


def as_time(text: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """Return a literal text such as 2013-01-31 or 2013-01-31T06:00 as a date or timestamp.

    Args:
        text: the literal.
        kind: what it is compared with. Beside `ZONED` it may end with Z or an offset such as +01:00, and is
            in UTC without.

    Returns:
        A date, or a timestamp without a zone, in UTC beside `ZONED`.

    Raises:
        ExpressionError: it is not one.
    """
    written = text.as_py()
    zone = rf"{_ZONE}?" if kind == ZONED else ""
    try:
        if kind == DATE:
            if not re.fullmatch(_DATE, written):
                raise ValueError
            return pa.scalar(date.fromisoformat(written), DATE)
        if not re.fullmatch(rf"{_DATE}([T ]{_TIME}{zone})?", written):
            raise ValueError
        found = datetime.fromisoformat(written)
        return pa.scalar(found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found, TIME)
    except (TypeError, ValueError, OverflowError):
        if kind == TIME and isinstance(written, str) and re.search(rf"{_TIME}{_ZONE}$", written):
            raise ExpressionError(
                f"'{written}' has a zone, which timestamps beside it do not have: write it without one"
            ) from None
        form = "2013-01-31" if kind == DATE else f"2013-01-31T06:00{'Z' if kind == ZONED else ''}"
        raise ExpressionError(f"'{written}' is not {KINDS[kind]}, such as '{form}'") from None


def of_one_kind(function: str, *values: Value) -> list[Value]:
    """Return values with one type: of integers and floats it is float64, and of dates and texts a date.

    A literal text beside dates or timestamps is read as one of them. Timestamps with a zone become those
    without one, in UTC.

    Raises:
        ExpressionError: they are of several kinds.
    """
    beside = ZONED if any(value.type == ZONED for value in values) else TIME
    values = tuple(map(without_zone, values))
    kinds = list(dict.fromkeys(value.type for value in values if value.type != NULL))
    if not kinds:
        raise ExpressionError(f"{function} has only null")
    times = [kind for kind in kinds if kind in TIMES]
    if len(times) == 1 and set(kinds) <= {times[0], TEXT}:
        kind = DATE if times == [DATE] else beside
        values = tuple(
            as_time(value, kind) if value.type == TEXT and isinstance(value, pa.Scalar) else value
            for value in values
        )
        kinds = list(dict.fromkeys(value.type for value in values if value.type != NULL))
    if len(kinds) == 1:
        (kind,) = kinds
        return [pa.scalar(None, kind) if value.type == NULL else value for value in values]
    if not set(kinds) <= set(NUMBERS):
        raise ExpressionError(f"{function} takes values of one kind, but here it has {named(*values)}")
    convert = as_floats if NUMBER in kinds else as_signed
    return [
        pa.scalar(None, NUMBER if NUMBER in kinds else INTEGER) if value.type == NULL else convert(value)
        for value in values
    ]


def comparable(sign: str, one: Value, other: Value) -> tuple[Value, Value]:
    """Return two values with one type in which they are compared. Whole numbers are compared exactly.

    Raises:
        ExpressionError: they are of two kinds, or one is a literal null.
    """
    if NULL in (one.type, other.type):
        raise ExpressionError(f"{sign} null is never true: use is_null(...) or not is_null(...)")
    if {one.type, other.type} == set(WHOLE):
        return pc.cast(one, _ALL_DIGITS), pc.cast(other, _ALL_DIGITS)
    alike = of_one_kind(sign, one, other)
    return alike[0], alike[1]
