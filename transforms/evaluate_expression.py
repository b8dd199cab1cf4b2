"""Evaluate an expression on the rows of a batch with Arrow. What is made of a row depends on this row alone.

No value is an error. A whole number that does not fit into 64 bits is null, and so is what would be NaN, such
as the logarithm of a negative number. A division of floats by zero is infinite.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.expression_values import (
    DATE,
    INTEGER,
    NULL,
    NUMBER,
    NUMBERS,
    TEXT,
    TIME,
    TIMES,
    TRUTH,
    WHOLE,
    Value,
    as_floats,
    as_signed,
    column_values,
    comparable,
    literal,
    named,
    of_one_kind,
    without_nan,
    without_zone,
)
from transforms.joined_batches import decoded_column
from transforms.parse_expression import Column, Comparison, ExpressionError, Literal, Node, columns_of
from transforms.parse_texts import parse_column

_WIDE = pa.decimal256(20, 0)
"""A type in which sums and products of two whole numbers are exact."""

_SECOND, _DAY = 1_000_000, 86_400_000_000


def evaluate(node: Node, column: Callable[[str], pa.Array], rows: int) -> pa.Array:
    """Evaluate an expression.

    Args:
        node: the expression.
        column: returns the values of a column by its name, shape (n,), as `column_values` and `with_zone` of
            `transforms.expression_values` do; a text may have a dictionary.
        rows: n.

    Returns:
        Shape (n,), of int64, uint64, float64, bool, large_string, date32 or timestamp[us]. No float is NaN.

    Raises:
        ExpressionError: types do not match. This depends on the types of columns, and on no row.
    """
    value = without_zone(_value(node, column, rows))
    if value.type == NULL:
        raise ExpressionError("it is always null")
    return _of_rows(value, rows)


def _value(node: Node, column: Callable[[str], pa.Array], rows: int) -> Value:
    if isinstance(node, Column):
        return decoded_column(column(node.name))
    names = set(columns_of(node))
    if len(names) == 1:
        values = column(*names)
        if pa.types.is_dictionary(values.type):
            return _of_texts(node, values)
    if isinstance(node, Literal):
        return literal(node.value)
    if isinstance(node, Comparison):
        values = [_value(each, column, rows) for each in node.values]
        pairs = zip(node.signs, values[:-1], values[1:], strict=True)
        return reduce(pc.and_kleene, [_compare(*pair) for pair in pairs])
    if node.function == "in":
        return _is_in(_of_rows(_value(node.arguments[0], column, rows), rows), node.arguments[1:])
    values = [_value(each, column, rows) for each in node.arguments]
    if node.function not in _ALIKE:
        values = [without_zone(each) for each in values]
    if node.function in _NUMPY:
        values = [_of_rows(each, rows) for each in values]
    return _APPLY[node.function](node.function, *values)


def _of_texts(node: Node, column: pa.DictionaryArray) -> pa.Array:
    """Evaluate an expression on each text of a dictionary and on null, once for all rows that have it."""
    texts = pa.concat_arrays([column.dictionary, pa.nulls(1, TEXT)])
    found = _of_rows(_value(node, lambda _: texts, len(texts)), len(texts))
    return found.take(pc.fill_null(column.indices, pa.scalar(len(texts) - 1, column.indices.type)))


def _of_rows(value: Value, rows: int) -> pa.Array:
    return value if isinstance(value, pa.Array) else pa.repeat(value, rows)


def _check(function: str, kinds: Sequence[pa.DataType], what: str, *values: Value) -> None:
    if not all(value.type in kinds for value in values):
        read = [name for name, kind in _READ_AS.items() if kind in kinds and name != function]
        text = any(value.type == TEXT and isinstance(value, pa.Array) for value in values)
        advice = f": read the text by {' or '.join(f'{name}(...)' for name in read)}" if text and read else ""
        raise ExpressionError(f"{function} takes {what}, but here it has {named(*values)}{advice}")


def _numbers(function: str, *values: Value) -> None:
    _check(function, NUMBERS, "numbers", *values)


def _compare(sign: str, one: Value, other: Value) -> Value:
    one, other = comparable(sign, one, other)
    if one.type == TRUTH and sign not in ("==", "!="):
        raise ExpressionError(f"{sign} does not take true or false")
    return _SIGNS[sign](one, other)


def _is_in(value: pa.Array, listed: Sequence[Node]) -> Value:
    literals = [literal(each.value) for each in listed if isinstance(each, Literal)]
    pairs = [comparable("in", value, each) for each in literals]
    kinds = {one.type for one, _ in pairs}
    found = [
        pc.is_in(one, value_set=pa.array([other.as_py() for _, other in pairs if other.type == kind], kind))
        for kind in sorted(kinds, key=str)
        for one in [next(one for one, _ in pairs if one.type == kind)]
    ]
    return pc.if_else(pc.is_valid(value), reduce(pc.or_, found), pa.scalar(None, TRUTH))


def _not(function: str, value: Value) -> Value:
    _check(function, (TRUTH,), "true or false", value)
    return pc.invert(value)


def _logic(function: str, *values: Value) -> Value:
    _check(function, (TRUTH,), "true or false", *values)
    return reduce(pc.and_kleene if function == "and" else pc.or_kleene, values)


def _arithmetic(function: str, one: Value, other: Value) -> Value:
    _numbers(function, one, other)
    if one.type in WHOLE and other.type in WHOLE:
        return _exact(function, as_signed(one), as_signed(other))
    return without_nan(_FLOAT[function](as_floats(one), as_floats(other)))


def _exact(function: str, one: Value, other: Value) -> Value:
    """Return a sum, difference or product of int64, with null where it is not an int64."""
    try:
        return _CHECKED[function](one, other)
    except pa.ArrowInvalid:
        exact = _FLOAT[function](pc.cast(one, _WIDE), pc.cast(other, _WIDE))
        low, high = (pc.cast(pa.scalar(bound, INTEGER), _WIDE) for bound in (-(2**63), 2**63 - 1))
        fits = pc.and_(pc.greater_equal(exact, low), pc.less_equal(exact, high))
        return pc.cast(pc.if_else(fits, exact, pa.scalar(None, exact.type)), INTEGER)


def _divide(function: str, one: Value, other: Value) -> Value:
    _numbers(function, one, other)
    return without_nan(pc.divide(as_floats(one), as_floats(other)))


def _floor_divide(function: str, one: pa.Array, other: pa.Array) -> pa.Array:
    """Return quotients rounded down, or what remains, which has the sign of the divisor, as Python does."""
    _numbers(function, one, other)
    apply: Any = np.floor_divide if function == "//" else np.mod
    whole = one.type in WHOLE and other.type in WHOLE
    convert = as_signed if whole else as_floats
    left, right = convert(one), convert(other)
    held = np.array(pc.and_(pc.is_valid(left), pc.is_valid(right)))
    a, b = (pc.fill_null(each, 1).to_numpy(zero_copy_only=False) for each in (left, right))
    if whole:
        held &= b != 0
        if function == "//":
            held &= (a != -(2**63)) | (b != -1)
        a, b = (np.where(held, each, 1) for each in (a, b))
    with np.errstate(all="ignore"):
        result = pa.array(apply(a, b), INTEGER if whole else NUMBER, mask=~held)
    return result if whole else without_nan(result)


def _negative(function: str, value: Value) -> Value:
    _numbers("-", value)
    if value.type == NUMBER:
        return pc.negate(value)
    return _exact("-", pa.scalar(0, INTEGER), as_signed(value))


def _abs(function: str, value: Value) -> Value:
    _numbers(function, value)
    if value.type != INTEGER:
        return pc.abs(value)
    return pc.if_else(pc.less(value, 0), _exact("-", pa.scalar(0, INTEGER), value), value)


def _round(function: str, value: Value) -> Value:
    _numbers(function, value)
    if value.type != NUMBER:
        return value
    whole = _FLOAT[function](value)
    fits = pc.and_(pc.greater_equal(whole, -(2.0**63)), pc.less(whole, 2.0**63))
    return pc.cast(pc.if_else(fits, whole, pa.scalar(None, NUMBER)), INTEGER)


def _real(function: str, value: Value) -> Value:
    _numbers(function, value)
    return without_nan(_FLOAT[function](as_floats(value)))


def _field(function: str, value: Value) -> Value:
    """Return a part of a date or timestamp."""
    if function in ("hour", "minute"):
        _check(function, (TIME,), "a timestamp", value)
    else:
        _check(function, TIMES, "a date or a timestamp", value)
    return _PARTS[function](value)


def _date(function: str, value: Value) -> Value:
    if value.type == TEXT:
        return _of_text(function, value)
    _check(function, TIMES, "a date, a timestamp or text", value)
    if value.type == DATE:
        return value
    if isinstance(value, pa.Scalar):
        return _date(function, _of_rows(value, 1))[0]
    held = np.array(pc.is_valid(value))
    days = pc.fill_null(pc.cast(value, INTEGER), 0).to_numpy(zero_copy_only=False) // _DAY
    return pa.array(days.astype(np.int32), DATE, mask=~held)


def _number(function: str, value: Value) -> Value:
    if value.type == TEXT:
        return _of_text(function, value)
    _check(function, NUMBERS, "a number or text", value)
    return as_floats(value)


def _timestamp(function: str, value: Value) -> Value:
    if value.type == TEXT:
        return _of_text(function, value)
    _check(function, (TIME,), "a timestamp or text", value)
    return value


def _of_text(function: str, value: Value) -> Value:
    """Read text; see `transforms.parse_texts`. What a job writes itself must be readable."""
    found = column_values(function, parse_column(_of_rows(value, 1), _READ_AS[function]))
    if not isinstance(value, pa.Scalar):
        return found
    if value.is_valid and not found[0].is_valid:
        raise ExpressionError(f"{function} cannot read '{value.as_py()}'")
    return found[0]


def _days(function: str, value: Value) -> Value:
    _check(function, (DATE,), "a date", value)
    return pc.cast(pc.cast(value, pa.int32()), INTEGER)


def _seconds(function: str, value: Value) -> Value:
    _check(function, (TIME,), "a timestamp", value)
    return pc.divide(pc.cast(pc.cast(value, INTEGER), NUMBER, safe=False), float(_SECOND))


def _case(function: str, value: Value) -> Value:
    """Change letters. Texts that are not UTF-8, which Arrow does not check when it reads a file, become null.

    Whether one of them is there decides only on the way. Arrow's `utf8_lower` takes some bytes that are not
    UTF-8, so it must not be asked: a row would depend on what other rows of its batch hold.
    """
    _check(function, (TEXT,), "text", value)
    try:
        value.validate(full=True)
    except pa.ArrowInvalid:
        held = [_is_text(each) for each in pc.cast(value, pa.large_binary()).to_pylist()]
        value = pc.if_else(pa.array(held), value, pa.scalar(None, TEXT))
    return pc.utf8_lower(value) if function == "lower" else pc.utf8_upper(value)


def _is_text(value: bytes | None) -> bool:
    try:
        return value is not None and value.decode() is not None
    except UnicodeDecodeError:
        return False


def _length(function: str, value: Value) -> Value:
    _check(function, (TEXT,), "text", value)
    return pc.cast(pc.utf8_length(value), INTEGER)


def _match(function: str, value: Value, pattern: Value) -> Value:
    _check(function, (TEXT,), "texts", value, pattern)
    if isinstance(pattern, pa.Array):
        raise ExpressionError(f"{function} takes a column and then a text in quotes")
    return _MATCHES[function](value, pattern.as_py())


def _least(function: str, *values: Value) -> Value:
    values = tuple(of_one_kind(function, *values))
    if values[0].type == TRUTH:
        raise ExpressionError(f"{function} does not take true or false")
    apply = pc.min_element_wise if function == "min" else pc.max_element_wise
    return apply(*values, skip_nulls=False)


def _coalesce(function: str, *values: Value) -> Value:
    return pc.coalesce(*of_one_kind(function, *values))


def _if(function: str, condition: Value, one: Value, other: Value) -> Value:
    _check(function, (TRUTH,), "a condition that is true or false", condition)
    return pc.if_else(pc.fill_null(condition, False), *of_one_kind(function, one, other))


def _is_null(function: str, value: Value) -> Value:
    return pc.is_null(value)


_SIGNS: dict[str, Any] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_FLOAT: dict[str, Any] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "round": pc.round,
    "floor": pc.floor,
    "ceil": pc.ceil,
    "sqrt": pc.sqrt,
    "log": pc.ln,
    "exp": pc.exp,
}
_CHECKED: dict[str, Any] = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PARTS: dict[str, Any] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "weekday": pc.day_of_week,
}
_MATCHES: dict[str, Any] = {
    "starts_with": pc.starts_with,
    "ends_with": pc.ends_with,
    "contains": pc.match_substring,
}
_READ_AS: dict[str, pa.DataType] = {"number": NUMBER, "date": DATE, "timestamp": TIME}
"""What functions read text as."""

_NUMPY = frozenset({"//", "%", "lower", "upper"})
"""Functions that take one value for each row, also where all rows share it."""

_ALIKE = frozenset({"min", "max", "coalesce", "if"})
"""Functions that read a literal text as a timestamp where other values are timestamps."""

_APPLY: dict[str, Callable[..., Value]] = {
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    **dict.fromkeys(("//", "%"), _floor_divide),
    **dict.fromkeys(("and", "or"), _logic),
    **dict.fromkeys(("round", "floor", "ceil"), _round),
    **dict.fromkeys(("sqrt", "log", "exp"), _real),
    **dict.fromkeys(_PARTS, _field),
    **dict.fromkeys(_MATCHES, _match),
    **dict.fromkeys(("lower", "upper"), _case),
    **dict.fromkeys(("min", "max"), _least),
    "/": _divide,
    "not": _not,
    "negative": _negative,
    "abs": _abs,
    "date": _date,
    "number": _number,
    "timestamp": _timestamp,
    "days": _days,
    "seconds": _seconds,
    "length": _length,
    "coalesce": _coalesce,
    "if": _if,
    "is_null": _is_null,
}
