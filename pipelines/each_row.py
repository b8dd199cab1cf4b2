"""The only column of jobs that only count: it is 1 in every row, so no row is left out for its values."""

from collections.abc import Mapping, Sequence
from typing import Any

EACH_ROW = "each row"
"""The name of the column."""


def counts_alone(columns: Sequence[str] | None, derive: Mapping[str, Any] | None) -> bool:
    """Return whether a job or a release only counts, so that it does not matter which row of a unit is kept.

    Args:
        columns: its columns.
        derive: the expressions of its derived columns.
    """
    return tuple(columns or ()) == (EACH_ROW,) and (derive or {}).get(EACH_ROW) == "1"
