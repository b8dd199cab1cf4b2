"""The first two rounds of the practical 1-cluster: a side of boxes, and a box of that side."""

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
    """Choose a dyadic side that is just wide enough for some box to hold the target.

    Let C_l be the largest count of a box of level l, with level 0 as the finest, and let C_-1 = 0. The score
    of level l is -max(0, target - C_l, C_(l - 1) - target): minus the number of records by which its boxes
    hold too few, or by which the next finer ones hold too many. One more candidate, "nothing", is scored like
    a level above the top whose boxes hold enough. The first level that reaches the target has the score 0, or
    "nothing" has it if none does.

    Sensitivity. A record is in one box of every level and offset, so an added record raises each C_l by 0 or
    1. The score depends on two of these counts, falls in one and rises in the other, and moves by at most 1.
    So the change of the scores has a range of at most 2. Clipping at the floor keeps this.

    Args:
        boxes: the family of boxes.
        sample: the sample that this round sees.
        floor: clipping floor of the counts.
        target: count, in the sample, at which a side is wide enough.
        level: chooses the level; of spread 2.
    """

    boxes: Boxes
    sample: PoissonSample
    floor: int
    target: int
    level: Exponential
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
        """Release a level whose fullest box holds about the target, or nothing."""
        chosen = self.level.candidate(self._scores(aggregate), noise)
        levels = self.boxes.levels
        return NotFound() if chosen == len(levels) else Scaled(levels[chosen])

    def _scores(self, aggregate: Counts) -> Ints:
        """Score every level from the finest, and then "nothing", shape (levels + 1,)."""
        fullest = [
            self.floor + int(aggregate.counts[self.boxes.of_level(aggregate.keys, level)].max(initial=0))
            for level in self.boxes.levels
        ]
        away = np.array(fullest, dtype=np.int64) - self.target
        return np.asarray(-np.maximum(0, np.maximum(np.append(-away, 0), np.append(0, away))))


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
        """Release one box, and a ball that contains it; see `Boxes.ball`."""
        if isinstance(state, NotFound):
            return state
        chosen = self.box.choose(aggregate.keys, aggregate.counts, noise)
        if chosen is None:
            return NotFound()
        corner = self.boxes.corner(chosen, state.level, self.boxes.offsets(fine=True))
        return Located(*self.boxes.ball(state.level, corner), state.level, corner)
