"""What a composition of draws really costs: bounds of its hockey-stick divergence, from probabilities alone.

delta(epsilon) = sup over events T of P(T) - e^epsilon Q(T) is what a release spends, where P and Q are its
distributions on two neighbors. Of independent draws it follows from the sum of their privacy losses
L = ln(P / Q) under P: delta(epsilon) = E[max(0, 1 - e^(epsilon - L))]. Nothing here is taken from
`core.budget`, `core.privacy_filter` or dp-accounting.

Errors are bounded, not estimated:

* A loss is kept as a multiple of `step`. For the upper bound it is rounded up, for the lower bound down.
  delta(epsilon) grows with L, so both are bounds; they differ by at most a shift of epsilon by `step` for
  each draw. Losses that are multiples of `step`, to 1e-7 of it, are not rounded: both bounds are then exact.
* A tail that is cut off counts as an infinite loss in the upper bound, and as no loss in the lower one.
* Convolutions are direct sums of products of non-negative numbers, so each mass has a relative error of at
  most (terms + 3) 2^-53 a draw. Fewer than 2^20 terms in all are added, so a factor of 1 + 1e-9 covers it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Relative error of a sum of products, at most."""

_ON_GRID = 1e-7
"""Part of a step by which a loss that is meant to be a multiple of it may be off, for floating point."""


@dataclass(frozen=True)
class Pair:
    """The distributions of one draw on two neighbors, over finitely many outcomes.

    Args:
        p: shape (m,), the first; sums to 1, but for `cut`.
        q: shape (m,), the second.
        cut: probability, under either, of the outcomes that are left out, at most.
    """

    p: Floats
    q: Floats
    cut: float = 0.0

    def swapped(self) -> "Pair":
        """Return the neighbors in the other order."""
        return Pair(self.q, self.p, self.cut)

    def sampled(self, rate: float) -> "Pair":
        """Return the pair where the record that is only in the first database is kept with `rate`."""
        return Pair((1 - rate) * self.q + rate * self.p, self.q, self.cut)


@dataclass(frozen=True)
class Normal:
    """Continuous Gaussian noise of zCDP `rho`: the loss is normal with mean rho and variance 2 rho."""

    rho: float


Draw = Pair | Normal


def randomized_response(epsilon: float) -> Pair:
    """Return the pair that dominates every epsilon-private draw (Kairouz, Oh and Viswanath 2015)."""
    up, down = 1 / (1 + math.exp(-epsilon)), math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return Pair(np.array([up, down]), np.array([down, up]))


def approximate(epsilon: float, delta: float) -> Pair:
    """Return the pair that dominates every (epsilon, delta) draw: with delta, the outcome tells which."""
    pure = randomized_response(epsilon)
    rest = 1 - delta
    return Pair(np.array([delta, 0, *(rest * pure.p)]), np.array([0, delta, *(rest * pure.q)]))


def laplace(scale: float, shift: int, reach: int) -> Pair:
    """Return discrete Laplace noise on 0 and on `shift`.

    Outcomes beyond `reach` have one loss, so they are one outcome here, and nothing is cut off.
    """
    a = math.exp(-1 / scale)
    support = np.arange(-reach, reach + shift + 1)

    def mass(center: int) -> Floats:
        inner = (1 - a) / (1 + a) * a ** np.abs(support - center)
        inner[0], inner[-1] = (a ** abs(support[end] - center) / (1 + a) for end in (0, -1))
        return inner

    return Pair(mass(0), mass(shift))


