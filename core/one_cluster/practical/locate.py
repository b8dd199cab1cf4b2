"""The first round of the practical 1-cluster: a size of regions, and a region of that size."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Points
from core.draws import Draw
from core.mechanisms.choosing import Choosing
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.one_cluster.found import NotFound
from core.one_cluster.practical.regions import Regions
from core.one_cluster.practical.tiles import MOST_COUNTS, crowded_of_all
from core.rounds import Block
from core.sampling import poisson_sample
from core.side_by_side import SideBySide
from core.stored import Store, Stored

Ints = NDArray[np.int64]

_FEW = 3
"""Columns up to which the pairs of a tile were seen to take half of what they may."""


@dataclass(frozen=True)
class Scaled:
    """A level at which some region holds about `target` records."""

    level: int


@dataclass(frozen=True)
class Located:
    """The ball whose records the next average sums up. It bounds a record's influence for any data.

    Args:
        center: shape (d,), grid steps.
        radius: grid steps.
        level: level of the chosen region.
        corner: lowest coordinates of the chosen region in the regions' space, shape (k,).
    """

    center: Ints
    radius: int
    level: int
    corner: Ints


@dataclass(frozen=True)
class PoissonSample:
    """The records that one round sees.

    Args:
        rate: public probability with which a record is kept.
        salt: 16 secret bytes.
        tweak: public number that makes the samples of different rounds independent.
    """

    rate: float
    salt: bytes = field(repr=False)
    tweak: int

    def of(self, block: Block) -> Points:
        """Return the sampled records of `block`, shape (at most n, d)."""
        if self.rate >= 1:
            return block.points
        return block.points[poisson_sample(block.ids, self.rate, self.salt, self.tweak)]


@dataclass(frozen=True)
class FindRadius:
    """Choose a level whose regions are just large enough for one of them to hold the target.

    Let C_l be the largest count of a region of level l, with level 0 as the finest, and let C_-1 = 0. The
    score of level l is -max(0, target - C_l, C_(l - 1) - target): minus the number of records by which its
    regions hold too few, or by which the next finer ones hold too many. Each of these numbers is at most
    two thirds of the target, rounded up, so that most regions need not be counted. One more candidate,
    "nothing", is scored like a level above the top whose regions hold enough. The first level that reaches
    the target has the score 0, or "nothing" has it if none does.

    Sensitivity. A record counts at most once in a region, so an added record raises each C_l by 0 or 1, also
    after it is moved between two public bounds. The score depends on two of these counts, falls in one and
    rises in the other, and moves by at most 1. So the change of the scores has a range of at most 2.

    Args:
        regions: whose records are counted.
        sample: whose records are counted.
        target: count, in the sample, at which a region is large enough.
        level: chooses the level; of spread 2.
    """

    regions: Regions
    sample: PoissonSample
    target: int
    level: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.level,)

    def release(self, aggregate: Counts | Stored, noise: Noise) -> Scaled | NotFound:
        """Release a level whose fullest region holds about the target, or nothing, given the cells."""
        chosen = self.level.candidate(self._scores(aggregate), noise)
        levels = self.regions.levels
        return NotFound() if chosen == len(levels) else Scaled(levels[chosen])

    def _scores(self, aggregate: Counts | Stored) -> Ints:
        """Score every level from the finest, and then "nothing", shape (levels + 1,)."""
        low = self.target // 3
        high = 2 * self.target - low
        fullest = self.regions.fullest(aggregate, low, high)
        away = fullest - self.target
        return np.asarray(-np.maximum(0, np.maximum(np.append(-away, 0), np.append(0, away))))


@dataclass(frozen=True)
class FindRegion:
    """Choose one region of the released level.

    A record is in at most `regions.most_keys` regions. So an added record raises so many counts by 1, and
    lowers none. The choosing mechanism chooses among the regions above the floor.

    Args:
        regions: whose records are counted.
        sample: whose records are counted, independent of other samples.
        floor: clipping floor of the counts.
        region: chooses the region.
    """

    regions: Regions
    sample: PoissonSample
    floor: int
    region: Choosing

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.region,)

    def release(self, aggregate: Counts | Stored, scaled: Scaled, noise: Noise) -> Located | NotFound:
        """Release one region, and a ball that contains it, given the cells."""
        cells = Stored.of(aggregate)

        def scores() -> Iterator[tuple[Ints, Ints]]:
            for part in crowded_of_all(self.regions, cells, scaled.level, self.floor):
                yield part.keys, part.counts

        chosen = self.region.choose(scores, noise)
        if chosen is None:
            return NotFound()
        corner = self.regions.corner(chosen, scaled.level)
        return Located(*self.regions.ball(scaled.level, corner), scaled.level, corner)


@dataclass(frozen=True)
class FindRadiusAndRegion:
    """Choose a level, and then one region of that level, from one pass over the records.

    Both choices need the cells of a sample alone, whatever the level. So one pass counts the cells of both
    samples, and the private stage counts the regions of the level once it has been chosen.

    Sensitivity. `FindRadius` and `FindRegion` say how a record moves the scores of their draws. The samples
    are independent, because their tweaks differ, and each draw is charged at the rate of its own sample. The
    second draw may depend on the first, whose answer is as good as public: that is adaptive composition. Each
    draw is made once.

    Where both samples have all records, their cells are counted once. There may be as many as records. So
    their counts are merged in parts, which wait in a store, and regions are counted tile by tile; see
    `core.one_cluster.practical.tiles`.

    Args:
        radius: chooses the level, from unclipped cells.
        region: chooses the region.
    """

    radius: FindRadius
    region: FindRegion
    name: str = "good_radius_and_center"
    floor: None = None
    sections: ClassVar[int] = 256
    """Parts of the counts, of which a worker holds one at a time: of a hundred million cells, 400,000."""
    purpose: ClassVar[str] = "how wide a region must be to hold the target, and which one holds the most"

    @property
    def most_counts(self) -> int:
        """See `core.held`; in few columns the pairs of a tile take half."""
        return MOST_COUNTS // 2 if self.radius.regions.grid.dimension <= _FEW else MOST_COUNTS

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return *self.radius.draws(), *self.region.draws()

    @property
    def samples(self) -> tuple[PoissonSample, ...]:
        """The samples that are counted: that of the level, and that of the region unless it is equal."""
        both = self.radius.sample, self.region.sample
        return both[:1] if all(sample.rate >= 1 for sample in both) else both

    def summarize(self, block: Block, state: None) -> SideBySide:
        """Count the records of every cell, in each sample."""
        return SideBySide(tuple(self.radius.regions.tally(sample.of(block)) for sample in self.samples))

    def examine(self, section: SideBySide, state: None, noise: Noise, store: Store) -> SideBySide:
        """Store the counts of a section; see `core.rounds.RoundInSections`."""
        return SideBySide(tuple(Stored.of(counts, store) for counts in section.samples))

    def release(self, aggregate: SideBySide, state: None, noise: Noise) -> Located | NotFound:
        """Release a region whose level is just large enough to hold the target, and a ball about it."""
        cells = aggregate.samples
        scaled = self.radius.release(cells[0], noise)
        return scaled if isinstance(scaled, NotFound) else self.region.release(cells[-1], scaled, noise)


def certified_factor(regions: Regions | None, level: int, radius: int) -> float | None:
    """Return how many times the radius of the smallest ball of the target a radius is, at most.

    Consider one smallest ball that holds the target. Where `FindRadius` chose the level l, this ball lies in
    no region of level l - 1, but for a failure of its draw, or of its sample to keep enough of this ball's
    records. So its radius is at least `regions.holds(l - 1)`. Under sampling nothing is said about other
    regions of level l - 1: one of them may hold the target, and the sample may have missed that.

    Args:
        regions: whose records were counted; None where the draw of the level may fail too often.
        level: the released level.
        radius: of the released ball, grid steps.

    Returns:
        The factor; None where nothing is known about smaller balls.
    """
    if regions is None or regions.projected or level == regions.bottom:
        return None
    smallest = regions.holds(level - 1)
    return max(1.0, radius / smallest) if smallest > 0 else None
