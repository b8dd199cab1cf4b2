"""What every measure has: the truth about one database, and how far an answer is from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.grouping import Contributions

Figures = Mapping[str, float]
"""Name of a promise to what was measured. The promise holds if that is at most what is promised."""

INFINITE = math.inf

_ROUNDED = 1e-6  # records by which p n may be off because it is a float


class Case(Protocol):
    """The public part of what is measured."""

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def grid(self) -> Grid:
        """The universe."""

    @property
    def params(self) -> Mapping[str, Any]:
        """The task's parameters; those that are left out have their defaults."""

    @property
    def relation(self) -> str:
        """Name of the neighbor relation."""

    @property
    def bounds(self) -> Contributions:
        """How many rows a unit has, and whether their sum is clamped."""


def units_of(points: Points, bounds: Contributions) -> NDArray[np.uint64]:
    """Return the unit of each record, shape (n,): as many as a unit may have, one after the other."""
    return np.arange(len(points), dtype=np.uint64) // np.uint64(bounds.rows)


@dataclass(frozen=True)
class Measure:
    """The truth about one database.

    Args:
        case: the setting.
        points: the records, grid steps, shape (n, d).
    """

    case: Case
    points: Points

    @property
    def least(self) -> float:
        """Errors below this count as this: smaller ones matter to nobody."""
        return 1.0

    @property
    def most(self) -> float:
        """The largest value that a promised figure can have; a promise from there on says nothing."""
        return INFINITE

    def error(self, found: Any) -> float:
        """Return the error of an answer, in the unit that all methods of the task share."""
        raise NotImplementedError

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """Return what was measured for the promises that this answer can keep or break; here none."""
        return {}

    @cached_property
    def _sorted(self) -> NDArray[np.int64]:
        return np.sort(self.points, axis=0)

    def _off(self, step: int, wanted: float, axis: int = 0, to: int | None = None) -> float:
        """Return the distance of a wanted rank from all ranks of an axis's point, or of those up to `to`."""
        low = np.searchsorted(self._sorted[:, axis], step, side="left")
        high = np.searchsorted(self._sorted[:, axis], step if to is None else to, side="right")
        return float(max(0.0, low - wanted, wanted - high))

    def _off_or_missed(
        self, step: int, interval: tuple[int, int] | None, wanted: float, axis: int = 0
    ) -> float:
        """Return `_off`; infinite if an interval was released and none of its points has the wanted rank."""
        if interval is not None and self._off(interval[0], wanted, axis, interval[1]) > _ROUNDED:
            return INFINITE
        return self._off(step, wanted, axis)