def discrete_gaussian(scale: float, shift: int) -> Pair:
    """Return discrete Gaussian noise on `shift` and on 0; the tails beyond 12 scales are cut off."""
    reach = math.ceil(12 * scale) + 1
    support = np.arange(-reach, reach + shift + 1)
    whole = np.arange(-4 * reach, 4 * reach + 1)
    total = math.fsum(np.exp(-((whole / scale) ** 2) / 2))
    p, q = (np.exp(-(((support - center) / scale) ** 2) / 2) / total for center in (shift, 0))
    # Its tail from m is at most a continuous Gaussian's from m - 1 (Canonne, Kamath and Steinke 2020).
    return Pair(p, q, cut=4 * norm.sf((reach - 1) / scale))


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Return delta(epsilon) of one continuous Gaussian draw, in closed form (Balle and Wang 2018)."""
    shift = math.sqrt(2 * rho)
    return float(
        norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon + norm.logcdf(-shift / 2 - epsilon / shift))
    )


@dataclass(frozen=True)
class Losses:
    """The distribution of a privacy loss on a grid, as a bound.

    Args:
        step: of the grid.
        up: whether losses were rounded up.
        first: loss of the first mass, in steps.
        mass: shape (m,), under the first distribution.
        infinite: probability of a loss without bound.
    """

    step: float
    up: bool
    first: int
    mass: Floats
    infinite: float

    @classmethod
    def none(cls, step: float, up: bool) -> "Losses":
        """Return the loss of no draw at all."""
        return cls(step, up, 0, np.ones(1), 0.0)

    def rounded(self, steps: Floats) -> NDArray[np.int64]:
        """Round losses, in steps, to the grid in the bound's direction."""
        nearest = np.rint(steps)
        outward = np.ceil(steps) if self.up else np.floor(steps)
        return np.where(np.abs(steps - nearest) < _ON_GRID, nearest, outward).astype(np.int64)

    def of(self, draw: Draw) -> "Losses":
        """Return the loss of one draw, bounded as this one is."""
        return self._of_normal(draw) if isinstance(draw, Normal) else self._of_pair(draw)

    def _of_pair(self, pair: Pair) -> "Losses":
        apart, both = (pair.q <= 0) & (pair.p > 0), (pair.q > 0) & (pair.p > 0)
        p, q = pair.p[both], pair.q[both]
        at = self.rounded((np.log(p) - np.log(q)) / self.step)
        first = int(at.min())
        infinite = float(pair.p[apart].sum()) + (pair.cut if self.up else 0.0)
        return Losses(self.step, self.up, first, np.bincount(at - first, weights=p), infinite)

    def _of_normal(self, draw: Normal) -> "Losses":
        deviation, reach = math.sqrt(2 * draw.rho), 10.0
        ends = np.arange(
            math.floor((draw.rho - reach * deviation) / self.step),
            math.ceil((draw.rho + reach * deviation) / self.step) + 1,
        )
        z = (ends * self.step - draw.rho) / deviation
        # Each side by its own tail, whose differences lose no digits.
        mass = np.where(z[:-1] >= 0, norm.sf(z[:-1]) - norm.sf(z[1:]), norm.cdf(z[1:]) - norm.cdf(z[:-1]))
        cut = float(norm.sf(reach))
        first = int(ends[0]) + self.up
        if self.up:  # the lower tail rises to the least loss, the upper one without bound
            mass[0] += cut
        return Losses(self.step, self.up, first, mass, cut if self.up else 0.0)

    def __add__(self, other: "Losses") -> "Losses":
        if np.count_nonzero(other.mass) > np.count_nonzero(self.mass):
            return other + self
        held = np.flatnonzero(other.mass)
        if len(held) <= 64:  # few losses: shift and add
            mass = np.zeros(len(self.mass) + len(other.mass) - 1)
            for i in held:
                mass[i : i + len(self.mass)] += other.mass[i] * self.mass
        else:
            mass = np.convolve(self.mass, other.mass)
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        return Losses(self.step, self.up, self.first + other.first, mass, infinite)

    def delta(self, epsilon: float) -> float:
        """Return the bound of delta(epsilon)."""
        losses = (self.first + np.arange(len(self.mass))) * self.step
        over = losses > epsilon
        found = self.infinite + float((self.mass[over] * -np.expm1(epsilon - losses[over])).sum())
        return found * (1 + ROUNDING) if self.up else found * (1 - ROUNDING)

    def epsilon(self, delta: float) -> float:
        """Return the bound of the smallest epsilon, at least 0, whose delta is at most `delta`.

        By bisection, to 1e-12 of the largest loss and on the side of the bound; infinite where no epsilon is.
        """
        low, high = 0.0, max(0.0, (self.first + len(self.mass)) * self.step)
        if self.delta(high) > delta:
            return math.inf
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high if self.up else low


def compose(draws: Iterable[Draw], step: float, up: bool) -> Losses:
    """Return the loss of all draws together, bounded from above or from below."""
    none = Losses.none(step, up)
    parts = sorted((none.of(draw) for draw in draws), key=lambda losses: len(losses.mass))
    total = none
    for part in parts:
        total = total + part
    return total


@dataclass(frozen=True)
class Cost:
    """Bounds of what draws cost together, in the order of neighbors in which they cost more.

    Args:
        lower: whose delta is at most the true one.
        upper: whose delta is at least the true one.
    """

    lower: tuple[Losses, ...]
    upper: tuple[Losses, ...]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return the bounds of delta(epsilon)."""
        below, above = (max(one.delta(epsilon) for one in ways) for ways in (self.lower, self.upper))
        return below, above

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Return the bounds of the smallest epsilon whose delta is at most `delta`."""
        below, above = (max(one.epsilon(delta) for one in ways) for ways in (self.lower, self.upper))
        return below, above


def cost(draws: Sequence[Draw], step: float, symmetric: bool = True) -> Cost:
    """Return bounds of what independent draws cost together.

    Args:
        draws: each on two neighbors.
        step: of the grid of losses.
        symmetric: whether the neighbors in the other order cost the same.
    """
    ways = [draws]
    if not symmetric:
        ways.append([draw.swapped() if isinstance(draw, Pair) else draw for draw in draws])
    lower, upper = (tuple(compose(way, step, up) for way in ways) for up in (False, True))
    return Cost(lower, upper)
