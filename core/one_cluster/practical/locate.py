"""The first two rounds of the practical 1-cluster: a side of boxes, and a box of that side."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.domain import Points
from core.draws import Draw
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.choosing import Choosing
from core.noise import Noise
from core.one_cluster.found import NotFound
from core.one_cluster.practical.boxes import Boxes
from core.rounds import Block
from core.sampling import poisson_sample

Ints = NDArray[np.int64]

_EMPTY = Counts(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Scaled:
    """A level at which some box holds about `target` records."""

    level: int


@dataclass(frozen=True)
class Located:
    """The ball whose records the next average sums up. It bounds a record's influence for any data.

    Args:
        center: shape (d,), grid steps.
        radius: grid steps.
        level: level of the chosen box.
        corner: lowest coordinates of the chosen box in the boxes' space, shape (k,).
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
    """Find the smallest dyadic side at which some box holds the target.

    A record is in one box of every level and offset. So the largest count of a level has sensitivity 1, and
    an added record lowers none of these counts. AboveThreshold with monotone queries goes through them from
    the finest level up. Clipping at the floor keeps both properties.

    Args:
        boxes: the family of boxes.
        sample: the sample that this round sees.
        floor: clipping floor of the counts.
        threshold: count, in the sample, at which a level is good.
        level: chooses the level.
    """

    boxes: Boxes
    sample: PoissonSample
    floor: int
    threshold: int
    level: AboveThreshold
    name: str = "good_radius"
    purpose: ClassVar[str] = "how wide a box must be to hold the target"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.level,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the sample's records in every box of every level."""
        coordinates = self.boxes.coordinates(self.sample.of(block))
        offsets = self.boxes.offsets(fine=False)
        return Counts.joined(
            [
                Counts.of(keys)
                for level in self.boxes.levels
                for keys in self.boxes.keys(coordinates, level, offsets)
            ]
        )

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Scaled | NotFound:
        """Release the first level, from the finest, whose fullest box reaches the threshold."""
        fullest = {level: 0 for level in self.boxes.levels}
        for level in fullest:
            here = aggregate.counts[self.boxes.of_level(aggregate.keys, level)]
            fullest[level] = self.floor + int(here.max(initial=0))
        first = self.level.first(fullest.values(), self.threshold, noise)
        return NotFound() if first is None else Scaled(self.boxes.levels[first])


@dataclass(frozen=True)
class FindBox:
    """Choose one box of the released side, among many offsets.

    A record is in one box of every offset. So every count changes by at most 1, and an added record lowers
    none. The choosing mechanism chooses among the boxes above the floor.

    Args:
        boxes: the family of boxes.
        sample: the sample that this round sees, independent of the other rounds'.
        floor: clipping floor of the counts.
        box: chooses the box.
    """

    boxes: Boxes
    sample: PoissonSample
    floor: int
    box: Choosing
    name: str = "good_center"
    purpose: ClassVar[str] = "which box of that width holds the most rows"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.box,)

    def summarize(self, block: Block, state: Scaled | NotFound) -> Counts:
        """Count the sample's records in every box of the released side."""
        if isinstance(state, NotFound):
            return _EMPTY
        coordinates = self.boxes.coordinates(self.sample.of(block))
        offsets = self.boxes.offsets(fine=True)
        return Counts.joined([Counts.of(keys) for keys in self.boxes.keys(coordinates, state.level, offsets)])

    def release(self, aggregate: Counts, state: Scaled | NotFound, noise: Noise) -> Located | NotFound:
        """Release one box, and a ball that contains every grid point of the box.

        In a projection, this ball is the one that bounds the universe.
        """
        if isinstance(state, NotFound):
            return state
        chosen = self.box.choose(aggregate.keys, aggregate.counts, noise)
        if chosen is None:
            return NotFound()
        grid, side = self.boxes.grid, 1 << state.level
        offsets = self.boxes.offsets(fine=True)
        corner = self.boxes.corner(chosen, state.level, offsets)
        if self.boxes.projected:
            return Located(np.asarray(grid.bounding_center), grid.bounding_radius, state.level, corner)
        center = np.clip(corner + side // 2, 0, np.asarray(grid.extents))
        return Located(center, math.ceil(side * math.sqrt(grid.dimension) / 2), state.level, corner)
