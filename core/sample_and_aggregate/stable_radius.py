"""The radius about a released point that holds a part of the blocks' answers."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.mechanisms.exponential import Exponential
from core.noise import Noise

Ints = NDArray[np.int64]

_RATIO = 1.1  # of neighboring candidate radii


@dataclass(frozen=True)
class StableRadius:
    """Choose the radius about a released point that holds about `target` answers.

    The radius is chosen by the exponential mechanism over candidate radii that grow by 10%. Sort the answers
    by their distance from the point. The ranks of a candidate are those of the answers beyond the next
    smaller candidate and within this one. The score of a candidate is minus the distance of `target` from
    its ranks. Changing one answer moves the ends of the ranks by at most 1.

    Args:
        grid: the universe of the answers.
        target: answers to hold.
        choice: chooses the radius; of spread 2.
    """

    grid: Grid
    target: int
    choice: Exponential

    @property
    def radii(self) -> Ints:
        """Candidates, ascending from 0 to the diameter of the universe, grid steps."""
        widest = math.isqrt(sum(extent**2 for extent in self.grid.extents)) + 1
        steps = math.ceil(math.log(widest) / math.log(_RATIO))
        ladder = np.minimum(np.ceil(_RATIO ** np.arange(steps + 1)), widest).astype(np.int64)
        return np.unique(np.append(ladder, [0, widest]))

    def rank_error(self, failure: float) -> int:
        """Bound by how many answers the radius misses or exceeds `target`, with probability 1 - failure."""
        return math.ceil(self.choice.scale * math.log(len(self.radii) / failure))

    def release(self, points: Points, center: Ints, noise: Noise) -> int:
        """Release the radius, grid steps."""
        moved = points - center
        squares = np.sort(np.einsum("ij,ij->i", moved, moved))
        within = np.searchsorted(squares, self.radii**2, side="right")
        before = np.append(0, within[:-1])
        away = np.maximum(np.maximum(before + 1 - self.target, self.target - within), 0)
        return int(self.radii[self.choice.candidate(-away, noise)])
