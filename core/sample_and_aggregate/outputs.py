"""The blocks' answers as an aggregate, and the round that collects them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points
from core.draws import Draw, Laplace
from core.noise import Noise
from core.rounds import Block
from core.sample_and_aggregate.found import Stable, Unstable
from core.sample_and_aggregate.stable_radius import StableRadius

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

    def answered(self, blocks: int) -> int:
        """Return how many of the blocks 0, ..., blocks - 1 have an answer."""
        return int((self.blocks < blocks).sum())

    def table(self, blocks: int, default: Ints) -> Points:
        """Return one answer for each of the blocks 0, ..., blocks - 1; `default` for a block without one."""
        table = np.tile(default, (blocks, 1))
        known = self.blocks < blocks
        table[self.blocks[known].astype(np.int64)] = self.points[known]
        return table


@dataclass(frozen=True)
class CountFailures:
    """Count the blocks that have no answer, because the function failed or exceeded a limit.

    Sensitivity. A block has an answer or it has none. So changing what one block answers changes the count by
    at most 1. A replaced unit may change two blocks, in the same direction, and is charged for two.

    Args:
        count: noise of the count.
        most: if the noisy count is above this, no value is released.
    """

    count: Laplace
    most: int

    def release(self, failed: int, noise: Noise) -> int:
        """Release the noisy count, which may be negative."""
        return int(self.count.add(np.array([failed], dtype=np.int64), noise)[0])


@dataclass(frozen=True, kw_only=True)
class Aggregation(ABC):
    """Collect the answers. Each aggregator defines what it releases from them.

    A record of this round is one block's answer: a grid point whose identity is the number of the block. A
    block that failed has no record, and counts as the public default. The database of answers has a public
    size. Its neighbors differ in what one block answers.

    Args:
        grid: the universe of the answers.
        blocks: number of blocks, public.
        default: answer of a block without one, grid steps (d,); public.
        failures: counts the blocks without an answer; None where the budget is too small for a useful count.
        radius: how the radius about the value is released; None if it is not, or comes with the value.
    """

    grid: Grid
    blocks: int
    default: tuple[int, ...]
    failures: CountFailures | None
    radius: StableRadius | None
    name: str = "aggregate"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        counted = () if self.failures is None else (self.failures.count,)
        about = () if self.radius is None else (self.radius.choice,)
        return (*counted, *self.value_draws(), *about)

    def summarize(self, block: Block, state: None) -> Outputs:
        """Collect the answers of some blocks."""
        return Outputs.of(block.ids, block.points)

    def release(self, aggregate: Outputs, state: None, noise: Noise) -> Stable | Unstable:
        """Release the number of failed blocks and, unless it is too large, the value."""
        failed = None
        if self.failures is not None:
            failed = self.failures.release(self.blocks - aggregate.answered(self.blocks), noise)
            if failed > self.failures.most:
                return Unstable()
        found = self.aggregate(aggregate.table(self.blocks, np.array(self.default)), noise)
        return found if isinstance(found, Unstable) else replace(found, failed=failed)

    @abstractmethod
    def value_draws(self) -> tuple[Draw, ...]:
        """Return the draws that `aggregate` can make for the value."""

    @abstractmethod
    def aggregate(self, points: Points, noise: Noise) -> Stable | Unstable:
        """Release a value and the radius about it from one answer of each block, shape (blocks, d)."""
