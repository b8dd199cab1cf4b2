"""What bounds promise and release."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from core.domain import Grid
from core.marks import Mark, Position


@dataclass(frozen=True)
class Promises:
    """What is promised of every column, for all columns at once.

    Args:
        records_outside: at most so many records more than the share `outside` of all lie outside of the
            bounds of a column, on any data. A value that the domain moved to its end counts as that end.
    """

    records_outside: int


@dataclass(frozen=True)
class ColumnBounds:
    """The bounds of one column, in data units."""

    lower: Position
    upper: Position


@dataclass(frozen=True)
class Result:
    """The answer, in data units.

    Args:
        columns: the bounds of each column, in the order of the job's columns.
    """

    columns: Annotated[tuple[ColumnBounds, ...], Mark.AXES]


@dataclass(frozen=True)
class FoundBounds:
    """The released bounds, lower below upper.

    Args:
        lower: of each column, grid steps.
        upper: the same.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    def result(self, grid: Grid) -> Result:
        """Return the bounds in data units."""
        ends = grid.restore(np.array([self.lower, self.upper])).tolist()
        return Result(tuple(ColumnBounds(low, high) for low, high in zip(*ends, strict=True)))
