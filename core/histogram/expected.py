"""The error of a count that is to be expected on public, made-up tables: methods are compared by it."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from core.task import geometric_mean

Floats = NDArray[np.float64]

SIZES = np.geomspace(500, 1_000_000, 12)
"""Numbers of records of the made-up tables."""

TIED = 0.9
"""Part of the records that lies in one cell of a tied table."""

_RANKS = 200  # ranks of a skewed table that are told apart


def expected_error(cells: int, variance: float, threshold: int = 0) -> float:
    """Return the geometric mean, over made-up tables, of the error of a count, in records.

    The error of a table is the root mean square over the cells that hold records. A count below the threshold
    is missing in the release, which counts as 0, so its error is the count. Every other count has noise.

    Args:
        cells: number of all cells.
        variance: of the noise.
        threshold: smallest count that is released; 0 where all are.
    """
    errors = []
    for share, number in _shapes(cells):
        for size in SIZES:
            counts, occupied = _occupied(share * size, number)
            squared = np.where(counts < threshold, counts**2, variance)
            errors.append(math.sqrt(float(squared @ occupied / occupied.sum())))
    return geometric_mean(errors)


def _shapes(cells: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield three shapes of tables: parts of all records, and how many cells hold each of these parts.

    - Even: all cells are alike.
    - Skewed: the cell of rank r has a part proportional to 1 / r.
    - Tied: one cell has most of the records, and the others lie evenly over all cells.
    """
    yield np.array([1 / cells]), np.array([float(cells)])
    first = np.unique(np.floor(np.geomspace(1, cells + 1, _RANKS)))
    many = np.diff(first) if cells > 1 else np.ones(1)
    middle = first[: len(many)] + (many - 1) / 2
    yield 1 / middle / (many / middle).sum(), many
    rest = (1 - TIED) / cells
    yield np.array([TIED + rest, rest]), np.array([1.0, cells - 1.0])


def _occupied(counts: Floats, cells: Floats) -> tuple[Floats, Floats]:
    """Return the mean counts of the cells that hold records, and how many cells do.

    Args:
        counts: mean counts of cells, of which each is a Poisson variable.
        cells: how many cells there are of each.
    """
    chance = -np.expm1(-counts)
    return counts / chance, cells * chance
