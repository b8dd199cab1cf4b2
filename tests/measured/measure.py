"""What every measure has: the truth about one database, and how far an answer is from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Points
from tests.measured.cases import Case

Figures = Mapping[str, float]
"""Name of a promise to what was measured. The promise holds if that is at most what is promised."""

INFINITE = math.inf


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
        """Return what was measured for the promises that this answer can keep or break."""
        raise NotImplementedError

    @cached_property
    def _sorted(self) -> NDArray[np.int64]:
        return np.sort(self.points, axis=0)

    def _off(self, step: int, wanted: float, axis: int = 0) -> float:
        """Return the distance of a wanted rank from all ranks of a point of an axis."""
        low = np.searchsorted(self._sorted[:, axis], step, side="left")
        high = np.searchsorted(self._sorted[:, axis], step, side="right")
        return float(max(0.0, low - wanted, wanted - high))
