"""The exponential function with the same bits on every processor.

Libraries take another kernel where the processor has wider instructions, and their last bits differ. Then the
rows of other people, which move to another worker where one row is missing, would change what they add up to.
"""

from decimal import Decimal
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PARTS = 64  # of 1, between two entries of the table
_FURTHEST = 64  # e^-64 is 1.6e-28
_POWERS = 5


def falling(x: Floats) -> Floats:
    """Return e^-x of numbers from 0 on, each a function of its own number alone; beyond 64 that of 64.

    With x = i / 64 + f, of which f is at most 1/128, this is an entry of a table times a polynomial of
    Taylor's series. Relative errors are below 1e-15.
    """
    x = np.minimum(x, _FURTHEST)
    place = np.rint(x * _PARTS)
    f = place / _PARTS - x
    sum_ = np.ones_like(f)
    for power in range(_POWERS, 0, -1):
        sum_ *= f
        sum_ /= power
        sum_ += 1.0
    sum_ *= np.take(_table(), place.astype(np.int32))
    return sum_


@cache
def _table() -> Floats:
    """Return e^-(i / 64), shape (64 * 64 + 1,). Decimals are rounded as they should on every machine."""
    wholes = [float((-Decimal(i)).exp()) for i in range(_FURTHEST + 1)]
    parts = [float((-Decimal(i) / _PARTS).exp()) for i in range(_PARTS)]
    return np.outer(wholes, parts).ravel()[: _FURTHEST * _PARTS + 1]
