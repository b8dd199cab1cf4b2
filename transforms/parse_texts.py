"""Read texts as values of a type: a text that is not of the type is null, whatever the other texts are.

- Integers: digits, with a sign or not, from -2^63 to 2^63 - 1; a decimal point with zeros alone may follow.
- Numbers: decimals, with an exponent or not, rounded to the nearest float64, which must be finite.
- Booleans: true or false in any case, 1 or 0.
- Dates and timestamps: ISO 8601, such as 2013-01-31, 2013-01-31T06:00, 2013-01-31 06:00:00.25Z or
  2013-01-31T06:00:00+01:00, of the years 1 to 9999. What is finer than the unit is cut off. A timestamp
  without a zone takes a text with one as UTC. A timestamp with a zone takes no text without one.
- Text: valid UTF-8, as it is. Around values of the other types, spaces and tabs are left out.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

INTEGER, NUMBER, TEXT, TRUTH = pa.int64(), pa.float64(), pa.string(), pa.bool_()
DATE, TIME = pa.date32(), pa.timestamp("us")

_BLANK = " \t"
_INTEGER = r"^[ \t]*[+-]?[0-9]+(?:\.0*)?[ \t]*$"
_NUMBER = r"^[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*$"
_TRUE, _FALSE = r"(?i)^[ \t]*(?:true|1)[ \t]*$", r"(?i)^[ \t]*(?:false|0)[ \t]*$"
_DAY = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<part>[0-9]+))?)?"
_ZONE = r"(?P<zone>[Zz]|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2}))"
_DATE = rf"^[ \t]*{_DAY}[ \t]*$"
_TIME = rf"^[ \t]*{_DAY}(?:[Tt ]{_CLOCK}{_ZONE}?)?[ \t]*$"

_SAFE = 18
"""Digits of whole numbers that surely fit into int64."""

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_YEAR_ZERO = 1970

Ints = NDArray[np.int64]


def parse_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts as values of a type, null where a text is null or not of the type.

    Args:
        texts: shape (n,), bytes.
        kind: int64, float64, string, bool, date32, or a timestamp without a zone or in UTC.

    Returns:
        Shape (n,).
    """
    if kind == TEXT:
        return _texts(texts)
    if kind == TRUTH:
        true = pc.match_substring_regex(texts, _TRUE)
        known = pc.or_(true, pc.match_substring_regex(texts, _FALSE))
        return pc.if_else(known, true, pa.scalar(None, TRUTH))
    if kind == INTEGER:
        return _integers(_trimmed(texts, _INTEGER))
    if kind == NUMBER:
        return _numbers(texts)
    return _times(texts, kind)


