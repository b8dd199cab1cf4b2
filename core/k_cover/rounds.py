"""Cover the records by k balls: repeat the 1-cluster on the records that are not yet covered."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from core.aggregate import Tally
from core.balls import Balls
from core.draws import Charged, Draw, Laplace
from core.k_cover.found import Cover
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.one_cluster.practical.tiles import MOST_COUNTS
from core.rounds import Block
from core.stored import Store

_LARGEST_TARGET = 2**53 - 1


@dataclass(frozen=True)
class Target:
    """How many records the next ball should hold; exactly one of `each` and `coverage` is given.

    Args:
        k: how many balls in all.
        each: the target of every ball.
        coverage: share of all records that the balls should hold together. The next target is the number of
            records still missing from it, divided by the number of balls still to be found.
    """

    k: int
    each: int | None
    coverage: float | None

    def of(self, state: Cover) -> int:
        """Return the target of the next ball after `state`; 0 where the coverage is reached."""
        if self.coverage is None or state.rows is None:
            return self.each or 0
        missing = self.coverage * state.rows - sum(ball.count for ball in state.balls)
        return min(_LARGEST_TARGET, max(0, math.ceil(missing / max(1, self.k - len(state.balls)))))


@dataclass(frozen=True)
class CountRows:
    """Count all records, because `coverage` is a share of them.

    Adding or removing one record changes the count by 1. Under `replace_one` the count is public.

    Args:
        count: noise of the count.
    """

    count: Laplace
    name: str = "total"
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
        """Return the round for a target of at least 1; noise scales don't depend on it."""


@dataclass(frozen=True)
class CoverRound:
    """One round of the search for one ball, which sees only records that no earlier ball holds.

    Privacy:

    1. The balls are public. So whether a record is left out depends on this record alone.
    2. If neighbors differ in one added or removed record, the records left differ in that record or not at
       all.
    3. If neighbors differ in one replaced record, the records left differ in a replaced record, in one added
       or removed record, or not at all. An added or removed record is half a replacement.
    4. So this round costs no more than the round of the 1-cluster on the records left. The target is made
       from public values, so this holds for any target (adaptive composition).

    Once a search has found nothing, no more noise is drawn.

    Args:
        search: makes the round.
        target: makes its target.
        last: whether this round ends with a ball.
        name: of the round, with the number of the ball.
        purpose: what the round finds out.
        sections: of the round's aggregate; see `core.rounds.RoundInSections`.
        drawn: the draws of the round of the 1-cluster.
    """

    search: Search
    target: Target
    last: bool
    name: str
    purpose: str
    sections: int
    drawn: tuple[Draw, ...]
    floor: None = None

    @property
    def most_counts(self) -> int:
        """See `core.held`."""
        return MOST_COUNTS if self.sections else 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.drawn

    def examine(self, section: Any, state: Cover, noise: Noise, store: Store) -> Any:
        """See `core.rounds.RoundInSections`."""
        return cast(Any, self._step(state)).examine(section, state.search, noise, store)

    def summarize(self, block: Block, state: Cover) -> Any:
        """Aggregate the records of the block that no earlier ball holds."""
        return self._step(state).summarize(_left(block, state), state.search)

    def release(self, aggregate: Any, state: Cover, noise: Noise) -> Cover:
        """Run the 1-cluster's round; its last round adds a ball, or ends the search for all balls."""
        if state.ended or self.target.of(state) < 1:
            return replace(state, search=NotFound())
        search = self._step(state).release(aggregate, state.search, noise)
        if self.last and isinstance(search, Found):
            return replace(state, balls=(*state.balls, search), search=None)
        return replace(state, search=search)

    def _step(self, state: Cover) -> Charged:
        return self.search.step(max(1, self.target.of(state)))


def _left(block: Block, state: Cover) -> Block:
    """Return the records that are in no ball; no records once the search has ended."""
    if state.ended:
        return Block(block.points[:0], block.ids[:0])
    if not state.balls:
        return block
    balls = Balls(
        np.stack([ball.center for ball in state.balls]), np.array([ball.radius for ball in state.balls])
    )
    left = ~balls.hold(block.points)
    return Block(block.points.T[:, left].T, block.ids[left])  # each axis stays contiguous in memory
