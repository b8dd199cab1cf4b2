"""Improve centers: each moves by a noisy average of the vectors from it to its records."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Tally
from core.centers.found import Centers
from core.centers.space import Space, assigned
from core.draws import Draw, Gaussian
from core.noise import Noise
from core.rounds import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WEIGHT_UNIT = 1 << 10
_KNOWN = 2.5  # a center moves if its noisy count exceeds so many scales of the noise
_FARTHEST = 2.0  # the spread about a center is at most so many radii: that many if all pulls are shortened


@dataclass(frozen=True)
class CenterAverages:
    """One step of Lloyd's iteration (power 2) or of Weiszfeld's (power 1) on noisy sums.

    The pull of a record x at its nearest center c is x - c, shortened to a length of at most c's radius r.

    Sensitivity of the sums of pulls, in units of the radius of each center:

    1. A record pulls one center only. So adding a record changes the sums by at most 1 in L2 norm.
    2. Replacing a record changes them by at most 2 if both records pull the same center, and by at most
       sqrt(2) if they pull two centers.
    3. Shortened pulls are rounded toward zero, so rounding makes no pull longer.

    Sensitivity of counts and weights: a record adds 1 to its center's count, and at most 1 to its center's
    weight, in whole parts of WEIGHT_UNIT. So the counts change by at most 1 in L2 norm, or by at most
    sqrt(2) when a record is replaced. The same holds for the weights.

    - Means: the step is the sum of pulls divided by the count. The weight is the squared length of the pull
      divided by r^2. The weights give the spread of the center's records, and so the next radius. If most
      pulls are shortened, they say that records are farther than r, but not how far. Then the radius grows.
    - Medians: r is a fraction of the spread, and the weight is min(1, r / |x - c|). The step is the sum of
      pulls divided by the sum of weights. Where the step is zero, the gradient of the Huber loss is zero.
      This loss is the sum of distances, except for records within r. The radius shrinks with the typical
      distance, because a smaller radius does not increase the noise of the step.

    Args:
        space: the universe.
        k: how many centers.
        power: of the distance in the cost: 2 for means, 1 for medians.
        sums: noise of the sums of pulls, each per unit of its center's radius.
        counts: noise of the counts.
        weights: noise of the sums of weights.
        name: of the round.
    """

    space: Space
    k: int
    power: int
    sums: Gaussian
    counts: Gaussian
    weights: Gaussian
    name: str
    floor: None = None

    @property
    def purpose(self) -> str:
        """What the round finds out, for a report."""
        return f"where the {'mean' if self.power == 2 else 'median'} of each center's rows lies"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.sums, self.counts, self.weights

    def radii(self, state: Centers) -> Ints:
        """Radius of every center, shape (k,), units.

        For medians the radius is a third of the spread. For means it is the radius at which the noise of the
        step is a tenth of the spread, but at least 1.5 and at most 4 spreads.
        """
        factor: float | Floats = 1 / 3
        if self.power == 2:
            noise = self.sums.scale * math.sqrt(self.space.grid.dimension)
            factor = np.clip(0.1 * np.maximum(state.counts, 1) / noise, 1.5, 4.0)
        return np.clip(np.ceil(factor * state.spread), 1, self.space.reach).astype(np.int64)

    def summarize(self, block: Block, state: Centers) -> Tally:
        """Sum the pulls, their weights and the number of each center's records.

        A record that is not farther than the radius pulls with x - c. So the sum of such pulls is the sum of
        the records less c times their number. A record farther away is first moved to where its pull ends.
        """
        d, k, radii = self.space.grid.dimension, len(state.positions), self.radii(state).astype(np.float64)
        sums = np.zeros((k, d + 2), dtype=np.int64)
        for records in self.space.chunks(block.points, 2 * d + k):
            label, squares = assigned(records, state.positions)
            length = np.sqrt(np.maximum(squares, 1.0))
            reach = radii[label]
            far = np.flatnonzero(length > reach)
            if len(far):
                middles = state.positions[label[far]]
                records[far] = middles + np.trunc((records[far] - middles) * (reach / length)[far, None])
            weights = np.minimum(reach / length if self.power == 1 else (length / reach), 1.0)
            weights = np.floor((weights if self.power == 1 else weights**2) * WEIGHT_UNIT)
            for axis, values in enumerate((*records.T, weights)):  # whole numbers below 2^53: exact
                sums[:, axis] += np.bincount(label, values, minlength=k).astype(np.int64)
            sums[:, d + 1] += np.bincount(label, minlength=k)
        sums[:, :d] -= sums[:, d + 1, None] * state.positions
        return Tally(sums.ravel())

    def release(self, aggregate: Tally, state: Centers, noise: Noise) -> Centers:
        """Release the moved centers and the counts of the records that moved them."""
        totals = aggregate.totals.reshape(self.k, -1)
        radii = self.radii(state)
        sums = self.sums.add(totals[:, :-2], noise, unit=radii)
        counts = self.counts.add(totals[:, -1], noise)
        weights = self.weights.add(totals[:, -2], noise, unit=WEIGHT_UNIT) / WEIGHT_UNIT
        over = counts if self.power == 2 else weights
        moves = sums / np.maximum(over, 1.0)[:, None]
        longest = np.maximum(np.linalg.norm(moves, axis=1), 1.0)
        moves *= np.minimum(1.0, (radii if self.power == 2 else 3 * radii) / longest)[:, None]
        # where the count may be noise alone, the center stays
        known = over > _KNOWN * max(self.counts.scale, self.weights.scale)
        moves[~known] = 0.0
        deviation = self.sums.deviation * radii / np.maximum(over, 1.0)
        before = np.full(self.k, np.inf) if state.noise is None else state.noise
        reach, mean_weight = radii.astype(np.float64), weights / np.maximum(counts, 1)
        if self.power == 2:
            error = self.space.grid.dimension * deviation**2
            full = np.clip(2 * (1 - mean_weight), 1 / 16, 1.0)  # below 1 if most pulls are shortened
            squares = mean_weight / full * reach**2 + error - (moves**2).sum(axis=1)
            spread = np.sqrt(np.clip(squares, (reach / 16) ** 2, (_FARTHEST * reach) ** 2))
            parts, deviation = self._trusted(moves, deviation, before)
            moves *= parts
        else:  # the harmonic mean of max(distance, radius), at most twice the spread before
            spread = np.minimum(reach / np.clip(mean_weight, 1e-9, 1), 2 * state.spread)
        spread = np.where(known, spread, state.spread)
        return Centers(
            space=self.space,
            positions=self.space.placed(state.positions + moves),
            spread=spread,
            counts=counts,
            noise=np.where(known, deviation, before),
        )

    def _trusted(self, moves: Floats, deviation: Floats, before: Floats) -> tuple[Floats, Floats]:
        """Part of each move that is made, and the noise of where it leads.

        Less of a move is made where it may be noise alone:

        - The center may be a noisy mean of the round before, with noise b in each coordinate, and the move
          leads to another one, with noise a. The squared distance of the first from the mean without noise
          is estimated by e = max(d b^2, |move|^2 - d a^2). The two are averaged by their precision: the part
          p = e / (e + d a^2) of the move is made. The noise left is sqrt((p a)^2 + ((1 - p / 2) b)^2): half
          of an earlier error is assumed to come back, because it moved the records that the center has. It is
          none where groups are far apart, and most of it where they touch.
        - Otherwise the part is 1 - (d - 2) a^2 / |move|^2, but not below 0 (James and Stein 1961). For d > 2
          it lowers the mean squared distance of the moves from those without noise.

        Args:
            moves: shape (k, d), units.
            deviation: shape (k,), a: noise of a move in each coordinate.
            before: shape (k,), b: noise of where the centers are; infinite where they are no noisy means.

        Returns:
            Parts, shape (k, 1), and the noise in each coordinate, shape (k,).
        """
        d = self.space.grid.dimension
        lengths = np.maximum((moves**2).sum(axis=1), 1.0)
        error, known = d * deviation**2, np.isfinite(before)
        off = np.maximum(d * np.where(known, before, 0.0) ** 2, lengths - error)
        part = np.where(known, off / (off + error), np.maximum(0.0, 1 - max(0, d - 2) / d * error / lengths))
        left = np.hypot(part * deviation, (1 - part / 2) * np.where(known, before, 0.0))
        return part[:, None], np.where(known, left, deviation)
