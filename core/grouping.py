"""Groups of records: their key columns and keys, and what one unit may contribute to them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidValue

MOST_KEYS = 1 << 22
"""Most public keys: each of them gets noise."""

_KNOWN: dict[str, tuple[str, ...]] = {}
"""Labels by their text; see `unpack`."""

_MOST_KNOWN = 4

_AT_ONCE = 1 << 14
"""Labels that are parsed at one time."""

_LARGEST = 1 << 31
"""Most groups of a unit, and most rows of a unit in a group."""


@dataclass(frozen=True)
class Grouping:
    """Which groups there are.

    Args:
        columns: the key columns.
        labels: the public keys, each the canonical JSON of a key's values, all different; None where the keys
            are private.
        times: unit to which a key column is truncated (`D`, `h` or `M`), or None, one for each column.
    """

    columns: tuple[str, ...]
    labels: tuple[str, ...] | None
    times: tuple[str | None, ...]

    @property
    def private(self) -> bool:
        """Whether a group is only released where enough units are in it."""
        return self.labels is None

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.columns, pack(self.labels), self.times)


def pack(labels: tuple[str, ...] | None) -> str | None:
    """Return labels as one text, which takes a fraction of their memory; JSON escapes every line end."""
    if labels is None:
        return None
    text = "\n".join(labels)
    _shared(text, labels)
    return text


def unpack(text: str | None) -> tuple[str, ...] | None:
    """Return the labels of `pack`: a process has one copy of them, however many steps it runs."""
    return None if text is None else _shared(text, None)


def _shared(text: str, labels: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the labels of a text that this process has, or else the given ones or those in the text."""
    known = _KNOWN.get(text)
    if known is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN.setdefault(text, labels or tuple(text.split("\n") if text else ()))
    return known


def _unpickled(columns: tuple[str, ...], text: str | None, times: tuple[str | None, ...]) -> Grouping:
    return Grouping(columns, unpack(text), times)


@dataclass(frozen=True)
class Contributions:
    """What one unit may contribute, at most.

    Args:
        groups: number of groups that a unit is in, L.
        rows: number of its rows in each of them, M.
        clamp: `row`: a sum adds up rows, each of which is clamped to the domain. `unit`: the sum of a unit's
            rows in a group is clamped to the domain once more before it is added up.

    Raises:
        InvalidValue: a number is out of range, or their product is.
    """

    groups: int = 1
    rows: int = 1
    clamp: str = "row"

    def __post_init__(self) -> None:
        if self.clamp not in ("row", "unit"):
            raise InvalidValue(
                "contributions", self.clamp, "it must be row or unit", f"has clamp {self.clamp!r}"
            )
        least, most = min(self.groups, self.rows), self.groups * self.rows
        if least < 1 or most >= _LARGEST:
            raise InvalidValue(
                "contributions",
                (self.groups, self.rows),
                "both must be above 0, and their product below 2^31, so that totals fit into int64",
                f"has groups {self.groups} and rows {self.rows}",
            )


def key_columns(labels: Sequence[str | bytes] | NDArray[Any], grouping: Grouping) -> dict[str, NDArray[Any]]:
    """Return the values of the key columns: integers, booleans, text, or times where truncated."""
    columns: list[list[Any]] = [[] for _ in grouping.columns]
    for first in range(0, len(labels), _AT_ONCE):
        some = labels[first : first + _AT_ONCE]
        texts = [label.decode() if isinstance(label, bytes) else label for label in some]
        keys = json.loads(f"[{','.join(texts)}]")
        for values, more in zip(columns, zip(*keys, strict=True), strict=True):
            values.extend(more)
    found: dict[str, NDArray[Any]] = {}
    for name, time, values in zip(grouping.columns, grouping.times, columns, strict=True):
        if time is not None:
            found[name] = np.array(values, dtype=f"datetime64[{time}]").astype(
                "datetime64[s]" if time == "h" else "datetime64[D]"
            )
        elif values and all(isinstance(value, bool) for value in values):
            found[name] = np.array(values, dtype=np.bool_)
        elif values and all(type(value) is int for value in values):
            # numpy would make floats of numbers of which some are in int64 and some above it
            found[name] = np.array(values, dtype=np.int64 if max(values) < 1 << 63 else np.uint64)
        else:
            found[name] = np.array(values, dtype=object)
    return found
