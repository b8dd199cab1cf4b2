"""Lloyd's iteration on noisy sums alone (SuLQ), with assignments that Blowfish policies make cheaper."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Tally
from core.centers.exponential import falling
from core.centers.found import Centers
from core.centers.solver import Solver, squared_distances
from core.centers.space import Space, nearest
from core.draws import Additive, Draw, Laplace
from core.neighbors import Neighbors
from core.noise import Noise
from core.rounds import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHARE_UNIT = 1 << 10
_SOFTEST = (0.2, 0.6)  # least and largest softness, as parts of the distance between neighboring centers
_GAIN = 0.8  # softness aims to lower the sums' sensitivity to this part of that of hard shares
_WORTH = 0.85  # shares stay hard where softness cannot lower the sensitivity to this part
_HARMLESS = 0.05  # or where the noise with hard shares is at most this part of the distance between centers
_PUBLIC_SEED = 0x110D
_SCATTERED = 4000


@dataclass(frozen=True)
class Assignment:
    """How records pull at centers in one iteration. It is public, and so are all sensitivities.

    A record x gives center j the share a_j(x); its shares sum to 1. It pulls center j by a_j(x) g_j(x), where
    g_j(x) is x - c_j shortened to a length of at most r. Hard shares (softness 0) are 1 for the nearest
    center and 0 for the others. Soft shares are proportional to exp(-|x - c_j| / h).

    Why soft shares: with hard shares, a record that crosses the border between two centers moves its whole
    pull from one to the other, however short the step is. So Lemma 6.1 of He, Machanavajjhala and Ding 2014
    does not hold.

    Sensitivity with soft shares, if a record moves from x to y, with t = |x - y|:

    1. All |x - c_j| are 1-Lipschitz in x. So the differences between the exponents change by at most 2 t / h.
    2. If the exponents change in direction v, a_j has the derivative a_j (v_j - sum a v) =
       a_j (1 - a_j) (v_j - weighted mean of the other v). For each j this is at most a quarter of the range
       of v. The absolute values of all j sum to at most half of the range. So the derivative has L2 norm at
       most range / sqrt(8).
    3. With range 2 t / h: |a(x) - a(y)| <= s = min(sqrt(2), t / (sqrt(2) h)).
    4. Shortening is 1-Lipschitz, so

        |(a_j(x) g_j(x) - a_j(y) g_j(y))_j| <= |a(x)| t + r |a(x) - a(y)| <= t + r s.

    5. This is also at most 2 r, because the pulls of x, and those of y, have L2 norm at most r.

    Sensitivity with hard shares: if x and y pull two centers, at most sqrt(2) r. If both pull the same
    center, at most min(t, 2 r).

    A record that is added or removed changes the pulls by at most r and the shares by at most 1.

    Pulls and shares are rounded to whole numbers. This may add 1 to the change of each coordinate.

    In L1 norm, for Laplace noise: a vector of d coordinates has at most sqrt(d) times its L2 norm.

    - The L2 norms of a record's pulls a_j(x) g_j(x) sum to at most r over j. So a record that is added or
      removed changes the sums by at most sqrt(d) r, and a replaced one by at most 2 sqrt(d) r.
    - With soft shares, by 2 and 3, the absolute changes of all shares sum to at most min(2, t / h). So a move
      changes the sums by at most sqrt(d) (t + r min(2, t / h)).
    - With hard shares the bound is 2 sqrt(d) r for any move that crosses a border between centers.

    Args:
        centers: shape (k, d), units.
        radius: r, units.
        softness: h, units; 0 is hard.
        l1: whether sensitivities are in L1 norm, else in L2 norm.
    """

    centers: Ints
    radius: int
    softness: float
    l1: bool = False

    def sum_sensitivity(self, neighbors: Neighbors, reach: int) -> float:
        """Sensitivity of the sums of pulls, units.

        Args:
            neighbors: the relation.
            reach: bound on the distance t of a secret pair, units.
        """
        if self.l1:
            return math.sqrt(self.centers.shape[1]) * self._pulled(neighbors, reach) + self.centers.size
        r, rounding = self.radius, math.sqrt(self.centers.size)
        if neighbors.name == "add_or_remove_one":
            return r + rounding
        if self.softness == 0:
            return max(math.sqrt(2) * r, min(reach, 2 * r)) + rounding
        return min(2.0 * r, reach + r * self._spill(reach)) + rounding

    def _pulled(self, neighbors: Neighbors, reach: int) -> float:
        """Largest sum over all centers of the L2 norms by which their sums change."""
        if neighbors.name == "add_or_remove_one":
            return self.radius
        if self.softness == 0:
            return 2.0 * self.radius
        return min(2.0 * self.radius, reach + self.radius * self._spill(reach))

    def share_sensitivity(self, neighbors: Neighbors, reach: int) -> float:
        """Sensitivity of the sums of shares, in parts of SHARE_UNIT."""
        k = len(self.centers)
        if neighbors.name == "add_or_remove_one":
            changed = 1.0
        else:
            changed = crossing(self.l1) if self.softness == 0 else self._spill(reach)
        return changed * SHARE_UNIT + (k if self.l1 else math.sqrt(k))

    def _spill(self, reach: int) -> float:
        """Largest change of a record's soft shares."""
        most = crossing(self.l1)
        return min(most, most * reach / (2 * self.softness))

    def shares(self, records: Floats) -> Floats:
        """Share of every center, shape (n, k); each row sums to 1."""
        if self.softness == 0:
            return np.asarray(np.eye(len(self.centers))[nearest(records, self.centers)])
        # whole numbers below 2^47: exact
        distance = np.sqrt(squared_distances(records, self.centers.astype(np.float64)))
        shares = falling((distance - distance.min(axis=1, keepdims=True)) / self.softness)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def pull(self, records: Floats, j: int) -> tuple[Floats, Floats]:
        """Shortened pulls (n, d) at center j, and their lengths divided by the radius, shape (n,)."""
        pulls = records - self.centers[j]
        length = np.sqrt(np.einsum("ij,ij->i", pulls, pulls))
        shorter = np.minimum(1.0, self.radius / np.maximum(length, 1.0))
        return pulls * shorter[:, None], np.minimum(length / self.radius, 1.0)


