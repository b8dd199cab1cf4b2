"""Grid points as words of 64 bits: two coordinates below 2^32 make a word."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.sampling import U64


def stored(grid: Grid) -> str:
    """Return the integer type of stored coordinates: 8 bytes only on grids that need them."""
    return "<u4" if max(grid.extents) < 1 << 32 else "<u8"


def number_of_words(grid: Grid) -> int:
    """Return the number of words of a point."""
    return grid.dimension if stored(grid) == "<u8" else (grid.dimension + 1) // 2


def point_words(points: Points, grid: Grid) -> list[U64]:
    """Return the words of points, shape (n,) each. Different points have different words.

    Args:
        points: shape (n, d), grid steps.
        grid: the universe.
    """
    axes = [points[:, axis].astype(np.uint64) for axis in range(grid.dimension)]
    if stored(grid) == "<u4":
        for low, high in zip(axes[::2], axes[1::2], strict=False):
            low |= high << np.uint64(32)
        return axes[::2]
    return axes


def points_of(words: Sequence[U64], grid: Grid) -> NDArray[np.unsignedinteger]:
    """Return the points of words, shape (n, d), as integers of `stored`.

    Args:
        words: shape (n,) each, see `point_words`.
        grid: the universe.
    """
    points = np.empty((len(words[0]), grid.dimension), stored(grid), order="F")
    for axis in range(grid.dimension):
        if points.itemsize == 8:
            points[:, axis] = words[axis]
        else:
            word = words[axis // 2]
            points[:, axis] = word >> np.uint64(32) if axis % 2 else word & np.uint64(0xFFFFFFFF)
    return points
