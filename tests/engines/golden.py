"""Rounds and data for the golden test of every engine: aggregates equal to those in memory, bit for bit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.aggregate import Aggregate, Counts, Tally
from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.paper_plan import plan_paper
from core.one_cluster.params import OneCluster
from core.one_cluster.practical_plan import plan_practical
from core.rounds import Block, Round, State
from core.sampling import poisson_sample
from tests.core.seeded import SeededNoise

NOISELESS = SeededNoise(0, factor=0.0)
GRID = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10)


@dataclass(frozen=True)
class Trace:
    """A state, and every aggregate that was released on the way to it."""

    aggregates: tuple[Aggregate, ...]
    state: State


@dataclass(frozen=True)
class Recorded:
    """The round `step`, with a `Trace` for a state."""

    step: Round

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def floor(self) -> int | None:
        return self.step.floor

    def summarize(self, block: Block, state: Trace) -> Aggregate:
        return self.step.summarize(block, state.state)

    def release(self, aggregate: Aggregate, state: Trace, noise: Noise) -> Trace:
        return Trace((*state.aggregates, aggregate), self.step.release(aggregate, state.state, noise))


@dataclass(frozen=True)
class HeaviestBox:
    """Sparse: choose the box of `side` that holds the most."""

    side: int = 32
    floor: int | None = 2
    name: str = "heaviest_box"

    def summarize(self, block: Block, state: State) -> Counts:
        columns, rows = (block.points // self.side).T
        return Counts.of(columns * 1000 + rows)

    def release(self, aggregate: Counts, state: State, noise: Noise) -> tuple[int, ...]:
        if not len(aggregate.keys):
            return (0, 0)
        key = int(aggregate.keys[noise.select(aggregate.counts, 1.0)])
        return key // 1000 * self.side, key % 1000 * self.side


@dataclass(frozen=True)
class SampledMean:
    """Sampled by identity: the sum and number of the sample's records."""

    rate: float = 0.3
    floor: int | None = None
    name: str = "sampled_mean"

    def summarize(self, block: Block, state: tuple[int, ...]) -> Tally:
        kept = block.points[poisson_sample(block.ids, self.rate, b"a salt of 16 byt", 1)]
        return Tally(np.append((kept - state).sum(axis=0), len(kept)))

    def release(self, aggregate: Tally, state: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        *total, count = noise.laplace(aggregate.totals, 1.0).tolist()
        return tuple(c + t // max(1, count) for c, t in zip(state, total, strict=True))


@dataclass(frozen=True)
class Rings:
    """Dense: count the records by their distance from the center so far."""

    floor: int | None = None
    name: str = "rings"

    def summarize(self, block: Block, state: tuple[int, ...]) -> Tally:
        squares = ((block.points - state) ** 2).sum(axis=1)
        edges = np.arange(1, 101) ** 2 * 250
        return Tally(np.bincount(np.searchsorted(edges, squares), minlength=101))

    def release(self, aggregate: Tally, state: tuple[int, ...], noise: Noise) -> State:
        return state, noise.laplace(aggregate.totals, 1.0).tolist()


@dataclass(frozen=True)
class Coarse:
    """The round `step` on a grid of 16 x 16 points, so that many records share one."""

    step: Round

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def floor(self) -> int | None:
        return self.step.floor

    def summarize(self, block: Block, state: State) -> Aggregate:
        return self.step.summarize(Block(block.points >> 6, block.ids), state)

    def release(self, aggregate: Aggregate, state: State, noise: Noise) -> State:
        return self.step.release(aggregate, state, noise)


BUDGET = Budget(1.0, 1e-6)
PRACTICAL = plan_practical(
    GRID, OneCluster(target=3000), BUDGET, Neighbors("add_or_remove_one"), b"a salt of 16 byt"
)
PAPER = plan_paper(
    Grid((0.0, 0.0), (1.0, 1.0), 2.0**-4),
    OneCluster(target=10**10),
    BUDGET,
    Neighbors("replace_one"),
    b"salt",
)

TASKS: Mapping[str, tuple[Sequence[Round], Any]] = {
    "every_kind": ([HeaviestBox(), SampledMean(), Rings()], None),
    "all_below_the_floor": ([HeaviestBox(floor=10**9), Rings()], None),
    "one_cluster": (PRACTICAL.rounds, PRACTICAL.start),
    "one_cluster_paper": ([Coarse(step) for step in PAPER.rounds], PAPER.start),
}


def recorded(task: str) -> tuple[list[Recorded], Trace]:
    """Return the rounds of `task`, recorded, and their start."""
    rounds, start = TASKS[task]
    return [Recorded(step) for step in rounds], Trace((), start)
