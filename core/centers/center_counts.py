"""Count the records nearest to each released center."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from core.aggregate import Tally
from core.centers.found import Centers
from core.centers.space import Space, nearest
from core.draws import Additive, Draw, Laplace
from core.mechanisms.tails import largest_of
from core.noise import Noise
from core.rounds import Block

SHARE = 0.025
"""Part of the budget of the other rounds that this round gets in addition. Counts are large."""


@dataclass(frozen=True)
class CountNearest:
    """Count the records nearest to each center, after its last move.

    The counts of an earlier round are those of the centers before they moved, so they do not tell how many
    records are nearest to a released center.

    Sensitivity. The centers are public. A record counts for one center only, so adding it changes the counts
    by 1, in L1 and in L2 norm. Replacing it changes at most two counts by 1: by 2 in L1 norm, and by sqrt(2)
    in L2 norm.

    Args:
        space: the universe.
        k: how many centers.
        counts: noise of the counts.
    """

    space: Space
    k: int
    counts: Additive
    name: str = "count"
    purpose: ClassVar[str] = "how many rows are nearest to each center"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.counts,)

    def error(self, failure: float) -> int:
        """Return the largest error of all counts, but for probability `failure`.

        A Gaussian exceeds t times its deviation with probability at most 2 exp(-t^2 / 2), and k counts share
        `failure`.
        """
        if isinstance(self.counts, Laplace):
            return largest_of(self.k, self.counts.scale, failure)
        return math.ceil(self.counts.deviation * math.sqrt(2 * math.log(2 * self.k / failure)))

    def summarize(self, block: Block, state: Centers) -> Tally:
        """Count the records nearest to each center."""
        totals = np.zeros(self.k, dtype=np.int64)
        for records in self.space.chunks(block.points, 2 * (self.k + self.space.grid.dimension)):
            totals += np.bincount(nearest(records, state.positions), minlength=self.k)
        return Tally(totals)

    def release(self, aggregate: Tally, state: Centers, noise: Noise) -> Centers:
        """Release the centers with their noisy counts."""
        return replace(state, counts=self.counts.add(aggregate.totals, noise))
