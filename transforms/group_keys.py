"""Read the key columns of groups: text, integers, booleans, dates, or times cut to an hour or longer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.labels import Labels
from transforms.key_labels import LONGEST, UNITS, Truncate, values_of
from transforms.list_files import File, InputError, short
from transforms.missing_column import not_once
from transforms.text_as_times import convert_text

_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_HOUR = 24
_YEARS = np.array(["0001", "10000"], "datetime64[Y]")
_ENDS = {unit: _YEARS.astype(f"datetime64[{code}]").astype(np.int64).tolist() for unit, code in UNITS.items()}
"""The first time that is a key, and the first one that is too late, in whole units since 1970."""

_SHAPES: dict[Truncate, str] = {
    "hour": "2013-01-31T23",
    "day": "2013-01-31",
    "week": "2013-01-28, a Monday",
    "month": "2013-01",
}
"""Keys of each kind, as a message shows them."""

_MONDAY = -3
"""The first day of the week of 1970-01-01, in days since then. 0001-01-01 is a Monday, too."""

_ESCAPED = np.array([code < 0x20 or code in b'"\\' for code in range(256)])
"""Which bytes JSON escapes."""

_DENSE = 4
"""Numbers are counted in a table of at most so many places a row, and otherwise sorted."""

Ints = NDArray[np.int64]
Texts = NDArray[np.bytes_]


@dataclass(frozen=True)
class GroupKeys:
    """How rows become members of groups.

    The key of a row follows from its own values alone. A row with a null in a key column has no group, and
    neither has a row whose key is not among the public ones, or is a time outside the years 1 to 9999: files
    of results cannot hold each of those, and to fail where noise released one would tell that it did.

    Args:
        columns: the key columns.
        truncate: for each of them what its times are cut to, or None.
        labels: the public keys in the order of their numbers; None where keys are private.
    """

    columns: tuple[str, ...]
    truncate: tuple[Truncate | None, ...]
    labels: Labels | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.columns, self.truncate, self.labels)

    @cached_property
    def _ordered(self) -> tuple[Texts, Ints]:
        """The public keys in ascending order, and their numbers."""
        public = np.empty(0, "S1") if self.labels is None else self.labels.array
        order = np.argsort(public, kind="stable")
        return public[order], order

    def read(self, batch: pa.RecordBatch) -> tuple[Ints, Texts]:
        """Return the group of each row, -1 for none, shape (n,), and the labels that these number.

        Labels are made once for each distinct key of the batch, and not as objects of Python.
        """
        codes, texts = np.zeros(batch.num_rows, np.int64), pa.array([b"["], pa.large_binary())
        missing = np.zeros(batch.num_rows, dtype=np.bool_)
        for place, (column, unit) in enumerate(zip(self.columns, self.truncate, strict=True)):
            number, values = _distinct(batch.column(column), unit)
            missing |= number < 0
            joined = codes * max(1, len(values)) + np.maximum(number, 0)
            used, codes = _renumbered(joined, len(texts) * max(1, len(values)))
            before, here = np.divmod(used, max(1, len(values)))
            if not len(values):  # no row has a value
                return np.full(batch.num_rows, -1, dtype=np.int64), np.empty(0, "S1")
            texts = _joined(texts.take(pa.array(before)), b"," if place else b"", values.take(pa.array(here)))
        labels = _joined(texts, b"]")
        lengths = pc.binary_length(labels).to_numpy(zero_copy_only=False)
        if self.labels is None:
            number_of = np.where(lengths <= LONGEST, np.arange(len(labels)), -1)
            kept = _fixed(_shorter(labels, LONGEST))
        else:
            number_of, kept = self._numbers(labels), self.labels.array
        groups = np.full(batch.num_rows, -1, dtype=np.int64)
        if len(labels):
            groups[~missing] = number_of[codes[~missing]]
        return groups, kept

    def _numbers(self, labels: pa.Array) -> Ints:
        """Return the numbers of labels among the public keys, -1 for another one."""
        ordered, numbers = self._ordered
        if not len(ordered):
            return np.full(len(labels), -1)
        sought = _fixed(_shorter(labels, ordered.itemsize), ordered.itemsize)
        order = np.argsort(sought)  # a search in ascending order stays in near memory
        place = np.empty(len(sought), dtype=np.int64)
        place[order] = np.minimum(np.searchsorted(ordered, sought[order]), len(ordered) - 1)
        return np.where(ordered[place] == sought, numbers[place], -1)


@lru_cache(maxsize=4)
def _unpickled(
    columns: tuple[str, ...], truncate: tuple[Truncate | None, ...], labels: Labels | None
) -> GroupKeys:
    """Return the same object each time: a process numbers public keys once."""
    return GroupKeys(columns, truncate, labels)


def check_keys(keys: GroupKeys, files: Sequence[File], schemas: Sequence[pa.Schema]) -> None:
    """Check that every file has each key column once, of one type that can be a key, and of the public keys.

    A column that has no type in its file, as in CSV, has the one that its use gives it; see
    `transforms.column_types`.

    Raises:
        InputError: it does not.
    """
    for column, unit in zip(keys.columns, keys.truncate, strict=True):
        for file, schema in zip(files, schemas, strict=True):
            where = f"group_by.columns: {short(column)}"
            if len(schema.get_all_field_indices(column)) != 1:
                raise not_once("group_by.columns", column, file, schema.names)
            kind, first = schema.field(column).type, schemas[0].field(column).type
            where += f" is {short(str(kind))} in {short(file.name)}"
            if kind != first:
                raise InputError(
                    f"{where} but {short(str(first))} in {short(files[0].name)}; a key column must have one "
                    "type in all files."
                )
            if unit is not None and not is_time(kind):
                advice = convert_text(file, column, kind, "timestamps") or "leave it out"
                raise InputError(f"{where}; group_by.truncate is for timestamps and dates, so {advice}.")
            if unit is None and pa.types.is_timestamp(kind):
                raise InputError(
                    f"{where}; give group_by.truncate with hour, day, week or month for it, since nearly "
                    "every row may have a time of its own."
                )
            if unit is None and not is_key(kind):
                used = ""
                if column in dict(file.types):
                    used = ", since an axis or input.types makes it a number"
                raise InputError(
                    f"{where}{used}; keys are text, integers, booleans, dates or truncated timestamps."
                )
    if keys.labels and schemas:
        _check_public(keys, schemas[0])


def _check_public(keys: GroupKeys, schema: pa.Schema) -> None:
    """Check that each public key is one that a row can have: others would be groups that are always empty."""
    kinds = []
    for column, unit in zip(keys.columns, keys.truncate, strict=True):
        kind = schema.field(column).type
        kinds.append((column, kind, *_kind_of_keys(kind, unit)))
    for values in values_of(keys.labels or ()):
        for place, (column, kind, fits, needed) in enumerate(kinds):
            for _, value in dict.fromkeys((type(key[place]), key[place]) for key in values):  # True equals 1
                if not fits(value):
                    raise InputError(
                        f"group_by.keys has {short(repr(value))} for {short(column)}, which is "
                        f"{short(str(kind))} in the files; its keys are {needed}."
                    )


def _kind_of_keys(kind: pa.DataType, unit: Truncate | None) -> tuple[Callable[[object], bool], str]:
    """Return whether a value can be a key of a column, and in words which values can."""
    if pa.types.is_dictionary(kind):
        return _kind_of_keys(kind.value_type, unit)
    if pa.types.is_boolean(kind):
        return lambda value: isinstance(value, bool), "true or false"
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        low = -(2 ** (kind.bit_width - 1)) if signed else 0
        high = low + 2**kind.bit_width - 1
        return lambda value: type(value) is int and low <= value <= high, f"integers from {low} to {high}"
    if is_time(kind):
        cut = unit or "day"
        needed = f"text such as {_SHAPES[cut]}"
        return lambda value: isinstance(value, str) and _is_time_of(value, cut), needed
    return lambda value: isinstance(value, str), "text"


def _is_time_of(text: str, unit: Truncate) -> bool:
    try:
        time = np.array(text, dtype=f"datetime64[{UNITS[unit]}]")
        first, last = _ENDS[unit]
        number = int(time.astype(np.int64))
        begins = unit != "week" or (number - _MONDAY) % 7 == 0
        return str(time) == text != "NaT" and first <= number < last and begins
    except (ValueError, TypeError):
        return False


def without_long(column: pa.Array) -> pa.Array:
    """Return a key column with null in place of texts that are too long for a label.

    Their rows are left out in any case. So columns that are put together do not outgrow Arrow's offsets,
    which would be an error for some rows, and none without them.
    """
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, without_long(column.dictionary))
    if not _is_text(column.type):
        return column
    if pa.types.is_string_view(column.type):
        column = pc.cast(column, pa.large_string())
    fits = pc.fill_null(pc.less_equal(pc.binary_length(column), LONGEST), False)
    # taken and not replaced, so that the bytes of long texts are freed
    return column.take(pa.array(np.arange(len(column)), mask=~fits.to_numpy(zero_copy_only=False)))


def _is_text(kind: pa.DataType) -> bool:
    views = pa.types.is_string_view(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or views)


def is_key(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be a key without being truncated."""
    if pa.types.is_dictionary(kind):
        return is_key(kind.value_type)
    return _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind)


