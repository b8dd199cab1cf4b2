"""Locate a small cluster: radius and center by box counts, then averages, then a fitted radius."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts, Tally
from core.domain import Grid, Points
from core.draws import Additive, Draw, Laplace
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.choosing import Choosing
from core.noise import Noise
from core.one_cluster.practical.boxes import Boxes
from core.rounds import Block
from core.sampling import poisson_sample

Ints = NDArray[np.int64]

RATIO = 1.05
"""Ratio of neighboring candidate radii of the fit."""

_EMPTY = Counts(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class NotFound:
    """No answer: nothing was dense enough."""

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return None: the outcome is not_found."""
        return None


@dataclass(frozen=True)
class Scaled:
    """A level at which some box holds about `target` records."""

    level: int


@dataclass(frozen=True)
class Located:
    """A ball that bounds the next average, whatever the data.

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
class Found:
    """The released ball.

    Args:
        center: shape (d,), grid steps.
        radius: grid steps.
        count: noisy number of records within `radius` of `center`.
    """

    center: Ints
    radius: int
    count: int

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return center and radius in data units, and the count."""
        return {
            "center": grid.restore(self.center).tolist(),
            "radius": self.radius * grid.step,
            "count": self.count,
        }


@dataclass(frozen=True)
class Thinning:
    """Poisson sampling of a round: the public rate, the secret salt, and what tells rounds apart."""

    rate: float
    salt: bytes = field(repr=False)
    tweak: int

    def sample(self, block: Block) -> Points:
        """Return the sampled records of `block`, shape (at most n, d)."""
        if self.rate >= 1:
            return block.points
        return block.points[poisson_sample(block.ids, self.rate, self.salt, self.tweak)]


@dataclass(frozen=True)
class GoodRadius:
    """Find the smallest dyadic side at which some box holds the target.

    One record is in one box of every level and offset, so the largest count of a level has
    sensitivity 1, and all of them grow with the database: AboveThreshold, monotone, from the
    finest level up. Clipping at the floor keeps both properties.

    Args:
        boxes: the family of boxes.
        thinning: the sample this round sees.
        floor: clipping floor of the counts.
        threshold: count, in the sample, at which a level is good.
        level: chooses the level.
    """

    boxes: Boxes
    thinning: Thinning
    floor: int
    threshold: int
    level: AboveThreshold
    name: str = "good_radius"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.level,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the sample's records in every box of every level."""
        coordinates = self.boxes.coordinates(self.thinning.sample(block))
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
class GoodCenter:
    """Choose one box of the released side, among many offsets.

    A record is in one box per offset, every count moves by at most 1 and all up when a record is
    added: the choosing mechanism over the boxes above the floor.

    Args:
        boxes: the family of boxes.
        thinning: the sample this round sees, independent of the other rounds'.
        floor: clipping floor of the counts.
        box: chooses the box.
    """

    boxes: Boxes
    thinning: Thinning
    floor: int
    box: Choosing
    name: str = "good_center"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.box,)

    def summarize(self, block: Block, state: Scaled | NotFound) -> Counts:
        """Count the sample's records in every box of the released side."""
        if isinstance(state, NotFound):
            return _EMPTY
        coordinates = self.boxes.coordinates(self.thinning.sample(block))
        offsets = self.boxes.offsets(fine=True)
        return Counts.joined([Counts.of(keys) for keys in self.boxes.keys(coordinates, state.level, offsets)])

    def release(self, aggregate: Counts, state: Scaled | NotFound, noise: Noise) -> Located | NotFound:
        """Release one box, and the ball about it that holds everything projected into it."""
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


