"""What k-means and k-median answer and promise, and the state that their rounds hand on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.centers.space import Space
from core.domain import Grid

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Promises:
    """What every method of the k-centers promises, in records.

    Args:
        count_error: every count is off by at most that, if each record counts for its nearest center alone.
        smallest_group: the noise moves the center of so many records by about a tenth of the radius within
            which records pull it, and less for more; None where the method says nothing of it.
    """

    count_error: int
    smallest_group: int | None = None


@dataclass(frozen=True)
class Result:
    """The answer: the centers in data units, and the number of records nearest to each."""

    centers: tuple[tuple[float, ...], ...]
    counts: tuple[int, ...]


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

    def result(self, grid: Grid) -> Result:
        """Return the centers in data units and the counts, none below 0."""
        restored = self.space.restore(self.positions).tolist()
        return Result(tuple(map(tuple, restored)), tuple(np.maximum(self.counts, 0).tolist()))
