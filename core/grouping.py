"""Groups of records: their key columns and keys, and what one unit may contribute to them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidValue
from core.labels import Labels

MOST_KEYS = 1 << 22
"""Most public keys: each of them gets noise."""

_AT_ONCE = 1 << 14
"""Labels that are parsed at one time."""

TEXT = np.dtypes.StringDType()
"""The type of text in arrays."""

_LARGEST = 1 << 31
"""Most groups of a unit, and most rows of a unit in a group."""


@dataclass(frozen=True)
class Grouping:
    """Which groups there are.

    Args:
        columns: the key columns.
        labels: the public keys, all different; None where the keys are private.
        times: unit to which a key column is truncated (`D`, `h` or `M`), or None, one for each column.
    """

    columns: tuple[str, ...]
    labels: Labels | None
    times: tuple[str | None, ...]

    @property
    def private(self) -> bool:
        """Whether a group is only released where enough units are in it."""
        return self.labels is None


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
    """Return the values of the key columns: integers, booleans, text, or times where truncated.

    Text is in arrays of numpy's own, since a million objects of Python take several times as much memory.
    """
    columns = [[_column((), time)] if not len(labels) else [] for time in grouping.times]
    for first in range(0, len(labels), _AT_ONCE):
        some = labels[first : first + _AT_ONCE]
        texts = [label.decode() if isinstance(label, bytes) else label for label in some]
        keys = json.loads(f"[{','.join(texts)}]")
        for parts, time, values in zip(columns, grouping.times, zip(*keys, strict=True), strict=True):
            parts.append(_column(values, time))
    return {name: _joined(parts) for name, parts in zip(grouping.columns, columns, strict=True)}


def _column(values: Sequence[Any], time: str | None) -> NDArray[Any]:
    """Return some values of a key column."""
    if time is not None:
        kept = "datetime64[s]" if time == "h" else "datetime64[D]"
        return np.array(values, dtype=f"datetime64[{time}]").astype(kept)
    kinds = set(map(type, values))
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds == {int}:
        # numpy would make floats of numbers of which some are in int64 and some above it
        return np.array(values, dtype=np.int64 if max(values) < 1 << 63 else np.uint64)
    return np.array(values, dtype=TEXT if kinds == {str} else object)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return a key column of which there are parts."""
    kinds = {part.dtype for part in parts}
    if kinds == {np.dtype(np.int64), np.dtype(np.uint64)}:  # all are in uint64
        return np.concatenate(parts, dtype=np.uint64, casting="unsafe")
    return np.concatenate(parts if len(kinds) == 1 else [part.astype(object) for part in parts])
