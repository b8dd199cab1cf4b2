"""The radius about a released point that holds a part of the blocks' answers."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points, distances_squared
from core.mechanisms.exponential import Exponential, missed_scores
from core.noise import Noise

Ints = NDArray[np.int64]

RATIO = 1.2
"""Ratio of neighboring candidate radii. The closer it is to 1, the larger is the rank error."""


def candidate_radii(grid: Grid) -> Ints:
    """Return the candidates, ascending from 0 to the diameter of the universe, grid steps."""
    widest = math.isqrt(sum(extent**2 for extent in grid.extents)) + 1
    steps = math.ceil(math.log(widest) / math.log(RATIO))
    ladder = np.minimum(np.ceil(RATIO ** np.arange(steps + 1)), widest).astype(np.int64)
    return np.unique(np.append(ladder, [0, widest]))


@dataclass(frozen=True)
class StableRadius:
    """Choose the radius about a released point that holds about `target` answers.

    The radius is a quantile of the distances of the answers from the point. It is chosen by the exponential
    mechanism over candidate radii that grow by 20%. Sort the answers by distance. The ranks of a candidate
    are those of the answers beyond the next smaller candidate and within this one. The score of a candidate
    is minus the distance of `target` from its ranks. Changing one answer moves the ends of the ranks by at
    most 1, so it moves each score by at most 1.

    Args:
        grid: the universe of the answers.
        target: answers to hold, from 1 to the number of blocks. So one candidate has score 0.
        holds: answers that the radius is promised to hold.
        choice: chooses the radius; of spread 2.
    """

    grid: Grid
    target: int
    holds: int
    choice: Exponential

    @property
    def radii(self) -> Ints:
        """See `candidate_radii`."""
        return candidate_radii(self.grid)

    def rank_error(self, failure: float) -> int:
        """Bound by how many answers the radius misses or exceeds `target`, with probability 1 - failure."""
        return math.ceil(self.choice.scale * missed_scores(len(self.radii), failure))

    def release(self, points: Points, center: Ints, noise: Noise) -> int:
        """Release the radius, grid steps."""
        squares = np.sort(distances_squared(points, center))
        radii = self.radii
        within = np.searchsorted(squares, radii**2, side="right")
        before = np.append(0, within[:-1])
        away = np.maximum(np.maximum(before + 1 - self.target, self.target - within), 0)
        return int(radii[self.choice.candidate(-away, noise)])
