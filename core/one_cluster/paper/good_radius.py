"""GoodRadius as published: a radius within a factor 4 of the best, by RecConcave."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid
from core.draws import Draw, Laplace
from core.mechanisms.rec_concave import (
    Search,
    Steps,
    levels,
    log_star,
    quality_promise,
    rec_concave,
)
from core.noise import Noise
from core.one_cluster.found import NotFound
from core.one_cluster.paper.weighted import Weighted
from core.rounds import Block

Ints = NDArray[np.int64]

_CELLS = 1 << 22  # ball counts held at a time


@dataclass(frozen=True)
class Radius:
    """A released radius.

    Args:
        half_steps: the radius in halves of a grid step.
    """

    half_steps: int


@dataclass(frozen=True)
class RadiusScales:
    """Constants of GoodRadius at its own (epsilon, delta); Nissim, Stemmer and Vadhan 2016, Algorithm 1.

    Args:
        grid: the universe; |X| is the number of grid points on its longest axis.
        epsilon: what GoodRadius spends.
        delta: what GoodRadius spends.
        beta: failure probability.
    """

    grid: Grid
    epsilon: float
    delta: float
    beta: float

    @property
    def solutions(self) -> float:
        """Number of candidate radii |F| = 2 |X| sqrt(d)."""
        return 2 * (max(self.grid.extents) + 1) * math.sqrt(self.grid.dimension)

    @property
    def last(self) -> int:
        """Largest candidate radius, in half steps: no two grid points are farther apart."""
        return 2 * math.ceil(self.solutions / 2)

    @property
    def gamma(self) -> int:
        """Gamma = 8^log*|F| 144 log*|F| / epsilon ln(24 log*|F| / (beta delta)), rounded up.

        This is the quality that RecConcave needs with alpha = 1/2, privacy (epsilon / 2, delta) and failure
        probability beta / 2.
        """
        return math.ceil(quality_promise(self.solutions, 0.5, self.epsilon / 2, self.delta, self.beta / 2))

    @property
    def zero(self) -> Laplace:
        """Noise of L(0), at epsilon / 2 and sensitivity 2."""
        return Laplace.of("records at one point, L(0)", self.epsilon / 2, 2)

    @property
    def depth(self) -> int:
        """Bound on RecConcave's recursion, log*|F|."""
        return log_star(self.solutions)

    @property
    def levels(self) -> int:
        """How often RecConcave calls itself."""
        return levels(self.last, self.depth)

    @property
    def search(self) -> Search:
        """The draws inside RecConcave, which spends (epsilon / 2, delta) in all.

        The theorem provides for 3 log*|F| draws. The draws that are really made are 3 levels + 1, and they
        share epsilon. 2 levels of them are draws of A_dist, and these share delta.
        """
        levels = self.levels
        return Search.of(self.epsilon / 2 / (3 * levels + 1), self.delta / max(1, 2 * levels), levels)


@dataclass(frozen=True)
class GoodRadius:
    """Find a radius z such that some ball of radius z holds nearly the target and z <= 4 r_opt.

    Let B_r(p) be the number of records within r of p, capped at the target t. Let

        L(r) = 1/t max over t distinct records of the sum of their B_r.

    Sensitivity, under `replace_one` only:

    1. Replacing one record changes the B_r of each other record by at most 1, and its own by at most t.
    2. So the sum over any t records changes by at most (t - 1) + t, and L has sensitivity below 2.
    3. floor(L) has sensitivity at most 2, because the floors of two numbers less than 2 apart are at most 2
       apart.
    4. So Q(r) = floor(1/2 min{t - floor(L(r / 2)), floor(L(r)) - t + 4 Gamma}) has sensitivity 1.
    5. L grows with r, so Q is quasi-concave.
    6. The round checks n >= t. n is public.

    With probability 1 - beta some ball of radius z about a record holds t - 3 Gamma records, and
    z <= 4 r_opt (Lemma 4.6). Rounding Q down loses nothing, because Gamma is an integer.

    Args:
        target: t.
        scales: constants.
    """

    target: int
    scales: RadiusScales
    growing: ClassVar[str] = "memory in proportion to the square of the number of distinct points"
    name: str = "good_radius"
    floor: None = None
    purpose: ClassVar[str] = "a radius at most 4 times that of the smallest ball that holds the target"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.scales.zero, *self.scales.search.draws())

    def summarize(self, block: Block, state: object) -> Weighted:
        """Return the block's distinct points and their multiplicities."""
        return Weighted.of(block.points)

    def release(self, aggregate: Weighted, state: object, noise: Noise) -> Radius | NotFound:
        """Release the radius; NotFound where RecConcave does, or where there are fewer records than t."""
        t, scales = self.target, self.scales
        if aggregate.total < t:  # reveals nothing: the number of records is public
            return NotFound()
        averages = ball_averages(aggregate, t)
        zero = int(scales.zero.add(averages.values[:1], noise)[0])
        if zero > t - 2 * scales.gamma - scales.zero.scale * math.log(2 / scales.beta):
            return Radius(0)
        quality = radius_quality(averages, t, scales.gamma, scales.last)
        found = rec_concave(quality, scales.gamma, 0.5, scales.search, scales.depth, noise)
        return NotFound() if found is None else Radius(found)


