"""What k-means and k-median release and promise, and the state that passes between their rounds."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.centers.space import Space
from core.domain import Grid
from core.marks import Length, PointBetween

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FINER = 3
"""Decimals of a released coordinate beyond those of the grid step."""


@dataclass(frozen=True)
class Promises:
    """What every method of the k-centers promises, in records.

    Args:
        count_error: every count is off by at most this, if each record counts only for its nearest center.
            None where the counts are of the records of parts of a policy.
        smallest_group: if so many records belong to a center, the noise is expected to move the center by
            about a tenth of the typical distance between it and its records, where that distance is a
            twentieth of the domain's width or more. More records make the noise smaller, and narrower groups
            make it larger beside the distance. None where the method says nothing about it.
    """

    count_error: int | None
    smallest_group: int | None = None


@dataclass(frozen=True)
class Result:
    """The answer.

    Args:
        centers: in data units, the one with the most records first.
        counts: number of records nearest to each center.
        noise: standard deviation of the noise in each coordinate of a center, data units. It is estimated
            from noisy counts, and infinite where these say too little. In runs on made-up groups it was 0.8
            to 1.5 times what it really is, most where groups are far apart. None where the method does not
            estimate it.
    """

    centers: tuple[PointBetween, ...]
    counts: tuple[int, ...]
    noise: tuple[Length, ...] | None = None


@dataclass(frozen=True, eq=False)
class Centers:
    """Centers, the spread of the records about them, and how many records are nearest to each.

    Args:
        space: the universe.
        positions: shape (k, d), units about the middle.
        spread: shape (k,), estimated root mean square distance of a center's records from it, in units.
        counts: shape (k,), noisy numbers of records nearest to each center.
        noise: shape (k,), see `Result.noise`, in units; None where it is not estimated.
    """

    space: Space
    positions: Ints
    spread: Floats
    counts: Ints
    noise: Floats | None = None

    def result(self, grid: Grid) -> Result:
        """Return the centers in data units and the counts, none below 0.

        Coordinates are rounded to decimals, because float64 adds digits that mean nothing.
        """
        order = np.argsort(-self.counts, kind="stable")
        restored = self.space.restore(self.positions[order])
        if grid.geography is None:
            restored = np.round(restored, max(0, math.ceil(-math.log10(grid.step))) + _FINER)
        counts = tuple(np.maximum(self.counts[order], 0).tolist())
        if self.noise is None:
            return Result(tuple(map(tuple, restored.tolist())), counts)
        noise = tuple(self.space.length(each) for each in self.noise[order].tolist())
        return Result(tuple(map(tuple, restored.tolist())), counts, noise)
