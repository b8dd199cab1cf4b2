"""Calibrate noise whose scale follows a smooth bound: the density and the smoothness with the least error."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from core.errors import InvalidValue
from core.mechanisms.admissible import ROUNDING, Admissible, Density, tail_of

Choice = Literal["auto", "cauchy", "student", "laplace"]

_LEAST_SHARE = 1e-12  # below, noise could be infinite

SHARE = f"it must be 0, or at least {_LEAST_SHARE} and below 1"
"""What `is_share` allows."""

MOST_EPSILON = 100.0
"""More is not spent: alpha grows like e^(epsilon / 2), and no noise is left."""


def check_noise(noise: str, scale_share: float) -> None:
    """Check parameters of noise by smooth sensitivity: its density, and the part of epsilon for its scale.

    Raises:
        InvalidValue: one of them is out of range.
    """
    if noise not in get_args(Choice):
        raise InvalidValue("noise", repr(noise), "it must be auto, cauchy, student or laplace")
    if not is_share(scale_share):
        raise InvalidValue("scale_share", scale_share, SHARE)


def is_share(share: float) -> bool:
    """Say whether a part of epsilon is one that may be spent: see `SHARE`."""
    return share == 0 or _LEAST_SHARE <= share < 1


def heavy_tailed(density: Density, beta: float, epsilon: float, axes: int = 1) -> Admissible | None:
    """Cauchy or Student noise that spends `epsilon` at smoothness `beta`; None where beta takes it all.

    It has the largest alpha that `core.mechanisms.admissible.heavy_tailed_epsilon` allows.
    """
    rounded = beta + 2 * ROUNDING
    if axes > 1:
        own = epsilon if density == "cauchy" else (epsilon - axes * rounded) / 2
        first = own - (axes - 1) * rounded
        alpha = math.sqrt(max(0.0, (first - rounded) * (first + rounded))) if first > 0 else 0.0
    else:
        own, most = (epsilon, epsilon) if density == "cauchy" else ((epsilon - rounded) / 2, epsilon / 2)
        room = math.sinh((own + rounded) / 2) * math.sinh((own - rounded) / 2)  # half of cosh own - cosh beta
        alpha = min(2 * math.sinh(most / 2), 2 * math.sqrt(math.exp(rounded) * max(0.0, room)))
    if alpha <= 0:
        return None
    return Admissible(what="value", density=density, alpha=alpha / (1 + ROUNDING), beta=beta, axes=axes)


def laplace_noise(beta: float, epsilon: float, delta: float) -> Admissible | None:
    """Laplace noise that spends (epsilon, delta) at smoothness `beta`; None where beta takes it all."""
    rounded = beta + 2 * ROUNDING
    if rounded >= epsilon:
        return None
    # e^-z1 + e^-z2 = 2 e^(-(epsilon + beta) / rate) cosh(alpha / rate), solved for alpha
    rate = math.expm1(rounded)
    log_cosh = math.log(delta * (1 - ROUNDING)) - math.log(-math.expm1(-rounded)) + (epsilon + rounded) / rate
    if log_cosh <= 0:
        return None
    alpha = rate * (log_cosh + math.log1p(math.sqrt(-math.expm1(-2 * log_cosh))))
    alpha = min(alpha, epsilon, (epsilon - rounded) * math.exp(rounded))
    alpha /= 1 + ROUNDING
    return Admissible(what="value", density="laplace", alpha=alpha, beta=beta, epsilon=epsilon)


def calibrate_noise(
    what: str,
    choice: Choice,
    epsilon: float,
    delta: float,
    failure: float,
    doubling: float,
    *,
    axes: int = 1,
    changes: int = 1,
    times: int = 1,
) -> Admissible:
    """Pick the density and the smoothness with the least error, from public figures alone.

    The local sensitivity within k changes is expected to grow like 1 + k / doubling, as it does, with
    doubling 1, for a quantile of evenly spread records. Then S = max_k e^(-beta k) (1 + k / doubling), and
    what is least is S / alpha times the quantile of |Z| at 1 - failure. Any choice is private.

    Args:
        what: the number that gets the noise.
        choice: a density, or auto.
        epsilon: to spend for one change, by one draw.
        delta: to spend for one change, by one draw of Laplace noise.
        failure: probability that the noise exceeds what is minimized.
        doubling: number of changes that double the local sensitivity.
        axes: coordinates of f; Laplace noise is offered for 1.
        changes: see `core.draws.Draw`.
        times: see `core.draws.Draw`.

    Raises:
        InvalidValue: Laplace noise is asked for without delta or beyond one dimension, or epsilon is small.
    """
    densities: Sequence[Density] = [d for d in get_args(Density) if choice in ("auto", d)]
    if delta <= 0 or axes > 1:
        densities = [d for d in densities if d != "laplace"]
    if not densities:
        raise InvalidValue("noise", choice, "it needs a delta above 0 and a single number to noise")
    best, least = None, math.inf
    epsilon = min(epsilon, MOST_EPSILON)
    for density in densities:
        tail = tail_of(density, failure)
        for beta in (epsilon * np.geomspace(1e-3, 1, 200)).tolist():
            if density == "laplace":
                noise = laplace_noise(beta, epsilon, delta)
            else:
                noise = heavy_tailed(density, beta, epsilon, axes)
            error = math.inf if noise is None else _growth(beta * doubling) * tail / noise.alpha
            if error < least:
                best, least = noise, error
    if best is None:
        raise InvalidValue("epsilon", epsilon, "it is too small for noise by smooth sensitivity")
    return replace(best, what=f"{what}, {best.density}", changes=changes, times=times)


def _growth(x: float) -> float:
    """Return the max over k >= 0 of e^(-beta k) (1 + k / doubling), for x = beta doubling."""
    return 1.0 if x >= 1 else math.exp(x - 1) / x
