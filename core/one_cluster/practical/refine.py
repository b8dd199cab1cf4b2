"""The last rounds of the practical 1-cluster: the center moves to the mean, then a radius is fitted."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Tally
from core.domain import distances_squared
from core.draws import Additive, Draw, Laplace
from core.mechanisms.above_threshold import AboveThreshold
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.one_cluster.practical.boxes import Boxes
from core.one_cluster.practical.locate import Located
from core.rounds import Block

Ints = NDArray[np.int64]

RATIO = 1.05
"""Ratio of neighboring candidate radii of the fit."""


@dataclass(frozen=True)
class MoveToMean:
    """Move the center to the noisy mean of the records inside the ball.

    A record x inside the ball adds x - center to the sum: a vector of L2 norm at most R, the ball's radius,
    and of L1 norm at most sqrt(d) R. It adds 1 to the count. Sum and count are integers.

    Args:
        boxes: the family of boxes.
        in_box: whether only records of the chosen box count.
        sum: noise of the sum, per step of radius.
        count: noise of the count.
        smallest: where the noisy count is at most this, it may be noise alone, and the center stays.
    """

    boxes: Boxes
    in_box: bool
    sum: Additive
    count: Laplace
    smallest: int
    name: str
    floor: None = None
    purpose: ClassVar[str] = "the mean of the rows inside the ball so far"

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
        """Release the mean, moved into the ball if it is outside, and a ball about it that is no larger."""
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
    """Return the public candidate radii for a chosen box of side 2^level, in grid steps, ascending.

    The widest is half the box's diameter, or about the universe's diameter in a projection. The narrowest is
    about a 24th of the box's diameter, at least one step. At the finest level it is 0.

    Args:
        boxes: the family of boxes.
        level: of the chosen box.
        ratio: of neighboring candidates.
    """
    grid, side = boxes.grid, (1 << level) / boxes.unit
    diameter = side * math.sqrt(grid.dimension)
    everything = grid.diameter + 1  # about any center, also one outside of a ball of the domain
    widest = everything if boxes.projected else min(everything, math.ceil(diameter / 2))
    finest = level == boxes.bottom
    narrowest = 1.0 if finest else max(1.0, diameter / 24)
    steps = math.ceil(math.log(widest / narrowest) / math.log(ratio)) if widest > 1 else 0
    ladder = np.ceil(widest * ratio ** -np.arange(steps, -1.0, -1.0)).astype(np.int64)
    return np.unique(np.append(ladder, 0) if finest else ladder)


@dataclass(frozen=True)
class FitRadius:
    """Find the smallest radius about the released center that holds the target, and count the records inside.

    The count within a radius has sensitivity 1, and an added record never lowers it. AboveThreshold with
    monotone queries goes through the radii from the smallest up. Where no radius is chosen, the ball is the
    one that contains the box. The count of the released ball has sensitivity 1.

    Args:
        boxes: the family of boxes.
        target: count that the ball must reach.
        radius: chooses the radius.
        count: noise of the released count.
        excess: the noisy count exceeds the true one by more only with the job's failure probability.
        ratio: ratio of neighboring candidate radii.
    """

    boxes: Boxes
    target: int
    radius: AboveThreshold
    count: Laplace
    excess: int
    ratio: float = RATIO
    name: str = "fit_radius"
    floor: None = None
    purpose: ClassVar[str] = "the smallest radius that holds the target, and how many rows it holds"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.radius, self.count

    def summarize(self, block: Block, state: Located | NotFound) -> Tally:
        """Count the records between neighboring candidate radii; the last total is that of the box's ball."""
        if isinstance(state, NotFound):
            return Tally(np.zeros(1, dtype=np.int64))
        radii = candidate_radii(self.boxes, state.level, self.ratio)
        ring = np.searchsorted(radii**2, distances_squared(block.points, state.center), side="left")
        rings = np.bincount(ring, minlength=len(radii) + 1)[: len(radii)]
        center, radius = self.boxes.ball(state.level, state.corner)
        return Tally(np.append(rings, np.count_nonzero(distances_squared(block.points, center) <= radius**2)))

    def release(self, aggregate: Tally, state: Located | NotFound, noise: Noise) -> Found | NotFound:
        """Release a radius and the count inside; the ball that contains the box where none is chosen."""
        if isinstance(state, NotFound):
            return state
        radii = candidate_radii(self.boxes, state.level, self.ratio)
        within = np.cumsum(aggregate.totals[:-1])
        first = self.radius.first(within.tolist(), self.target, noise)
        if first is None:
            center, radius = self.boxes.ball(state.level, state.corner)
            held = aggregate.totals[-1:]
        else:
            center, radius, held = state.center, int(radii[first]), within[first : first + 1]
        count = int(self.count.add(held, noise)[0])
        return Found.counted(center, radius, count, self.excess)
