"""Rounds and data for the golden test of every engine: aggregates equal to those in memory, bit for bit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from core.aggregate import Aggregate, Counts, Tally
from core.budget import Budget
from core.domain import Grid
from core.each_group import EachGroup
from core.geography import Geography
from core.input_checks import Beside
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.params import OneCluster
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block, Examination, Round, State, Strand, examination_of, looks_of, sections_of
from core.sampling import poisson_sample
from core.side_by_side import SideBySide
from core.statistics.stored_totals import StoredTotals
from core.stored import Store, Stored
from pipelines.tasks import TASKS as APPLICATION
from tests.core.seeded import SeededNoise


class Fixed(SeededNoise):
    """Adds no noise, and chooses what lies a third of the way: whatever was drawn before, as workers draw.

    The middle would not do: samplers by rejection reject it for ever.
    """

    def below(self, bound: int) -> int:
        return bound // 3


NOISELESS = Fixed(0, factor=0.0)
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
    def purpose(self) -> str:  # without it no round counts as `core.rounds.Looking`
        return getattr(self.step, "purpose", "")

    @property
    def floor(self) -> int | None:
        return self.step.floor

    @property
    def looks(self) -> int:
        return looks_of(self.step)

    def coarse(self, state: Trace) -> "Recorded":
        return replace(self, step=cast(Any, self.step).coarse(state.state))

    def finer(self, aggregate: Aggregate, state: Trace) -> "Recorded":
        return replace(self, step=cast(Any, self.step).finer(aggregate, state.state))

    @property
    def examination(self) -> Examination | None:
        return examination_of(self.step)

    @property
    def sections(self) -> int:
        return sections_of(self.step)

    def examine(self, section: Any, state: State, noise: Noise, store: Store) -> Aggregate:
        return cast(Any, self.step).examine(section, state.state, noise, store)

    def summarize(self, block: Block, state: Trace) -> Aggregate:
        return self.step.summarize(block, state.state)

    def recount(self, counts: Stored, state: Trace) -> Aggregate:
        return cast(Any, self.step).recount(counts, state.state)

    def release(self, aggregate: Aggregate, state: Trace, noise: Noise) -> Trace:
        return Trace(
            (*state.aggregates, in_memory(aggregate)), self.step.release(aggregate, state.state, noise)
        )


def traced(strand: Strand) -> Strand:
    """Return a strand with a `Trace` for a state; of one that answers all groups, one for each of them."""
    (first, *_) = strand.rounds
    if isinstance(first, EachGroup):
        own = replace(first, rounds=tuple(map(Recorded, first.rounds)), start=Trace((), first.start))
        return Strand((own,), None)
    return Strand(tuple(map(Recorded, strand.rounds)), Trace((), strand.start))


def in_memory(aggregate: Aggregate) -> Aggregate:
    """Return an aggregate without parts in a store, which may be gone before the aggregate is looked at."""
    if isinstance(aggregate, Beside):
        return replace(aggregate, aggregate=in_memory(aggregate.aggregate))
    if isinstance(aggregate, SideBySide):
        return SideBySide(tuple(Stored.of(sample).whole() for sample in aggregate.samples))
    if isinstance(aggregate, Stored | StoredTotals):
        return aggregate.whole()
    return aggregate


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


BUDGET = Budget(1.0, 1e-6)
PRACTICAL = ONE_CLUSTER.plan(
    GRID, OneCluster(target=3000), BUDGET, Neighbors("add_or_remove_one"), b"a salt of 16 byt"
)
PAPER = ONE_CLUSTER.plan(
    Grid((0.0, 0.0), (1.0, 1.0), 2.0**-4),
    OneCluster(target=10**10, method="paper"),
    BUDGET,
    Neighbors("replace_one"),
    b"salt",
)


@dataclass(frozen=True)
class Seen:
    """The round `step` on points made of the table's, such as one axis, edges of a graph, or places."""

    step: Round
    kind: str

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def purpose(self) -> str:  # without it no round counts as `core.rounds.Looking`
        return getattr(self.step, "purpose", "")

    @property
    def floor(self) -> int | None:
        return self.step.floor

    @property
    def looks(self) -> int:
        return looks_of(self.step)

    def coarse(self, state: State) -> "Seen":
        return replace(self, step=cast(Any, self.step).coarse(state))

    def finer(self, aggregate: Aggregate, state: State) -> "Seen":
        return replace(self, step=cast(Any, self.step).finer(aggregate, state))

    @property
    def examination(self) -> Examination | None:
        return examination_of(self.step)

    @property
    def sections(self) -> int:
        return sections_of(self.step)

    def examine(self, section: Any, state: State, noise: Noise, store: Store) -> Aggregate:
        return cast(Any, self.step).examine(section, state, noise, store)

    def summarize(self, block: Block, state: State) -> Aggregate:
        points = block.points
        if self.kind == "axis":
            points = points[:, :1]
        elif self.kind == "wide":
            points = points[:, :1] << 30 | points[:, 1:] << 10
        elif self.kind == "wide_labeled":
            points = np.stack([points[:, 0] << 30 | points[:, 1] << 10, points[:, 1] >> 9], axis=1)
        elif self.kind == "labeled":
            points = np.stack([points[:, 0], points[:, 1] >> 9 << 10], axis=1)
        elif self.kind == "edges":
            points = points >> 6
        elif self.kind == "weighted":
            points = np.stack([points[:, 0] >> 6, points[:, 1] >> 6, points[:, 0] & 7], axis=1)
        elif self.kind == "earth":
            points = EARTH.quantize(points / 1024 * [10.0, 2.0] + [-20.0, 179.0])
        return self.step.summarize(Block(points, block.ids), state)

    def release(self, aggregate: Aggregate, state: State, noise: Noise) -> State:
        return self.step.release(aggregate, state, noise)