def parse_column(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts with offsets of 64 bits as values of a type; see `parse_texts`.

    Args:
        texts: shape (n,), of fewer than 2^31 bytes; see `transforms.cut_batches`. They may be a part of more.
        kind: see `parse_texts`.
    """
    return parse_texts(pc.cast(pa.concat_arrays([texts]), pa.binary()), kind)


def _texts(texts: pa.Array) -> pa.Array:
    """Return the texts that are UTF-8."""
    try:
        return pc.cast(texts, TEXT)
    except pa.ArrowInvalid:
        return pa.array([_decoded(text) for text in texts.to_pylist()], TEXT)


def _decoded(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def _trimmed(texts: pa.Array, pattern: str) -> pa.Array:
    """Return the texts that match a pattern of ASCII, without blanks around them and a plus sign."""
    held = pc.match_substring_regex(texts, pattern)
    found = pc.cast(pc.if_else(held, texts, pa.scalar(None, texts.type)), TEXT)
    return pc.ascii_rtrim(pc.ascii_ltrim(found, f"{_BLANK}+"), _BLANK)


def _numbers(texts: pa.Array) -> pa.Array:
    """Return the texts that are finite numbers.

    Arrow reads what `_NUMBER` matches, and beyond it only words for what is not finite. So a text has the
    same value whether Arrow reads all texts at once or those that match.
    """
    try:
        values = pc.cast(texts.view(TEXT), NUMBER)
    except pa.ArrowInvalid:
        values = pc.cast(_trimmed(texts, _NUMBER), NUMBER)
    return pc.if_else(pc.is_finite(values), values, pa.scalar(None, NUMBER))


def _integers(texts: pa.Array) -> pa.Array:
    whole = pc.replace_substring_regex(texts, r"\..*$", "")
    short = pc.less_equal(pc.binary_length(whole), _SAFE)
    values = pc.cast(pc.if_else(short, whole, pa.scalar(None, TEXT)), INTEGER)
    rows = np.flatnonzero(pc.invert(short).fill_null(False).to_numpy(zero_copy_only=False))
    if not len(rows):
        return values
    long = pa.array([_integer(text) for text in whole.take(pa.array(rows)).to_pylist()], INTEGER)
    mask = np.zeros(len(texts), dtype=np.bool_)
    mask[rows] = True
    return pc.replace_with_mask(values, pa.array(mask), long)


def _integer(text: str) -> int | None:
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > _SAFE + 1:
        return None
    value = -int(digits) if text.startswith("-") else int(digits)
    return value if -(2**63) <= value < 2**63 else None


def _times(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return dates or timestamps. All is computed in whole numbers, so no text can be an error."""
    dates = pa.types.is_date(kind)
    parts = pc.extract_regex(texts, _DATE if dates else _TIME)
    held = pc.is_valid(parts).to_numpy(zero_copy_only=False)
    year, month, day = (_digits(parts, name) for name in ("year", "month", "day"))
    held &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(held, (year - _YEAR_ZERO) * 12 + month - 1, 0)
    first, after = (each.view("datetime64[M]").astype("datetime64[D]") for each in (months, months + 1))
    days = first.view(np.int64) + day - 1
    held &= days < after.view(np.int64)
    if dates:
        return pa.array(np.where(held, days, 0).astype(np.int32), mask=~held).view(kind)
    hour, minute, second = (_digits(parts, name) for name in ("hour", "minute", "second"))
    hours, minutes = _digits(parts, "hours"), _digits(parts, "minutes")
    held &= (hour < 24) & (minute < 60) & (second < 60) & (hours < 24) & (minutes < 60)
    if kind.tz is not None:
        held &= _is_there(parts, "zone")
    back = _is(parts, "sign", "+").astype(np.int64) - _is(parts, "sign", "-")
    seconds = ((days * 24 + hour) * 60 + minute - back * (hours * 60 + minutes)) * 60 + second
    digits = _DIGITS[kind.unit]
    per_second = 10**digits
    held &= np.abs(seconds) < 2**63 // per_second - 1
    fraction = _digits(parts, "part", digits)
    ticks = np.where(held, seconds, 0) * per_second + np.where(held, fraction, 0)
    return pa.array(ticks, mask=~held).view(kind)


def _text(parts: pa.StructArray, name: str) -> pa.Array:
    """Return a part of the texts, empty where it is not there."""
    found = pc.struct_field(parts, name)
    return pc.fill_null(pc.cast(found, TEXT), "")


def _digits(parts: pa.StructArray, name: str, digits: int | None = None) -> Ints:
    """Return a part as whole numbers, 0 where it is not there; of a fraction the first `digits`."""
    text = _text(parts, name)
    if digits is not None:
        text = pc.utf8_slice_codeunits(pc.utf8_rpad(text, digits, "0"), 0, digits)
    filled = pc.if_else(pc.equal(text, ""), "0", text)
    return np.asarray(pc.cast(filled, INTEGER).to_numpy(zero_copy_only=False))


def _is(parts: pa.StructArray, name: str, text: str) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(_text(parts, name), text).to_numpy(zero_copy_only=False))


def _is_there(parts: pa.StructArray, name: str) -> NDArray[np.bool_]:
    return ~_is(parts, name, "")


def parse_text(text: str | None, kind: pa.DataType) -> Any:
    """Return one text as a scalar of a type; see `parse_texts`."""
    return parse_texts(pa.array([None if text is None else text.encode()], pa.binary()), kind)[0]
