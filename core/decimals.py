"""Grid points in data units without the binary digits that float64 puts behind their decimals."""

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SURE = 10**14  # up to here sums and products of float64 round to the right whole number
_PLACES = 22  # most decimals: 10^22 is the last power of ten that float64 holds
_NEAR = 1e-9  # part of a step within which a value is taken for a grid point, or more far from 0


def with_decimals(
    values: ArrayLike, steps: ArrayLike, exact: Sequence[float], largest: float
) -> NDArray[np.float64]:
    """Return values, of which those of whole steps have no more decimals than some exact numbers.

    10521 steps of 0.01 are 105.21000000000001 in float64, and 105.21 here. Where the exact numbers have too
    many decimals for float64, such as a third, all values stay.

    Args:
        values: in data units.
        steps: of the same shape, what they are in steps.
        exact: lower bounds and step, of which values of whole steps are made.
        largest: no value is further from 0.
    """
    numbers = [Decimal(repr(number)).normalize() for number in exact]
    places = max(0, *(-int(number.as_tuple().exponent) for number in numbers))
    if places > _PLACES or largest * 10**places > _SURE:
        return np.asarray(values)
    rounded = np.rint(np.asarray(values) * 10.0**places) / 10.0**places
    return np.where(np.rint(steps) == steps, rounded, values)


def first_from(value: float, lower: float, step: float, extent: int) -> int:
    """Return the first of 0, ..., `extent` whose grid point is not below a value; `extent` + 1 if none is."""
    if math.isinf(value):
        return extent + 1 if value > 0 else 0
    if float(lower).is_integer() and float(step).is_integer():  # so are all grid points
        return min(max(-((int(lower) - math.ceil(value)) // int(step)), 0), extent + 1)
    return math.ceil(min(max((value - lower) / step - _slack(value, lower, step), 0.0), extent + 1.0))


def last_up_to(value: float, lower: float, step: float, extent: int) -> int:
    """Return the last of 0, ..., `extent` whose grid point is not above a value; -1 if none is."""
    if math.isinf(value):
        return extent if value > 0 else -1
    if float(lower).is_integer() and float(step).is_integer():
        return min(max((math.floor(value) - int(lower)) // int(step), -1), extent)
    return math.floor(max(min((value - lower) / step + _slack(value, lower, step), float(extent)), -1.0))


def _slack(value: float, lower: float, step: float) -> float:
    """Return what float64 may have rounded off the number of steps between two numbers, and a little."""
    return min(1 / 4, max(_NEAR, 2 * (math.ulp(value) + math.ulp(lower)) / step))
