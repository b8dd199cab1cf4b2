"""The blocks' answers as an aggregate, and the round that collects them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.rounds import Block

Ints = NDArray[np.int64]


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
        """Order answers by block. If a block has several answers, keep the lexicographically first."""
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
        """Return one answer for each of the blocks 0, ..., blocks - 1; `default` for a block without one."""
        table = np.tile(default, (blocks, 1))
        known = self.blocks < blocks
        table[self.blocks[known].astype(np.int64)] = self.points[known]
        return table


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """Collect the answers. Each aggregator defines what it releases from them.

    A record of this round is one block's answer: a grid point whose identity is the number of the block. The
    database of answers has a public size. Its neighbors differ in one answer.

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
