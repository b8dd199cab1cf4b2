"""The last rounds of the practical 1-cluster where noise is large: one choice of a ball, then its count.

With few records, a noisy mean is far from the center. Choosing among a lattice of candidate balls needs less.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Tally
from core.domain import distances_squared
from core.draws import Draw, Laplace
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.one_cluster.practical.locate import Located, certified_factor
from core.one_cluster.practical.regions import Regions
from core.rounds import Block

Ints = NDArray[np.int64]

CELL_BITS = {1: 8, 2: 6}
"""A chosen region has at most 2^bits cells per axis, by dimension. More dimensions have no lattice."""

_CELLS_APART = 4  # neighboring candidate centers
_RATIO = 1.08  # of neighboring candidate radii
_NARROWEST = 16  # the narrowest candidate radius is this part of the region's side


@dataclass(frozen=True)
class Candidates:
    """Candidate balls about a chosen region, and the cells that tell which records they hold.

    The region is an interval of a line or a disk of a plane. The square about it, with a margin of half its
    side all around, is cut into cells. A ball holds a cell if it holds its middle. Centers are middles of
    cells of the square. Radii are in half cells, so they are integers.

    Args:
        regions: whose records were counted, of at most two dimensions.
        level: of the chosen region.
    """

    regions: Regions
    level: int

    @property
    def cell(self) -> int:
        """Side of a cell in grid steps."""
        return -(-self.regions.side(self.level) >> CELL_BITS[self.regions.dimension])

    @property
    def per_side(self) -> int:
        """Cells per axis of the square."""
        return -(-self.regions.side(self.level) // self.cell)

    @property
    def per_axis(self) -> int:
        """Cells per axis of the square with its margin."""
        return 2 * self.per_side

    @property
    def radii(self) -> Ints:
        """Radii in half cells, ascending, from a part of the square's side to the side, or a little more.

        The region may hold a part of a cluster, so a ball may have to be wider than it. About the center
        nearest to the middle of the square, the widest ball holds the square.
        """
        apart, side = min(_CELLS_APART, self.per_side), 2 * self.per_side
        widest = max(side, (self.per_side + apart) * math.sqrt(self.regions.dimension))
        steps = math.ceil(math.log(widest * _NARROWEST / side) / math.log(_RATIO))
        ladder = np.ceil(widest * _RATIO ** -np.arange(steps, -1.0, -1.0)).astype(np.int64)
        return np.unique(np.append(ladder, 0) if self.level == self.regions.bottom else ladder)

    @property
    def centers(self) -> Ints:
        """Cells whose middles are the candidate centers, shape (m, k)."""
        apart = min(_CELLS_APART, self.per_side)
        axis = self.per_side // 2 + np.arange(apart // 2, self.per_side, apart)
        axes = np.meshgrid(*[axis] * self.regions.dimension, indexing="ij")
        return np.stack([each.ravel() for each in axes], axis=1)

    def corner(self, located: Located) -> Ints:
        """Lowest coordinates (k,) of the first cell."""
        return np.asarray(located.corner - self.per_side // 2 * self.cell)

    def count(self, points: Ints, located: Located) -> Ints:
        """Count the points (n, k) in every cell, shape (cells,)."""
        cells = (points - self.corner(located)) // self.cell
        cells = cells[((cells >= 0) & (cells < self.per_axis)).all(axis=1)]
        shape = (self.per_axis,) * self.regions.dimension
        return np.bincount(np.ravel_multi_index(tuple(cells.T), shape), minlength=math.prod(shape))

    def within(self, counts: Ints) -> Ints:
        """Return the number of records of each candidate ball, shape (centers, radii)."""
        occupied = np.flatnonzero(counts)
        shape = (self.per_axis,) * self.regions.dimension
        middles = np.stack(np.unravel_index(occupied, shape), axis=1)
        squares, radii = self.radii**2, len(self.radii)
        found = np.zeros((len(self.centers), radii), dtype=np.int64)
        for number, center in enumerate(self.centers):
            away = ((2 * (middles - center)) ** 2).sum(axis=1)
            ring = np.searchsorted(squares, away, side="left")
            np.add.at(found[number], ring[ring < radii], counts[occupied][ring < radii])
        return np.cumsum(found, axis=1)

    def ball(self, number: int, located: Located) -> tuple[Ints, int]:
        """Return center and radius, in grid steps, of a ball that contains a candidate with all its cells."""
        center, radius = divmod(number, len(self.radii))
        side, root = self.cell, math.sqrt(self.regions.dimension)
        # A cell's records are within half a side of its middle, per axis.
        rounding = side / 2 * root if side > 1 else 0.0
        middle = self.corner(located) + self.centers[center] * side + side // 2
        # Moving a center into the domain brings it no farther from any record.
        inside = np.clip(middle, 0, np.asarray(self.regions.grid.extents))
        return inside, math.ceil(int(self.radii[radius]) * side / 2 + rounding)


@dataclass(frozen=True)
class Placed:
    """A released ball whose records are still to be counted.

    Args:
        center: shape (d,), grid steps.
        radius: grid steps.
        level: of the region about which it was looked for.
    """

    center: Ints
    radius: int
    level: int


@dataclass(frozen=True)
class FitBall:
    """Choose a center and a radius: a small ball about the chosen region that holds the target.

    The score of a ball is min(count, target) minus `penalty` for every smaller candidate radius.

    Sensitivity. A record is in one cell, so an added record raises each count, and each score, by 0 or 1. So
    the change of the scores has a range of at most 1.

    Args:
        regions: whose records are counted.
        target: further records earn nothing.
        penalty: records that the next larger radius must gain.
        ball: chooses the ball; of spread 1.
    """

    regions: Regions
    target: int
    penalty: int
    ball: Exponential
    name: str = "fit_ball"
    floor: None = None
    purpose: ClassVar[str] = "a small ball near that region that holds the target"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.ball,)

    def summarize(self, block: Block, state: Located | NotFound) -> Tally:
        """Count the records in every cell."""
        if isinstance(state, NotFound):
            return Tally(np.zeros(1, dtype=np.int64))
        return Tally(Candidates(self.regions, state.level).count(block.points, state))

    def release(self, aggregate: Tally, state: Located | NotFound, noise: Noise) -> Placed | NotFound:
        """Release a ball."""
        if isinstance(state, NotFound):
            return state
        candidates = Candidates(self.regions, state.level)
        earned = np.minimum(candidates.within(aggregate.totals), self.target)
        scores = earned - self.penalty * np.arange(len(candidates.radii))
        chosen = self.ball.candidate(scores.ravel(), noise)
        return Placed(*candidates.ball(chosen, state), state.level)


@dataclass(frozen=True)
class CountBall:
    """Count the records of the released ball. The count has sensitivity 1.

    Args:
        count: noise of the count.
        excess: the noisy count exceeds the true one by more only with the job's failure probability.
        regions: as before; None where the level of the region certifies no radius.
    """

    count: Laplace
    excess: int
    regions: Regions | None = None
    name: str = "count"
    floor: None = None
    purpose: ClassVar[str] = "how many rows the ball holds"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.count,)

    def summarize(self, block: Block, state: Placed | NotFound) -> Tally:
        """Count the records in the ball."""
        if isinstance(state, NotFound):
            return Tally(np.zeros(1, dtype=np.int64))
        inside = distances_squared(block.points, state.center) <= state.radius**2
        return Tally(np.array([np.count_nonzero(inside)], dtype=np.int64))

    def release(self, aggregate: Tally, state: Placed | NotFound, noise: Noise) -> Found | NotFound:
        """Release the ball with its noisy count."""
        if isinstance(state, NotFound):
            return state
        count = int(self.count.add(aggregate.totals, noise)[0])
        factor = certified_factor(self.regions, state.level, state.radius)
        return Found.counted(state.center, state.radius, count, self.excess, factor)
