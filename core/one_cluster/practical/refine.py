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
from core.one_cluster.practical.locate import Located, certified_factor
from core.one_cluster.practical.regions import Regions
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
        regions: whose records are counted.
        in_box: whether only records of the chosen box of a projection count.
        sum: noise of the sum, per step of radius.
        count: noise of the count.
        smallest: where the noisy count is at most this, it may be noise alone, and the center stays.
    """

    regions: Regions
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
        dimension = self.regions.grid.dimension
        if isinstance(state, NotFound):
            return Tally(np.zeros(dimension + 1, dtype=np.int64))
        points = block.points
        if self.in_box:
            inside = self.regions.coordinates(points) - state.corner
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
        grid = self.regions.grid
        center = np.clip(state.center + np.rint(move).astype(np.int64), 0, np.asarray(grid.extents))
        if not self.regions.projected:
            return Located(center, state.radius, state.level, state.corner)
        reach = self.regions.side(state.level) / self.regions.unit * math.sqrt(grid.dimension) / 3
        radius = min(state.radius, math.ceil(reach + error) + 1)
        return Located(center, radius, state.level, state.corner)


def candidate_radii(regions: Regions, level: int, ratio: float = RATIO, *, widens: bool = False) -> Ints:
    """Return the public candidate radii about a released center, in grid steps, ascending.

    The widest is that of the ball about the chosen region, and the narrowest is a twelfth of it, at least one
    step. At the finest level it is 0. In a projection the widest is about the universe's diameter, and the
    narrowest is a 24th of the diameter of the chosen box.

    Args:
        regions: whose records were counted.
        level: of the chosen region.
        ratio: of neighboring candidates.
        widens: whether the widest is twice as wide, because the region may hold a part of a cluster.
    """
    grid, everything = regions.grid, _everything(regions)
    widest, narrowest = min(everything, (1 + widens) * regions.radius(level)), regions.radius(level) / 12
    if regions.projected:
        widest = everything
        narrowest = regions.side(level) / regions.unit * math.sqrt(grid.dimension) / 24
    finest = level == regions.bottom
    narrowest = 1.0 if finest else max(1.0, narrowest)
    steps = math.ceil(math.log(widest / narrowest) / math.log(ratio)) if widest > 1 else 0
    ladder = np.ceil(widest * ratio ** -np.arange(steps, -1.0, -1.0)).astype(np.int64)
    return np.unique(np.append(ladder, 0) if finest else ladder)


def wide_radii(regions: Regions, level: int, *, widens: bool) -> Ints:
    """Return the radii that are tried about the chosen region itself, in grid steps, ascending.

    Args:
        regions: whose records were counted.
        level: of the chosen region.
        widens: whether to double the region's radius until the ball holds the universe.
    """
    everything = _everything(regions)
    found = [min(regions.radius(level), everything)]
    while widens and found[-1] < everything:
        found.append(min(2 * found[-1], everything))
    return np.array(found, dtype=np.int64)


def _everything(regions: Regions) -> int:
    """Return a radius that holds the universe about any center, also one outside of a ball of the domain."""
    return regions.grid.diameter + 1


@dataclass(frozen=True)
class FitRadius:
    """Find the smallest radius about the released center that holds the target, and count the records inside.

    AboveThreshold goes through the candidate radii about the center from the smallest up, and then through
    the wide radii about the chosen region, but for the last. Where none is chosen, the ball has the last
    wide radius. The count within a radius has sensitivity 1 under both relations. An added record never
    lowers it, so the queries are monotone under `add_or_remove_one`. Under `replace_one` they need not be,
    because the balls have two centers. The count of the released ball has sensitivity 1.

    Without wider balls, the ball lies about the chosen region, and the radius is bounded. With them, the ball
    holds about the target wherever there are so many records, however wide it must be.

    Args:
        regions: whose records were counted.
        target: count that the ball must reach.
        radius: chooses the radius.
        count: noise of the released count.
        excess: the noisy count exceeds the true one by more only with the job's failure probability.
        widens: whether balls wider than the chosen region are tried.
        certifies: whether the level of the region certifies the radius; see `certified_factor`.
        ratio: ratio of neighboring candidate radii.
    """

    regions: Regions
    target: int
    radius: AboveThreshold
    count: Laplace
    excess: int
    widens: bool = False
    certifies: bool = False
    ratio: float = RATIO
    name: str = "fit_radius"
    floor: None = None
    purpose: ClassVar[str] = "the smallest radius that holds the target, and how many rows it holds"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.radius, self.count

    def summarize(self, block: Block, state: Located | NotFound) -> Tally:
        """Count the records between neighboring candidate radii, and those within each wide radius."""
        if isinstance(state, NotFound):
            return Tally(np.zeros(1, dtype=np.int64))
        radii = candidate_radii(self.regions, state.level, self.ratio, widens=self.widens)
        ring = np.searchsorted(radii**2, distances_squared(block.points, state.center), side="left")
        rings = np.bincount(ring, minlength=len(radii) + 1)[: len(radii)]
        center, wide = self._wide(state)
        away = distances_squared(block.points, center)
        return Tally(np.append(rings, [np.count_nonzero(away <= radius**2) for radius in wide]))

    def _wide(self, state: Located) -> tuple[Ints, Ints]:
        """Return the center of the chosen region, and the wide radii."""
        center, _ = self.regions.ball(state.level, state.corner)
        return center, wide_radii(self.regions, state.level, widens=self.widens)

    def release(self, aggregate: Tally, state: Located | NotFound, noise: Noise) -> Found | NotFound:
        """Release a radius and the count inside; the widest ball where none is chosen."""
        if isinstance(state, NotFound):
            return state
        radii = candidate_radii(self.regions, state.level, self.ratio, widens=self.widens)
        center, wide = self._wide(state)
        within = np.append(np.cumsum(aggregate.totals[: len(radii)]), aggregate.totals[len(radii) :])
        first = self.radius.first(within[:-1].tolist(), self.target, noise)
        chosen = len(within) - 1 if first is None else first
        if chosen < len(radii):
            center = state.center
        radius = int(np.append(radii, wide)[chosen])
        count = int(self.count.add(within[chosen : chosen + 1], noise)[0])
        factor = certified_factor(self.regions if self.certifies else None, state.level, radius)
        return Found.counted(center, radius, count, self.excess, factor)