def crossing(l1: bool) -> float:
    """Return the change of a record's hard shares where it crosses a border, in L1 or in L2 norm."""
    return 2.0 if l1 else math.sqrt(2)


@dataclass(frozen=True)
class Iteration:
    """Move every center by the noisy sum of pulls divided by the noisy sum of shares.

    Args:
        space: the universe.
        neighbors: the relation.
        reach: bound on the Euclidean distance of a secret pair: the largest L1 distance of one, in units.
        sums: Gaussian or Laplace noise of the sums, per unit of their sensitivity; see `Assignment`.
        shares: noise of the sums of shares, per unit of their sensitivity.
        spread: noise of the spread. A record adds from 0 to 1 to the spread.
        name: of the round.
    """

    space: Space
    neighbors: Neighbors
    reach: int
    sums: Additive
    shares: Additive
    spread: Additive
    name: str
    purpose: ClassVar[str] = (
        "where the mean of each center's rows lies, how many they are and how far they spread"
    )
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.sums, self.shares, self.spread

    def assignment(self, state: Centers) -> Assignment:
        """Choose radius and softness from the public state.

        Soft shares blur the centers, so they are used only where they lower the noise enough.
        """
        radius = min(self.space.reach, max(1, math.ceil(2 * float(state.spread[0]))))
        l1 = isinstance(self.sums, Laplace)
        hard = Assignment(state.positions, radius, 0.0, l1)
        if self.neighbors.name == "add_or_remove_one" or len(state.positions) == 1:
            return hard
        positions = state.positions.astype(np.float64)
        squares = squared_distances(positions, positions)
        np.fill_diagonal(squares, np.inf)
        apart = float(np.median(np.sqrt(squares.min(axis=1))))
        most = crossing(l1)
        slack = _GAIN * most - self.reach / radius  # solves reach + r s = _GAIN most r for h
        needed = most * self.reach / (2 * slack) if slack > 0 else math.inf
        softness = min(max(needed, _SOFTEST[0] * apart, 1.0), max(_SOFTEST[1] * apart, 1.0))
        soft = Assignment(state.positions, radius, softness, l1)
        change = hard.sum_sensitivity(self.neighbors, self.reach)
        usual = max(1.0, float(np.median(state.counts)))
        error = self.sums.deviation * change * math.sqrt(positions.shape[1]) / usual
        pays = soft.sum_sensitivity(self.neighbors, self.reach) <= _WORTH * change
        return soft if pays and error > _HARMLESS * apart else hard

    def summarize(self, block: Block, state: Centers) -> Tally:
        """Sum pulls and shares of every center, and the squared lengths of all pulls over r^2."""
        assignment = self.assignment(state)
        k, d = state.positions.shape
        totals = np.zeros((k, d + 1), dtype=np.int64)
        spread = 0
        for records in self.space.chunks(block.points, 4 * d + 3 * k):
            shares = assignment.shares(records)
            squares = np.zeros(len(records))
            for j in range(k):
                pulls, lengths = assignment.pull(records, j)
                totals[j, :d] += np.rint(pulls * shares[:, j, None]).sum(axis=0).astype(np.int64)
                squares += shares[:, j] * lengths**2
            totals[:, d] += np.rint(shares * SHARE_UNIT).sum(axis=0).astype(np.int64)
            spread += int(np.floor(np.minimum(squares, 1.0) * SHARE_UNIT).sum())
        return Tally(np.append(totals, spread))

    def release(self, aggregate: Tally, state: Centers, noise: Noise) -> Centers:
        """Release the moved centers, their counts and the spread."""
        assignment = self.assignment(state)
        k, d = state.positions.shape
        totals = aggregate.totals[:-1].reshape(k, d + 1)
        pull = assignment.sum_sensitivity(self.neighbors, self.reach)
        share = assignment.share_sensitivity(self.neighbors, self.reach)
        sums = self.sums.add(totals[:, :d], noise, unit=pull)
        counts = self.shares.add(totals[:, d], noise, unit=share) / SHARE_UNIT
        lengths = self.spread.add(aggregate.totals[-1:], noise, unit=SHARE_UNIT)[0] / SHARE_UNIT
        smallest = 3 * self.shares.deviation * share / SHARE_UNIT
        return _moved(state, assignment, sums, counts, smallest, float(lengths))


