"""The blocks' answers as an aggregate, the released stable point, and the radius about it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.rounds import Block

Ints = NDArray[np.int64]

_RATIO = 1.1  # of neighboring candidate radii


@dataclass(frozen=True, eq=False)
class Outputs:
    """Answers of some blocks, in the order of the blocks' numbers.

    Args:
        blocks: shape (m,), uint64, distinct and ascending.
        points: shape (m, d), grid steps.
    """

    blocks: NDArray[np.uint64]
    points: Points

    @classmethod
    def of(cls, blocks: NDArray[np.uint64], points: Points) -> "Outputs":
        """Order answers by block; of several for one block the first in lexicographic order stays."""
        order = np.lexsort((*points.T[::-1], blocks))
        blocks, points = blocks[order], points[order]
        first = np.append(True, blocks[1:] != blocks[:-1])[: len(blocks)]
        return cls(blocks[first], points[first])

    def __add__(self, other: "Outputs") -> "Outputs":
        return self.of(np.append(self.blocks, other.blocks), np.concatenate([self.points, other.points]))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Outputs)
            and np.array_equal(self.blocks, other.blocks)
            and np.array_equal(self.points, other.points)
        )

    def table(self, blocks: int, default: Ints) -> Points:
        """Return one answer for each of the blocks 0, ..., blocks - 1, `default` where it is missing."""
        table = np.tile(default, (blocks, 1))
        known = self.blocks < blocks
        table[self.blocks[known].astype(np.int64)] = self.points[known]
        return table


@dataclass(frozen=True)
class Stable:
    """A released point, and how far the blocks' answers are from it.

    Args:
        value: shape (d,), grid steps.
        radius: grid steps.
    """

    value: Ints
    radius: int

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return value and radius in data units."""
        return {"value": grid.restore(self.value).tolist(), "radius": self.radius * grid.step}


@dataclass(frozen=True)
class StableRadius:
    """Choose the radius about a released point that holds about `target` answers.

    The exponential mechanism over candidate radii that grow by 10%. The score of a radius is minus how far
    the target is from the ranks of the answers between it and the next smaller one; another answer moves
    these by at most 1.

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
        """Bound, with probability 1 - failure, how many answers the radius misses or holds in excess."""
        return math.ceil(self.choice.scale * math.log(len(self.radii) / failure))

    def release(self, points: Points, center: Ints, noise: Noise) -> int:
        """Release the radius, grid steps."""
        moved = points - center
        squares = np.sort(np.einsum("ij,ij->i", moved, moved))
        within = np.searchsorted(squares, self.radii**2, side="right")
        before = np.append(0, within[:-1])
        away = np.maximum(np.maximum(before + 1 - self.target, self.target - within), 0)
        return int(self.radii[self.choice.candidate(-away, noise)])


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """Collect the answers; each aggregator releases what it makes of them.

    A record of this round is one block's answer, a grid point whose identity is the number of the block. The
    database of answers has a public size, and neighbors differ in one answer.

    Args:
        grid: the universe of the answers.
        blocks: number of blocks, public.
    """

    grid: Grid
    blocks: int
    name: str = "aggregate"
    floor: None = None

    def summarize(self, block: Block, state: None) -> Outputs:
        """Collect the answers of some blocks."""
        return Outputs.of(block.ids, block.points)

    def table(self, aggregate: Outputs) -> Points:
        """Return the answers, shape (blocks, d); a missing one is the middle of the universe."""
        return aggregate.table(self.blocks, np.array(self.grid.bounding_center, dtype=np.int64))
