"""Noise whose scale may follow the data: calibrations for smooth sensitivity, and exact integer draws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from scipy import stats

Kind = Literal["cauchy", "student", "laplace"]
Choice = Literal["auto", "cauchy", "student", "laplace"]

ROUNDING = 1e-9
"""Relative error that calibrations allow a smooth sensitivity and a scale to have; true errors are <
1e-13."""

_MOST_EPSILON = 100.0  # more is not spent: alpha grows like e^(epsilon / 2), and no noise is left
_WORD = 32  # bits per refinement


class Uniform(Protocol):
    """A source of uniform integers."""

    def below(self, bound: int) -> int:
        """Return an integer uniform in 0, ..., bound - 1; the bound may be of any size."""


@dataclass(frozen=True)
class Admissible:
    """Noise Z such that f(x) + S(x) / alpha Z is private where S is a beta-smooth bound of f.

    Z has, up to a constant, one of the densities

        cauchy   1 / (1 + z^2),    student  1 / (1 + z^2)^2  (Student's t_3 over sqrt(3)),    laplace  e^-|z|.

    Between neighbors x, x' the scale S / alpha moves by a factor of at most e^beta, and f by at most
    min(S(x), S(x')), alpha times the smaller scale. `heavy_tailed` and `laplace_noise` have the largest alpha
    for which that is (epsilon, delta)-private.

    What is released is f(x) + round(S(x) / alpha Z) for an integer f(x): the nearest integer to the ideal
    f(x) + S(x) / alpha Z, a function of it, hence as private. `draw` samples that integer exactly, so no
    rounding error is released and none is to be charged; floats only enter by the scale, whose relative error
    is below `ROUNDING` and is charged in `alpha` and `beta`.

    Args:
        kind: density.
        alpha: largest L1 move of f in units of the scale.
        beta: smoothness of S.
        epsilon: pure part of the guarantee.
        delta: additive part; 0 unless laplace.
    """

    kind: Kind
    alpha: float
    beta: float
    epsilon: float
    delta: float = 0.0

    def scale(self, smooth_sensitivity: float) -> float:
        """Scale of the noise for a smooth sensitivity."""
        return smooth_sensitivity / self.alpha

    def tail(self, failure: float) -> float:
        """What |Z| exceeds with probability `failure`."""
        return _tail(self.kind, failure)

    def draw(self, scale: float, source: Uniform) -> int:
        """Draw round(scale Z), exactly.

        Heavy tails by the ratio of uniforms (Kinderman and Monahan 1977): (u, v) uniform in the half disk
        {0 <= u, u^2 + v^2 <= 1} makes v / u standard Cauchy, in the disk {u^2 + v^2 <= u} it has density
        proportional to 1 / (1 + z^2)^2. Binary digits of u and |v| are drawn until the dyadic square that
        they leave is inside or outside of the region, and all ratios in it round to one integer. Laplace: the
        nearest integer of an exponential E is 0 with probability 1 - e^(-1/(2 scale)), and geometric after;
        Bernoulli(e^-x) by Canonne, Kamath and Steinke (2020), Algorithms 1 and 2.

        Args:
            scale: finite, above 0; taken as the rational number that the float is.
            source: of uniform integers.
        """
        numerator, denominator = scale.as_integer_ratio()
        if self.kind == "laplace":
            magnitude = _rounded_exponential(numerator, denominator, source)
        else:
            magnitude = _rounded_ratio(self.kind, numerator, denominator, source)
        return magnitude if source.below(2) else -magnitude


def heavy_tailed(kind: Kind, beta: float, epsilon: float, dimension: int = 1) -> Admissible | None:
    """Cauchy or Student noise that spends `epsilon` at smoothness `beta`; None where beta takes it all.

    In one dimension, exactly. Let f and f' be D apart and the scales s and s'. The Cauchy density s / ((y -
    f)^2 + s^2) is 1 over the quadratic form of (y, 1) with the matrix B = [[1, -f], [-f, f^2 + s^2]] / s of
    determinant 1. The largest ratio of two of them is the larger eigenvalue e^d of B^-1 B', whose trace is
    e^d + e^-d:

        cosh d = (D^2 + s^2 + s'^2) / (2 s s'),

    the hyperbolic distance of (f, s) and (f', s'). The Student density is s^3 / ((y - f)^2 + s^2)^2: the
    ratio is at most e^(2 d + |ln(s' / s)|). Let s = 1 be the smaller scale, D = alpha and s' = e^l with l
    <= beta. d is convex in l, as the distance to a point that moves along a line, so l = 0 or l = beta is
    the worst:

        epsilon = max(2 arsinh(alpha / 2), arcosh(cosh beta + alpha^2 e^-beta / 2))             (cauchy),
        epsilon = max(4 arsinh(alpha / 2), 2 arcosh(cosh beta + alpha^2 e^-beta / 2) + beta)    (student).

    Nissim, Raskhodnikova and Smith (2007) ask alpha, beta <= epsilon / 6 of Cauchy noise.

    In m > 1 dimensions f moves by at most alpha times the smaller scale in L1, and each coordinate has noise
    of its own. The path x = D u / l, s = e^u, 0 <= u <= l, has a hyperbolic length of at most the root of D^2
    + l^2, so that d is no more. Summed over coordinates that is convex in how the move is split, and largest
    where one coordinate has all of it; and it grows with l. So with d = sqrt(alpha^2 + beta^2) + (m - 1) beta

        epsilon = d                (cauchy),
        epsilon = 2 d + m beta     (student).
    """
    rounded = beta + 2 * ROUNDING
    if dimension > 1:
        own = epsilon if kind == "cauchy" else (epsilon - dimension * rounded) / 2
        first = own - (dimension - 1) * rounded
        alpha = math.sqrt(max(0.0, (first - rounded) * (first + rounded))) if first > 0 else 0.0
    else:
        own, most = (epsilon, epsilon) if kind == "cauchy" else ((epsilon - rounded) / 2, epsilon / 2)
        room = math.sinh((own + rounded) / 2) * math.sinh((own - rounded) / 2)  # half of cosh own - cosh beta
        alpha = min(2 * math.sinh(most / 2), 2 * math.sqrt(math.exp(rounded) * max(0.0, room)))
    return Admissible(kind, alpha / (1 + ROUNDING), beta, epsilon) if alpha > 0 else None


def laplace_delta(alpha: float, beta: float, epsilon: float) -> float:
    """Smallest delta at which Laplace noise at (alpha, beta) is (epsilon, delta)-private; infinite out of
    range.

    In units of the scale of x, P has density h(z) = e^-|z| / 2 and Q, of the neighbor, e^l h(e^l (z + D))
    with |l| <= beta and |D| <= alpha min(1, e^-l). For alpha <= epsilon and beta + alpha e^-beta <= epsilon

        sup (P - e^epsilon Q)+ = (1 - e^-beta) (e^-z1 + e^-z2) / 2,
        z1, z2 = (epsilon + beta -+ alpha) / (e^beta - 1).

    Proof. Both densities are symmetric and unimodal, so their overlap shrinks as |D| grows: D is the largest.
    With l < 0 the log-ratio has its maximum at z = 0, |l| + alpha e^-|l|, convex in |l|: at most epsilon, no
    excess. With l >= 0 it falls up to Q's mode and grows after, and is epsilon at z1(l) >= 0 and -z2(l),
    beyond which P has e^-z1 / 2 and e^-z2 / 2, and e^epsilon Q the part e^-l of that. Both z fall as l
    grows, because 1 - e^-l <= l <= epsilon + l -+ alpha: l = beta is the worst. (The published calibration
    adds the failures of both steps, delta (1 + e^(epsilon/2)) / 2, and is far from tight.)
    """
    if alpha > epsilon or beta + alpha * math.exp(-beta) > epsilon:
        return math.inf
    near, far = ((epsilon + beta - move) / math.expm1(beta) for move in (alpha, -alpha))
    return -math.expm1(-beta) * (math.exp(-near) + math.exp(-far)) / 2


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
    return Admissible("laplace", alpha / (1 + ROUNDING), beta, epsilon, delta)


def calibrate_noise(
    choice: Choice, epsilon: float, delta: float, failure: float, doubling: float, dimension: int = 1
) -> Admissible:
    """Pick the density and the smoothness with the least error, from public figures alone.

    The local sensitivity within k changes is expected to grow like 1 + k / doubling, as it does, with
    doubling 1, for a quantile of evenly spread records. Then S = max_k e^(-beta k) (1 + k / doubling), and
    what is least is S / alpha times the quantile of |Z| at 1 - failure. Any choice is private.

    Args:
        choice: a density, or auto.
        epsilon: to spend.
        delta: to spend, by Laplace noise only.
        failure: probability that the noise exceeds what is minimized.
        doubling: number of changes that double the local sensitivity.
        dimension: of f; Laplace noise is offered for 1.

    Raises:
        ValueError: Laplace noise is asked for without delta, or beyond one dimension.
    """
    kinds: Sequence[Kind] = [k for k in get_args(Kind) if choice in ("auto", k)]
    if delta <= 0 or dimension > 1:
        kinds = [k for k in kinds if k != "laplace"]
    if not kinds:
        raise ValueError(
            "params.noise is laplace: it needs a privacy.delta above 0 and a single number to noise."
        )
    best, least = None, math.inf
    epsilon = min(epsilon, _MOST_EPSILON)
    for kind in kinds:
        tail = _tail(kind, failure)
        for beta in (epsilon * np.geomspace(1e-3, 1, 200)).tolist():
            if kind == "laplace":
                noise = laplace_noise(beta, epsilon, delta)
            else:
                noise = heavy_tailed(kind, beta, epsilon, dimension)
            error = math.inf if noise is None else _growth(beta * doubling) * tail / noise.alpha
            if error < least:
                best, least = noise, error
    if best is None:
        raise ValueError(f"privacy.epsilon is {epsilon}: it is too small for noise by smooth sensitivity.")
    return best


def _tail(kind: Kind, failure: float) -> float:
    if kind == "cauchy":
        return math.tan(math.pi / 2 * (1 - failure))
    if kind == "student":
        return float(stats.t.isf(failure / 2, 3)) / math.sqrt(3)
    return -math.log(failure)


def _growth(x: float) -> float:
    """Return the max over k >= 0 of e^(-beta k) (1 + k / doubling), for x = beta doubling."""
    return 1.0 if x >= 1 else math.exp(x - 1) / x


def _rounded_ratio(kind: Kind, numerator: int, denominator: int, source: Uniform) -> int:
    """round(numerator / denominator |v| / u) of the ratio of uniforms."""
    while True:
        u, v, one = 0, 0, 1
        inside: bool | None = None
        while inside is not False:
            u, v, one = (u << _WORD) | _word(source), (v << _WORD) | _word(source), one << _WORD
            inside = _inside(kind, u, v, one) if inside is None else inside
            if inside and u > 0:
                least = _nearest(numerator * v, denominator * (u + 1))
                if least == _nearest(numerator * (v + 1), denominator * u):
                    return least


def _inside(kind: Kind, u: int, v: int, one: int) -> bool | None:
    """Whether all of the square [u, u + 1] x [v, v + 1] / one is in the region; None where a part is."""
    if kind == "cauchy":
        nearest, farthest = u * u + v * v - one * one, (u + 1) ** 2 + (v + 1) ** 2 - one * one
    else:  # u (1 - u) is monotone on the square, which lies on one side of 1/2
        ends = u * (one - u), (u + 1) * (one - u - 1)
        nearest, farthest = v * v - max(ends), (v + 1) ** 2 - min(ends)
    return True if farthest <= 0 else False if nearest >= 0 else None


def _nearest(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _word(source: Uniform) -> int:
    return source.below(1 << _WORD)


def _rounded_exponential(numerator: int, denominator: int, source: Uniform) -> int:
    """round(numerator / denominator E) of a standard exponential E."""
    if not _bernoulli_exp(denominator, 2 * numerator, source):
        return 0
    while True:
        rest = source.below(numerator)
        if _bernoulli_exp(rest, numerator, source):
            break
    whole = 0
    while _bernoulli_exp(1, 1, source):
        whole += 1
    return 1 + (rest + whole * numerator) // denominator


def _bernoulli_exp(numerator: int, denominator: int, source: Uniform) -> bool:
    """Return True with probability exp(-numerator / denominator)."""
    while numerator > denominator:
        if not _bernoulli_exp(1, 1, source):
            return False
        numerator -= denominator
    k = 1
    while source.below(k * denominator) < numerator:
        k += 1
    return k % 2 == 1