def _moved(
    state: Centers, assignment: Assignment, sums: Ints, counts: Floats, smallest: float, lengths: float
) -> Centers:
    shifts = sums / np.maximum(counts, 1.0)[:, None]
    longest = np.maximum(np.linalg.norm(shifts, axis=1), 1.0)
    shifts *= np.minimum(1.0, assignment.radius / longest)[:, None]
    shifts[counts <= smallest] = 0.0  # so small a count may be noise alone: the center stays
    share = min(1.0, max(0.0, lengths / max(1.0, float(counts.sum()))))
    spread = assignment.radius * math.sqrt(max(share, 1 / 64))
    return Centers(
        space=state.space,
        positions=state.space.placed(state.positions + shifts),
        spread=np.full(len(shifts), spread),
        counts=np.rint(counts).astype(np.int64),
    )


def scattered(space: Space, k: int, iterations: int = 100) -> Centers:
    """Public centers that cover the universe evenly: the k-means of random points in it.

    Args:
        space: the universe.
        k: how many centers.
        iterations: most iterations of k-means; few are enough for places that are roughly even.
    """
    extents = np.asarray(space.grid.extents, dtype=np.float64)
    steps = np.random.default_rng(_PUBLIC_SEED).uniform(size=(max(_SCATTERED, 4 * k), len(extents))) * extents
    points = space.inside((steps - space.middle) * (1 << space.bits))
    solver = Solver(2, starts=1, iterations=iterations)
    centers = solver.centers(points.astype(np.float64), np.ones(len(points)), k)
    return Centers(
        space=space,
        positions=space.placed(centers),
        spread=np.full(k, float(space.reach)),
        counts=np.zeros(k, dtype=np.int64),
    )
