"""Noise that is scaled by a smooth bound of the data: what it costs, and how it is drawn exactly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import scipy

from core.budget import Cost
from core.draws import Draw
from core.noise import Noise

Density = Literal["cauchy", "student", "laplace"]

ROUNDING = 1e-9
"""Relative error of a smooth sensitivity and of a scale that costs allow for; true errors are below 1e-13."""

_WORD = 32  # bits per refinement


class Uniform(Protocol):
    """A source of uniform integers."""

    def below(self, bound: int) -> int:
        """Return an integer uniform in 0, ..., bound - 1; the bound may be of any size."""


@dataclass(frozen=True, kw_only=True)
class Admissible(Draw):
    """Noise Z such that f(x) + S(x) / alpha Z is private, where S is a beta-smooth bound of f.

    Z has, up to a constant, one of the densities

        cauchy   1 / (1 + z^2),    student  1 / (1 + z^2)^2  (Student's t_3 over sqrt(3)),    laplace  e^-|z|.

    Privacy. Between neighbors x and x', the scale S / alpha changes by a factor of at most e^beta. f changes
    by at most min(S(x), S(x')), which is alpha times the smaller scale. `heavy_tailed_epsilon` and
    `laplace_delta` give the cost of that.

    Rounding. For an integer f(x), f(x) + round(S(x) / alpha Z) is released. That is the nearest integer to
    f(x) + S(x) / alpha Z, so it is a function of a private number. `rounded` draws it exactly, so no rounding
    error is released. Floats enter by the scale alone, whose relative error is far below `ROUNDING` / 2. The
    cost is computed for an `alpha` and a `beta` that are larger by that much.

    Args:
        density: of Z.
        alpha: largest L1 move of f in units of the scale.
        beta: smoothness of S.
        axes: number of coordinates of f, each with noise of its own; 1 for laplace.
        epsilon: of laplace, the pure part at which the additive part is counted; 0 for the others.
    """

    kind: ClassVar[str] = "noise by smooth sensitivity"
    density: Density
    alpha: float
    beta: float
    axes: int = 1
    epsilon: float = 0.0

    @property
    def noise_scale(self) -> float:
        """Scale of the noise per unit of smooth sensitivity."""
        return 1 / self.alpha

    @property
    def change(self) -> float:
        """See `Draw.change`: the smooth sensitivity bounds the change."""
        return 1

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        alpha, beta = self.alpha * (1 + ROUNDING / 2), self.beta + ROUNDING
        if self.density != "laplace":
            return Cost(heavy_tailed_epsilon(self.density, alpha, beta, self.axes))
        if self.axes > 1:
            return Cost(math.inf)
        return Cost(self.epsilon, laplace_delta(alpha, beta, self.epsilon))

    def scale(self, smooth_sensitivity: float) -> float:
        """Return the scale of the noise for a smooth sensitivity."""
        return smooth_sensitivity / self.alpha

    def tail(self, failure: float) -> float:
        """See `tail_of`."""
        return tail_of(self.density, failure)

    def add(self, values: Sequence[int], smooth_sensitivity: float, noise: Noise) -> tuple[int, ...]:
        """Release the values with noise.

        Args:
            values: exact, one for each axis.
            smooth_sensitivity: above 0, `beta`-smooth, and at least the L1 change of `values` between
                neighbors.
            noise: where randomness comes from.

        Raises:
            ValueError: there are more or fewer values than axes.
        """
        if len(values) != self.axes:
            raise ValueError(f"{len(values)} values are to have noise that is paid for on {self.axes} axes.")

        def sample() -> tuple[int, ...]:
            scale = self.scale(smooth_sensitivity)
            return tuple(value + rounded(self.density, scale, noise) for value in values)

        return noise.answer(self, sample)


def heavy_tailed_epsilon(density: Density, alpha: float, beta: float, axes: int = 1) -> float:
    """Return the epsilon that Cauchy or Student noise spends at (alpha, beta).

    In one dimension the result is exact. Let f and f' be D apart, with scales s and s'.
    - The Cauchy density s / ((y - f)^2 + s^2) is 1 over the quadratic form of (y, 1) with the matrix
      B = [[1, -f], [-f, f^2 + s^2]] / s, which has determinant 1.
    - The largest ratio of two such densities is the larger eigenvalue e^d of B^-1 B'. The trace of that
      matrix is e^d + e^-d, so

        cosh d = (D^2 + s^2 + s'^2) / (2 s s').

      This d is the hyperbolic distance of (f, s) and (f', s').
    - The Student density is s^3 / ((y - f)^2 + s^2)^2, so the ratio is at most e^(2 d + |ln(s' / s)|).
    - Let s = 1 be the smaller scale, D = alpha, and s' = e^l with l <= beta. d is convex in l, as it is the
      distance to a point that moves along a line. So l = 0 or l = beta is the worst case:

        epsilon = max(2 arsinh(alpha / 2), arcosh(cosh beta + alpha^2 e^-beta / 2))             (cauchy),
        epsilon = max(4 arsinh(alpha / 2), 2 arcosh(cosh beta + alpha^2 e^-beta / 2) + beta)    (student).

    For Cauchy noise, Nissim, Raskhodnikova and Smith (2007) require alpha, beta <= epsilon / 6.

    In m > 1 dimensions f changes by at most alpha times the smaller scale in L1, and each coordinate has
    noise of its own.
    - The path x = D u / l, s = e^u, 0 <= u <= l, has a hyperbolic length of at most sqrt(D^2 + l^2). So d is
      at most that.
    - The sum over coordinates is convex in how D is split among them, so it is largest where one coordinate
      has all of it. It also grows with l.
    - So with d = sqrt(alpha^2 + beta^2) + (m - 1) beta

        epsilon = d                (cauchy),
        epsilon = 2 d + m beta     (student).
    """
    if axes > 1:
        distance = math.hypot(alpha, beta) + (axes - 1) * beta
        return distance if density == "cauchy" else 2 * distance + axes * beta
    still = 2 * math.asinh(alpha / 2)
    # arcosh(1 + 2 x) = 2 arsinh(sqrt(x)), which keeps its digits where x is small
    half = math.hypot(math.sinh(beta / 2), alpha / 2 * math.exp(-beta / 2))
    moved = 2 * math.asinh(half)
    return max(still, moved) if density == "cauchy" else max(2 * still, 2 * moved + beta)


def laplace_delta(alpha: float, beta: float, epsilon: float) -> float:
    """Return the smallest delta at which Laplace noise is (epsilon, delta)-private; infinite out of range.

    In units of the scale of x, the output P of x has density h(z) = e^-|z| / 2. The output Q of its neighbor
    has density e^l h(e^l (z + D)) with |l| <= beta and |D| <= alpha min(1, e^-l). For alpha <= epsilon and
    beta + alpha e^-beta <= epsilon

        sup (P - e^epsilon Q)+ = (1 - e^-beta) (e^-z1 + e^-z2) / 2,
        z1, z2 = (epsilon + beta -+ alpha) / (e^beta - 1).

    Proof.
    - Both densities are symmetric and unimodal, so their overlap shrinks as |D| grows. The largest |D| is the
      worst case.
    - For l < 0 the log-ratio has its maximum |l| + alpha e^-|l| at z = 0. That is convex in |l|, hence at
      most epsilon, so there is no excess.
    - For l >= 0 the log-ratio falls up to the mode of Q and grows after it. It equals epsilon at z1(l) >= 0
      and at -z2(l). Beyond these points P has mass e^-z1 / 2 and e^-z2 / 2, and e^epsilon Q has e^-l times
      that.
    - Both z1 and z2 fall as l grows, because 1 - e^-l <= l <= epsilon + l -+ alpha. So l = beta is the worst
      case.
    The published calibration adds the failures of two steps, delta (1 + e^(epsilon/2)) / 2, and is far from
    tight.
    """
    if alpha > epsilon or beta + alpha * math.exp(-beta) > epsilon:
        return math.inf
    near, far = ((epsilon + beta - move) / math.expm1(beta) for move in (alpha, -alpha))
    return -math.expm1(-beta) * (math.exp(-near) + math.exp(-far)) / 2


def rounded(density: Density, scale: float, source: Uniform) -> int:
    """Draw round(scale Z) exactly.

    Cauchy and Student by the ratio of uniforms (Kinderman and Monahan 1977). For (u, v) uniform in the half
    disk {0 <= u, u^2 + v^2 <= 1}, v / u is standard Cauchy. For (u, v) uniform in the disk {u^2 + v^2 <= u},
    it has a density proportional to 1 / (1 + z^2)^2. Binary digits of u and |v| are drawn until the dyadic
    square of their remaining values lies inside or outside of the region, and all ratios in it round to one
    integer.

    Laplace. The nearest integer to an exponential number is 0 with probability 1 - e^(-1/(2 scale)), and
    geometric otherwise. Bernoulli(e^-x) is drawn by Algorithms 1 and 2 of Canonne, Kamath and Steinke (2020).

    Args:
        density: of Z.
        scale: finite, above 0; taken as the rational number that the float is.
        source: of uniform integers.
    """
    numerator, denominator = scale.as_integer_ratio()
    if density == "laplace":
        magnitude = _rounded_exponential(numerator, denominator, source)
    else:
        magnitude = _rounded_ratio(density, numerator, denominator, source)
    return magnitude if source.below(2) else -magnitude


def tail_of(density: Density, failure: float) -> float:
    """Return what |Z| exceeds with probability `failure`."""
    if density == "cauchy":
        return math.tan(math.pi / 2 * (1 - failure))
    if density == "student":
        return -float(scipy.special.stdtrit(3, failure / 2)) / math.sqrt(3)
    return -math.log(failure)


def _rounded_ratio(density: Density, numerator: int, denominator: int, source: Uniform) -> int:
    """Draw round(numerator / denominator |v| / u) by the ratio of uniforms."""
    while True:
        u, v, one = 0, 0, 1
        inside: bool | None = None
        while inside is not False:
            u, v, one = (u << _WORD) | _word(source), (v << _WORD) | _word(source), one << _WORD
            inside = _inside(density, u, v, one) if inside is None else inside
            if inside and u > 0:
                least = _nearest(numerator * v, denominator * (u + 1))
                if least == _nearest(numerator * (v + 1), denominator * u):
                    return least


def _inside(density: Density, u: int, v: int, one: int) -> bool | None:
    """Return whether the square [u, u + 1] x [v, v + 1] / one is in the region; None where a part is."""
    if density == "cauchy":
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
    """Draw round(numerator / denominator E) for a standard exponential E."""
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