def is_time(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be truncated."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _renumbered(numbers: Ints, below: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers, ascending, and the place of each number among them, shape (n,).

    Args:
        numbers: shape (n,), at least 0.
        below: what they are below.
    """
    if below > _DENSE * len(numbers):
        used, place = np.unique(numbers, return_inverse=True)
        return used, place
    there = np.bincount(numbers, minlength=1) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def _distinct(column: pa.Array, unit: Truncate | None) -> tuple[Ints, pa.Array]:
    """Return the number of each row's value, -1 for a null, and the JSON of each distinct value."""
    if pa.types.is_dictionary(column.type) and pa.types.is_date(column.type.value_type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        all_times, (first, last) = _times(column, unit or "day"), _ENDS[unit or "day"]
        held = pc.is_valid(column).to_numpy(zero_copy_only=False) & (first <= all_times) & (all_times < last)
        times, place = np.unique(all_times[held], return_inverse=True)
        numbers = np.full(len(column), -1, dtype=np.int64)
        numbers[held] = place
        named = np.datetime_as_string(times.view(f"datetime64[{UNITS[unit or 'day']}]"))
        return numbers, _joined(b'"', pa.array(named.tolist(), pa.large_binary()), b'"')
    # Rows of a dictionary may have one long text many times, and as many texts with another column's values.
    encoded = without_long(column) if pa.types.is_dictionary(kind) else column.dictionary_encode()
    # Values may have one text, and a dictionary of a file may hold one twice, or a null.
    names = _json(encoded.dictionary).dictionary_encode()
    place = np.append(_places(names.indices), -1)
    return place[_places(encoded.indices)], names.dictionary


def _places(indices: pa.Array) -> Ints:
    """Return the indices of a dictionary, -1 for a null."""
    filled = pc.fill_null(pc.cast(indices, pa.int64()), -1)
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _json(values: pa.Array) -> pa.Array:
    """Return each value as JSON. Bytes of a text that are not UTF-8 are replaced: rows must not fail."""
    if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        return pc.cast(pc.cast(values, pa.large_string()), pa.large_binary())
    texts = pc.cast(values, pa.large_binary())
    if _plain(texts):
        return _joined(b'"', texts, b'"')
    named = [
        None if text is None else encode_basestring(text.decode("utf-8", "replace")).encode()
        for text in texts.to_pylist()
    ]
    return pa.array(named, pa.large_binary())


def _plain(texts: pa.Array) -> bool:
    """Return whether all texts are UTF-8 and have no character that JSON escapes."""
    data = _bytes(texts)
    if (_ESCAPED[data]).any():
        return False
    try:
        pc.cast(texts, pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _bytes(texts: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of all texts in order, which are large binaries."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.empty(0, np.uint8)
    first, last = np.frombuffer(offsets, np.int64)[[texts.offset, texts.offset + len(texts)]]
    return np.frombuffer(data, np.uint8)[first:last]


def _joined(*parts: pa.Array | bytes) -> pa.Array:
    """Return texts end to end; bytes are the same for all."""
    texts = [pa.scalar(part, pa.large_binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar(b"", pa.large_binary()))


def _shorter(labels: pa.Array, longest: int) -> pa.Array:
    """Return labels with an empty one in place of each that has more bytes."""
    empty = pa.scalar(b"", pa.large_binary())
    return pc.if_else(pc.less_equal(pc.binary_length(labels), longest), labels, empty)


def _fixed(labels: pa.Array, width: int = 0) -> Texts:
    """Return labels as an array of numpy, by default as wide as the longest of them, and at least 1."""
    lengths = pc.binary_length(labels).to_numpy(zero_copy_only=False)
    width = width or max(1, int(lengths.max(initial=1)))
    found = np.zeros((len(labels), width), dtype=np.uint8)
    found[np.arange(width) < lengths[:, None]] = _bytes(labels)
    return found.view(f"S{width}")[:, 0]


def _times(column: pa.Array, unit: Truncate) -> Ints:
    """Return dates or times, in UTC, as whole numbers of a unit since 1970; a null is any number.

    Whole numbers are divided, because calendars of other libraries end in some year.
    """
    if pa.types.is_date32(column.type):
        column = pc.cast(column, pa.int32())
        days = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        hours = days * _HOUR
    else:
        per_day = _DAY["ms" if pa.types.is_date64(column.type) else column.type.unit]
        ticks = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
        days, hours = ticks // per_day, ticks // (per_day // _HOUR)
    if unit == "hour":
        return np.asarray(hours)
    if unit == "month":
        return days.view("datetime64[D]").astype("datetime64[M]").view(np.int64)
    if unit == "week":  # the last one ends in the year 10000, whose days stay what they are: no keys
        return np.where(days < _ENDS["day"][1], days - (days - _MONDAY) % 7, days)
    return np.asarray(days)
