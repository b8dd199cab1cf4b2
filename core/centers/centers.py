"""The state that the rounds of k-centers hand on, and the answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.centers.space import Space
from core.domain import Grid

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Centers:
    """Centers, how far from them records may pull, and how many records are nearest to each.

    Args:
        space: the universe.
        positions: shape (k, d), units about the middle.
        spread: shape (k,), root of the mean squared distance of a center's records, in units, as estimated.
        counts: shape (k,), noisy numbers of records nearest to each center.
    """

    space: Space
    positions: Ints
    spread: Floats
    counts: Ints

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return the centers in data units and the counts, none below 0."""
        return {
            "centers": self.space.restore(self.positions).tolist(),
            "counts": np.maximum(self.counts, 0).tolist(),
        }