EARTH = Grid.on_earth(Geography.of((-90, -180), (90, 180), 100.0))
_EDGES = Grid((0.0, 0.0), (16.0, 16.0), 1.0)
_GRIDS = {
    "plane": GRID,
    "axis": Grid((0.0,), (1.0,), 2.0**-10),
    "wide": Grid((0.0,), (2.0**41,), 1.0),
    "wide_labeled": Grid((0.0, 0.0), (2.0**41, 1.0), 1.0),
    "labeled": GRID,
    "edges": _EDGES,
    "earth": EARTH,
    "weighted": Grid((0.0, 0.0, 0.0), (16.0, 16.0, 8.0), 1.0),
}


def planned(task: str, kind: str, **params: Any) -> tuple[Sequence[Round], Any]:
    """Return rounds and start of a task as an application would plan it."""
    known = APPLICATION[task]
    neighbors = Neighbors("add_or_remove_one")
    plan = known.core.plan(_GRIDS[kind], known.params(**params), BUDGET, neighbors, b"a salt of 16 byt")
    return [Seen(step, kind) for step in plan.rounds], plan.start


OTHERS: dict[str, tuple[Sequence[Round], Any]] = {
    "histogram": planned("histogram", "plane", cells=50),
    "sparse_histogram": planned("histogram", "plane", cells=50, method="sparse", floor=1),
    "cdf": planned("cdf", "axis"),
    "ranges": planned("ranges", "plane"),
    "bounds": planned("bounds", "plane"),
    "plane_median": planned("median", "plane"),
    "quantiles": planned("quantiles", "axis", probabilities=(0.2, 0.5, 0.9)),
    "interior_point": planned("interior_point", "axis"),
    "threshold": planned("threshold", "labeled"),
    "wide_threshold": planned("threshold", "wide_labeled", method="exponential"),
    "wide_threshold_by_ranks": planned("threshold", "wide_labeled", method="interior_point"),
    "median": planned("median", "axis"),
    "minimum": planned("minimum", "axis", method="smooth"),
    "wide_median": planned("median", "wide"),
    "wide_quantiles": planned("quantiles", "wide", probabilities=(0.2, 0.5, 0.9)),
    "wide_interior_point": planned("interior_point", "wide", method="exponential"),
    "k_means": planned("k_means", "plane", k=4),
    "k_median": planned("k_median", "plane", k=4),
    "one_cluster_on_earth": planned("one_cluster", "earth", target=3000),
    "k_means_on_earth": planned("k_means", "earth", k=4),
    "triangles": planned("triangles", "edges"),
    "mst_cost": planned("mst_cost", "weighted"),
}
"""Tasks that are run a few ways, not every way."""

TASKS: dict[str, tuple[Sequence[Round], Any]] = {
    "every_kind": ([HeaviestBox(), SampledMean(), Rings()], None),
    "all_below_the_floor": ([HeaviestBox(floor=10**9), Rings()], None),
    "one_cluster": (PRACTICAL.rounds, PRACTICAL.start),
    "one_cluster_paper": ([Seen(step, "edges") for step in PAPER.rounds], PAPER.start),
}


def recorded(task: str) -> tuple[list[Recorded], Trace]:
    """Return the rounds of `task`, recorded, and their start."""
    rounds, start = (TASKS | OTHERS)[task]
    return [Recorded(step) for step in rounds], Trace((), start)