def ball_averages(data: Weighted, target: int) -> Steps:
    """Compute floor(L(r)) for all r, as a step function of the squared radius in grid steps.

    The time is O(m^3 log m) for m distinct points, because every distance between two points is a step.

    Args:
        data: at least `target` records.
        target: t.
    """
    squares = np.zeros((len(data.points), len(data.points)), dtype=np.int64)
    for axis in data.points.T:
        squares += (axis[:, None] - axis[None, :]) ** 2
    radii = np.unique(squares)
    order = np.argsort(squares, axis=1, kind="stable")
    sorted_squares = np.take_along_axis(squares, order, axis=1)
    within = np.cumsum(data.counts[order], axis=1)
    chunk = max(1, _CELLS // len(data.points))
    values = [
        _average(data.counts, _ball_counts(sorted_squares, within, part), target)
        for part in np.split(radii, range(chunk, len(radii), chunk))
    ]
    return Steps(radii, np.concatenate(values), int(radii[-1])).merged()


def _ball_counts(sorted_squares: Ints, within: Ints, radii: Ints) -> Ints:
    """Count the records in the ball of each point (m) and squared radius (u): shape (m, u)."""
    rows = zip(sorted_squares, within, strict=True)
    return np.stack([row[np.searchsorted(at, radii, side="right") - 1] for at, row in rows])


def _average(counts: Ints, balls: Ints, target: int) -> Ints:
    """Average the t largest capped ball counts, rounded down. A point counts as often as its multiplicity.

    Args:
        counts: shape (m,).
        balls: shape (m, u).
        target: t.

    Returns:
        Shape (u,). The result is exact: sums may exceed int64, so they are added up in limbs.
    """
    capped = np.minimum(balls, target)
    order = np.argsort(-capped, axis=0, kind="stable")
    capped = np.take_along_axis(capped, order, axis=0)
    copies = counts[order]
    taken = np.clip(target - (np.cumsum(copies, axis=0) - copies), 0, copies)
    bits = 62 - target.bit_length()
    total = np.zeros(balls.shape[1], dtype=object)
    for low in range(0, target.bit_length(), bits):
        limb = (capped >> low) & ((1 << bits) - 1)
        total += (taken * limb).sum(axis=0).astype(object) << low
    return (total // target).astype(np.int64)


def radius_quality(averages: Steps, target: int, gamma: int, last: int) -> Steps:
    """Q of GoodRadius as a step function of the radius in half steps, 0, ..., last.

    The radius i / 2 is at least sqrt(s) from i = ceil(sqrt(4 s)) on. Half of this radius, i / 4, is at least
    sqrt(s) from i = ceil(sqrt(16 s)) on.
    """
    whole = _reached(averages.starts, 4)
    half = _reached(averages.starts, 16)
    starts = np.unique(np.concatenate([whole, half]))
    starts = starts[starts <= last]
    at_radius = averages.values[np.searchsorted(whole, starts, side="right") - 1]
    at_half = averages.values[np.searchsorted(half, starts, side="right") - 1]
    quality = np.minimum(target - at_half, at_radius - target + 4 * gamma) // 2
    return Steps(starts, quality, last).merged()


def _reached(squares: Ints, factor: int) -> Ints:
    roots = [math.isqrt(factor * s - 1) + 1 if s else 0 for s in squares.tolist()]
    return np.array(roots, dtype=np.int64)
