"""Cover the records by k balls: the 1-cluster again and again, each time of what is not yet covered."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from core.aggregate import Tally
from core.balls import Balls
from core.draws import Charged, Draw, Laplace
from core.k_cover.found import Cover
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.rounds import Block

_LARGEST_TARGET = 2**53 - 1


@dataclass(frozen=True)
class Target:
    """How many records the next ball should hold; exactly one of `each` and `coverage` is given.

    Args:
        k: how many balls in all.
        each: the same target for all of them.
        coverage: share of all records: what is missing from it is spread over the balls that are left.
    """

    k: int
    each: int | None
    coverage: float | None

    def of(self, state: Cover) -> int:
        """Return the target after `state`, 0 where nothing is missing."""
        if self.coverage is None or state.rows is None:
            return self.each or 0
        missing = self.coverage * state.rows - sum(ball.count for ball in state.balls)
        return min(_LARGEST_TARGET, max(0, math.ceil(missing / max(1, self.k - len(state.balls)))))


@dataclass(frozen=True)
class CountRows:
    """Count all records: the coverage asked for is a share of them.

    One record more or less changes the count by 1; where one is replaced it is public.

    Args:
        count: noise of the count.
    """

    count: Laplace
    name: str = "rows"
    floor: None = None
    purpose: ClassVar[str] = "how many rows there are"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.count,)

    def summarize(self, block: Block, state: Cover) -> Tally:
        """Count the records of the block."""
        return Tally(np.array([len(block.points)], dtype=np.int64))

    def release(self, aggregate: Tally, state: Cover, noise: Noise) -> Cover:
        """Release the count."""
        return replace(state, rows=max(0, int(self.count.add(aggregate.totals, noise)[0])))


class Search(Protocol):
    """The rounds of the 1-cluster that looks for one ball."""

    def step(self, target: int) -> Charged:
        """Return the round for a target of at least 1; floors and noise scales don't depend on it."""


@dataclass(frozen=True)
class CoverRound:
    """One round of the search for one ball, which sees only records that no earlier ball holds.

    The balls are public, so the records that they hold are left out without a look at the other records.
    Neighbors stay neighbors or become equal. Where a record is replaced, the records left may instead differ
    by one that is added or removed, which is half a replacement. So this round is as private as the round of
    the 1-cluster that gets the records left, at any target made from public values (adaptive composition).
    Once nothing was found, no more noise is drawn.

    Args:
        search: makes the round.
        target: makes its target.
        last: whether this round ends with a ball.
        name: of the round, with the number of the ball.
        purpose: what the round finds out.
        floor: clipping floor of the round's aggregate.
        drawn: the draws of the round of the 1-cluster.
    """

    search: Search
    target: Target
    last: bool
    name: str
    purpose: str
    floor: int | None
    drawn: tuple[Draw, ...]

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.drawn

    def summarize(self, block: Block, state: Cover) -> Any:
        """Aggregate the records of the block that are left."""
        return self._step(state).summarize(_left(block, state), state.search)

    def release(self, aggregate: Any, state: Cover, noise: Noise) -> Cover:
        """Pass the aggregate on; after the last round there is one ball more, or an end."""
        if state.ended or self.target.of(state) < 1:
            return replace(state, search=NotFound())
        search = self._step(state).release(aggregate, state.search, noise)
        if self.last and isinstance(search, Found):
            return replace(state, balls=(*state.balls, search), search=None)
        return replace(state, search=search)

    def _step(self, state: Cover) -> Charged:
        return self.search.step(max(1, self.target.of(state)))


def _left(block: Block, state: Cover) -> Block:
    """Return the records that are in no ball; none where nothing more is looked for."""
    if state.ended:
        return Block(block.points[:0], block.ids[:0])
    if not state.balls:
        return block
    balls = Balls(
        np.stack([ball.center for ball in state.balls]), np.array([ball.radius for ball in state.balls])
    )
    left = ~balls.hold(block.points)
    return Block(block.points.T[:, left].T, block.ids[left])  # keeps its axes together in memory
