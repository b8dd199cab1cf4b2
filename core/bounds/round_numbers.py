"""The values that a bound may have: round numbers of both signs, evenly spread in magnitude."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid

DIGITS = (10, 15, 20, 30, 40, 50, 60, 80)
"""Tenths of the first number of each decade. Neighbors differ by a factor of at most 1.5."""


def round_numbers(grid: Grid, axis: int) -> NDArray[np.int64]:
    """Return the values that a bound of an axis may have, in grid steps, ascending, shape (m,), m >= 2.

    These are 0 and the round numbers of both signs within the domain, moved to the nearest grid point, and
    both ends of the domain. They follow from the domain alone.
    """
    low, high = Fraction(grid.lower[axis]), Fraction(grid.upper[axis])
    step, extent = Fraction(grid.step), grid.extents[axis]
    decades = range(math.floor(math.log10(step)), math.ceil(math.log10(max(-low, high))) + 1)
    sizes = [Fraction(digits, 10) * Fraction(10) ** decade for decade in decades for digits in DIGITS]
    values = (sign * size for size in (Fraction(0), *sizes) for sign in (-1, 1))
    inside = {round((value - low) / step) for value in values if low <= value <= high}
    return np.array(sorted({0, extent, *(at for at in inside if 0 <= at <= extent)}), dtype=np.int64)
