"""Labels of groups: the canonical JSON of the values of a key."""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Literal

Truncate = Literal["hour", "day", "week", "month"]
"""What a time is cut to. A week is named by its first day, a Monday."""

KeyValue = bool | int | str

UNITS: dict[Truncate, str] = {"hour": "h", "day": "D", "week": "D", "month": "M"}
"""numpy's units of time. Its own weeks begin on Thursdays, so a week is a day."""

LONGEST = 256
"""Most bytes of a label. Rows with longer keys are left out, so that no key takes much memory."""


_AT_ONCE = 1 << 14
"""Labels that are parsed at one time."""


def label_of(values: Sequence[KeyValue]) -> str:
    """Return the label of a key: the canonical JSON of its values."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))


def product_of(lists: Sequence[Sequence[KeyValue]], most: int) -> list[str]:
    """Return the labels of all combinations of values, one list for each key column.

    Raises:
        ValueError: there are more than `most`.
    """
    many = math.prod(len(values) for values in lists)
    if many > most:
        raise ValueError(f"group_by.keys has {many:,} combinations: there may be at most {most:,}.")
    return [label_of(values) for values in itertools.product(*lists)]


def values_of(labels: Sequence[str]) -> Iterator[list[list[KeyValue]]]:
    """Yield the values of keys, some keys at a time: those of all would take much memory."""
    for first in range(0, len(labels), _AT_ONCE):
        yield json.loads(f"[{','.join(labels[first : first + _AT_ONCE])}]")
