"""Made-up records of several shapes, on which promises, automatic choices and jobs are tried."""

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points

SHAPES = ("uniform", "ties_50", "ties_92", "ties_100", "heavy", "clumps")
"""Even; half, most or all records at one point; a heavy tail; two narrow clumps far from one another."""


def records(shape: str, n: int, grid: Grid, rng: np.random.Generator) -> Points:
    """Return `n` records of a shape, grid steps, shape (n, d).

    Args:
        shape: one of `SHAPES`.
        n: how many.
        grid: the universe.
        rng: where they come from.
    """
    extents = np.asarray(grid.extents, dtype=np.float64)
    spread = unit_records(shape, (n, len(extents)), rng)
    return np.minimum((spread * (extents + 1)).astype(np.int64), np.asarray(grid.extents))


def records_for(task: str, shape: str, n: int, grid: Grid, rng: np.random.Generator) -> Points:
    """Return `n` records of a shape that suit a task; see `records`.

    For threshold, 9 in 10 labels say whether a value is above the middle. For minimum, all records lie in the
    middle half of the domain, because an extreme that is a bound of the domain would be public.
    """
    points = records(shape, n, grid, rng)
    if task == "minimum":
        return points // 2 + np.asarray(grid.extents) // 4
    if task == "threshold":
        middle = np.median(points[:, 0]) if n else 0
        points[:, 1] = grid.extents[1] * ((points[:, 0] >= middle) ^ (rng.random(n) < 0.1))
    return points


def unit_records(shape: str, size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return records of a shape in the unit cube, shape `size`."""
    n, axes = size
    if shape == "heavy":
        return np.minimum((1 + rng.pareto(0.7, size)) * 1e-4, 1.0)
    if shape == "clumps":
        side = rng.random((n, 1)) < 0.6
        return np.clip(np.where(side, 0.03, 0.9) + rng.normal(0, 1e-4, size), 0, 1)
    tied = {"uniform": 0.0, "ties_50": 0.5, "ties_92": 0.92, "ties_100": 1.0}[shape]
    at = rng.random((n, 1)) < tied
    place = 0.0 if shape == "ties_92" else 1 / 3
    return np.where(at, place, rng.random((n, axes)))