@dataclass(frozen=True)
class NoisyAverage:
    """Move the center to the noisy mean of the records inside the ball.

    Per record the sum of x - center has L2 norm at most the ball's radius R, L1 norm at most
    sqrt(d) R, and adds 1 to the count; both sums are integers.

    Args:
        boxes: the family of boxes.
        in_box: whether only records of the chosen box count.
        sum: noise of the sum, per step of radius.
        count: noise of the count.
        smallest: a count at or below it is taken for noise: the center stays.
    """

    boxes: Boxes
    in_box: bool
    sum: Additive
    count: Laplace
    smallest: int
    name: str
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.sum, self.count

    def summarize(self, block: Block, state: Located | NotFound) -> Tally:
        """Sum x - center over the records inside the ball; the last total is their count."""
        dimension = self.boxes.grid.dimension
        if isinstance(state, NotFound):
            return Tally(np.zeros(dimension + 1, dtype=np.int64))
        points = block.points
        if self.in_box:
            inside = self.boxes.coordinates(points) - state.corner
            points = points[((inside >= 0) & (inside < (1 << state.level))).all(axis=1)]
        moved = points - state.center
        moved = moved[np.einsum("ij,ij->i", moved, moved) <= state.radius**2]
        return Tally(np.append(moved.sum(axis=0), len(moved)))

    def release(self, aggregate: Tally, state: Located | NotFound, noise: Noise) -> Located | NotFound:
        """Release the mean, kept inside the ball, and a smaller ball about it."""
        if isinstance(state, NotFound):
            return state
        total = self.sum.add(aggregate.totals[:-1], noise, unit=state.radius)
        count = int(self.count.add(aggregate.totals[-1:], noise)[0])
        error = 0.0
        move = np.zeros(len(total))
        if count > self.smallest:
            move = total / count
            length = float(np.linalg.norm(move))
            move *= min(1.0, state.radius / max(length, 1e-9))
            spread = self.sum.deviation * state.radius
            error = 1.2 * spread * math.sqrt(len(total)) / count
        grid, side = self.boxes.grid, 1 << state.level
        center = np.clip(state.center + np.rint(move).astype(np.int64), 0, np.asarray(grid.extents))
        if self.boxes.projected:
            reach = side / self.boxes.unit * math.sqrt(grid.dimension) / 3
        else:
            center = np.clip(center, state.corner, state.corner + side)
            reach = 0.75 * side
        radius = math.ceil(reach + error) + 1
        return Located(center, min(radius, state.radius), state.level, state.corner)


def candidate_radii(boxes: Boxes, level: int, ratio: float = RATIO) -> Ints:
    """Return the candidate radii in grid steps, ascending, after boxes of side 2^level: public.

    The widest is the box's diameter (the universe's after a projection), the narrowest what a ball that no
    box of half the side could hold may have.

    Args:
        boxes: the family of boxes.
        level: of the chosen box.
        ratio: of neighboring candidates.
    """
    grid, side = boxes.grid, (1 << level) / boxes.unit
    diameter = side * math.sqrt(grid.dimension)
    everything = min(2 * grid.bounding_radius, grid.diameter + 1)  # squares of radii must not wrap
    widest = everything if boxes.projected else min(everything, math.ceil(diameter))
    finest = level == boxes.bottom
    narrowest = 1.0 if finest else max(1.0, diameter / 24)
    steps = math.ceil(math.log(widest / narrowest) / math.log(ratio)) if widest > 1 else 0
    ladder = np.ceil(widest * ratio ** -np.arange(steps, -1.0, -1.0)).astype(np.int64)
    return np.unique(np.append(ladder, 0) if finest else ladder)


@dataclass(frozen=True)
class FitRadius:
    """Fit the smallest radius that holds the target about the released center, and count it.

    The counts within growing radii have sensitivity 1 and grow with the database: AboveThreshold,
    monotone. A ball's count has sensitivity 1.

    Args:
        boxes: the family of boxes.
        target: count at which the radius is good.
        radius: chooses the radius.
        count: noise of the released count.
        ratio: ratio of neighboring candidate radii.
    """

    boxes: Boxes
    target: int
    radius: AboveThreshold
    count: Laplace
    ratio: float = RATIO
    name: str = "fit_radius"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.radius, self.count

    def summarize(self, block: Block, state: Located | NotFound) -> Tally:
        """Count the records between neighboring candidate radii about the center."""
        if isinstance(state, NotFound):
            return Tally(np.zeros(1, dtype=np.int64))
        moved = block.points - state.center
        squares = np.einsum("ij,ij->i", moved, moved)
        radii = candidate_radii(self.boxes, state.level, self.ratio)
        ring = np.searchsorted(radii**2, squares, side="left")
        return Tally(np.bincount(ring, minlength=len(radii) + 1)[: len(radii)])

    def release(self, aggregate: Tally, state: Located | NotFound, noise: Noise) -> Found | NotFound:
        """Release a radius (the widest where none reaches the target) and the count inside."""
        if isinstance(state, NotFound):
            return state
        radii = candidate_radii(self.boxes, state.level, self.ratio)
        within = np.cumsum(aggregate.totals)
        first = self.radius.first(within.tolist(), self.target, noise)
        last = len(radii) - 1 if first is None else first
        count = int(self.count.add(within[last : last + 1], noise)[0])
        return Found(state.center, int(radii[last]), max(0, count))
