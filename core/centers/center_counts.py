"""Count the records nearest to each released center."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy

from core.aggregate import Tally
from core.centers.found import Centers
from core.centers.space import Space, nearest
from core.draws import Additive, Draw, Laplace
from core.mechanisms.tails import largest_of
from core.noise import Noise
from core.rounds import Block
from core.tightness import Tightness

SHARE = 0.025
"""Part of the budget of the other rounds that this round gets in addition. Counts are large."""


OF_COUNTS = Tightness(
    "The promised error of the counts is reached on all rows: their noise does not depend on the rows.",
    reached=True,
)


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

        Each of k independent counts fails with p = 1 - (1 - failure)^(1 / k). Discrete Gaussian noise exceeds
        an integer m with at most the probability that continuous noise of its scale is at least m (Canonne,
        Kamath and Steinke 2020). So m is the scale times the quantile at 1 - p / 2, rounded
        up.
        """
        if isinstance(self.counts, Laplace):
            return largest_of(self.k, self.counts.scale, failure)
        each = -math.expm1(math.log1p(-failure) / self.k)
        return math.ceil(self.counts.scale * -float(scipy.special.ndtri(each / 2)))

    def summarize(self, block: Block, state: Centers) -> Tally:
        """Count the records nearest to each center."""
        totals = np.zeros(self.k, dtype=np.int64)
        for records in self.space.chunks(block.points, 2 * (self.k + self.space.grid.dimension)):
            totals += np.bincount(nearest(records, state.positions), minlength=self.k)
        return Tally(totals)

    def release(self, aggregate: Tally, state: Centers, noise: Noise) -> Centers:
        """Release the centers with their noisy counts."""
        return replace(state, counts=self.counts.add(aggregate.totals, noise))
