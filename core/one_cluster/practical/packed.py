"""Cells of a few axes as integer keys, without collisions."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def pack(cells: Ints, bits: int) -> Ints:
    """Return the keys (n,) of cells (n, d) whose coordinates have `bits` bits, at most 63 together."""
    keys = cells[:, 0].copy()
    for axis in range(1, cells.shape[1]):
        keys |= cells[:, axis] << (axis * bits)
    return keys


def unpack(keys: Ints, bits: int, axes: int) -> Ints:
    """Return the cells (n, axes) that keys (n,) name."""
    return np.stack([(keys >> (axis * bits)) & ((1 << bits) - 1) for axis in range(axes)], axis=1)
