"""Smooth bounds from the local sensitivity within k changes, truncated where nothing can matter."""

import math
from collections.abc import Callable

FLOOR = 2.0**-20
"""Least smooth sensitivity, in units of the answer.

The maximum with a constant is as smooth, and no exponential underflows.
"""


def reach(global_sensitivity: float, beta: float) -> int:
    """Fewest changes k with global_sensitivity e^(-beta k) <= `FLOOR`: what takes more cannot matter."""
    return max(0, math.ceil(math.log(max(global_sensitivity, FLOOR) / FLOOR) / beta))


def smooth_bound(local: Callable[[int, float], float], global_sensitivity: float, beta: float) -> float:
    """Compute max over k of e^(-beta k) A(k), at least `FLOOR`: a beta-smooth bound of the local sensitivity.

    A(k), the largest local sensitivity within k changes, or any bound of it at most `global_sensitivity` that
    obeys A(k)(x) <= A(k + 1)(x') for neighbors x, x'. Then A(k)(x) e^(-beta k) <= e^beta A(k + 1)(x')
    e^(-beta (k + 1)), so S(x) <= e^beta S(x'). Terms are left out only once global_sensitivity e^(-beta k) is
    no more than what has been found, which changes no maximum. Source: Nissim, Raskhodnikova and Smith
    2007, Definition 2.2 and Section 3.

    Args:
        local: A(k) for (k, enough), from k = 0 on; where A(k) is at most `enough`, anything at most that
            will do.
        global_sensitivity: bound of A.
        beta: smoothness.
    """
    best, k = FLOOR, 0
    while global_sensitivity * math.exp(-beta * k) > best:
        weight = math.exp(-beta * k)
        best = max(best, weight * local(k, best / weight))
        k += 1
    return best
