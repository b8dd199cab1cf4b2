"""Smooth bounds of the local sensitivity, from the local sensitivity within k changes."""

import itertools
import math
from collections.abc import Callable, Iterable

FLOOR = 2.0**-20
"""Least smooth sensitivity, in units of the answer.

The maximum with a constant is as smooth, and no exponential underflows.
"""


def reach(global_sensitivity: float, beta: float) -> int:
    """Return the fewest changes k with global_sensitivity e^(-beta k) <= `FLOOR`; more cannot matter."""
    return max(0, math.ceil(math.log(max(global_sensitivity, FLOOR) / FLOOR) / beta))


def smooth_bound(
    local: Callable[[int, float], float],
    global_sensitivity: float,
    beta: float,
    changes: Iterable[int] | None = None,
) -> float:
    """Compute max over k of e^(-beta k) A(k), at least `FLOOR`: a beta-smooth bound of the local sensitivity.

    A(k) is the largest local sensitivity within k changes, or any bound of it that is at most
    `global_sensitivity` and has A(k)(x) <= A(k + 1)(x') for all neighbors x and x'.

    Proof of smoothness. A(k)(x) e^(-beta k) <= e^beta A(k + 1)(x') e^(-beta (k + 1)), so the maximum S has
    S(x) <= e^beta S(x'). Terms are left out only once global_sensitivity e^(-beta k) is at most the largest
    term so far, so the maximum stays the same. Source: Nissim, Raskhodnikova and Smith 2007, Definition 2.2
    and Section 3.

    Args:
        local: returns A(k) for (k, enough); it is called for ascending k. Where A(k) is at most `enough`, it
            may return any number of at most `enough`.
        global_sensitivity: bound of A.
        beta: smoothness.
        changes: ascending numbers k, at one of which the maximum is attained; all of 0, 1, ... if None.
    """
    best = FLOOR
    for k in itertools.count() if changes is None else changes:
        weight = math.exp(-beta * k)
        if global_sensitivity * weight <= best:
            break
        best = max(best, weight * local(k, best / weight))
    return best
