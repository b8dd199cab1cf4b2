"""Lloyd's iteration under a partition policy: all records of a part are assigned to the same center."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts, Tally
from core.centers.found import Centers
from core.centers.solver import Solver
from core.centers.space import Space, nearest
from core.domain import Points
from core.draws import Additive, Draw
from core.mechanisms.stability import StabilityHistogram
from core.noise import Noise
from core.policy import Partition
from core.rounds import Block, State

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Parts:
    """The parts of a partition policy, numbered.

    Args:
        space: the universe.
        partition: the policy's secret pairs: two values in the same part.
    """

    space: Space
    partition: Partition

    @cached_property
    def _widths(self) -> Ints:
        return np.array(self.partition.widths, dtype=np.int64)

    @cached_property
    def _extents(self) -> Ints:
        return np.array(self.space.grid.extents, dtype=np.int64)

    @cached_property
    def _numbers(self) -> list[int]:
        """How many parts each axis has."""
        return [e // w + 1 for e, w in zip(self.space.grid.extents, self.partition.widths, strict=True)]

    @property
    def can_be_numbered(self) -> bool:
        """Whether the number of a part fits into a key."""
        return math.prod(self._numbers) < 1 << 62

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two values in the same part, units."""
        widest = np.minimum(self._widths - 1, self._extents).astype(np.float64)
        return float(np.linalg.norm(widest)) * (1 << self.space.bits)

    @property
    def l1_diameter(self) -> int:
        """Largest L1 distance of two values in the same part, units."""
        return self.partition.reach(self.space.grid.extents) << self.space.bits

    def keys(self, points: Points) -> Ints:
        """Number of each record's part, shape (n,)."""
        key = np.zeros(len(points), dtype=np.int64)
        for axis, (width, number) in enumerate(zip(self.partition.widths, self._numbers, strict=True)):
            key = key * number + points[:, axis] // width
        return key

    def middles(self, keys: Ints) -> Ints:
        """Middles of parts, shape (m, d), units about the universe's middle."""
        index = np.empty((len(keys), len(self._numbers)), dtype=np.int64)
        for axis in range(len(self._numbers) - 1, -1, -1):
            index[:, axis] = keys % self._numbers[axis]
            keys = keys // self._numbers[axis]
        low = index * self._widths
        high = np.minimum(low + self._widths - 1, self._extents)
        middles = ((low + high) << self.space.bits) // 2 - (self.space.middle << self.space.bits)
        return np.asarray(middles, dtype=np.int64)


@dataclass(frozen=True)
class PartCounts:
    """Count the records of every part, and solve k-means on the parts' middles.

    Both values of a secret pair lie in the same part. So neighbors have the same counts, and their
    sensitivity is 0. The counts, and everything that is computed from them alone, are released without noise
    (He, Machanavajjhala and Ding 2014, Section 5).

    Args:
        parts: of the policy.
        solver: what finds centers.
        k: how many centers.
        start: public centers that fill up to k where fewer than k parts are occupied.
        counts: the counts of the occupied parts, at noise scale 0, because they are not secret.
    """

    parts: Parts
    solver: Solver
    k: int
    start: Centers
    counts: StabilityHistogram
    purpose: ClassVar[str] = "how many rows lie in each part of the policy, and first centers from them"
    name: str = "part_counts"
    floor: int | None = 0  # large and sparse: merged in shards, none of it clipped

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.counts,)

    def summarize(self, block: Block, state: State) -> Counts:
        """Count the records in every part."""
        return Counts.of(self.parts.keys(block.points))

    def release(self, aggregate: Counts, state: State, noise: Noise) -> Centers:
        """Release centers of the parts' middles, without noise."""
        keys, occupants = self.counts.released(aggregate.keys, aggregate.counts, noise)
        middles = self.parts.middles(keys).astype(np.float64)
        found = self.solver.centers(middles, occupants.astype(np.float64), self.k)
        space = self.parts.space
        positions = np.concatenate([space.inside(found), self.start.positions[len(found) :]])
        label = nearest(middles, positions)
        counts = np.bincount(label, occupants, minlength=self.k)
        return Centers(space, positions, self.start.spread, counts.astype(np.int64))


@dataclass(frozen=True)
class PartAverage:
    """Move every center to the noisy mean of its records: those in the parts whose middles are nearest to it.

    Both values x, y of a secret pair lie in the same part, so they are assigned to the same center. Replacing
    x by y changes the sum of this center by y - x. This has L2 norm at most the diameter of a part, and L1
    norm at most its L1 diameter. The counts do not change, so they are exact. Lemma 6.1 of He,
    Machanavajjhala and Ding (2014) fails where a secret pair joins two clusters. It holds here, because no
    secret pair does.

    Args:
        parts: of the policy.
        k: how many centers.
        sums: Gaussian or Laplace noise of the sums, units.
        counts: the number of each center's records, at noise scale 0, because it is not secret.
        name: of the round.
    """

    parts: Parts
    k: int
    sums: Additive
    counts: Additive
    name: str
    purpose: ClassVar[str] = "where the mean of the rows lies that are in each center's parts"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.counts, self.sums

    def summarize(self, block: Block, state: Centers) -> Tally:
        """Sum x - center over the records of each center, and count them."""
        space, d = self.parts.space, self.parts.space.grid.dimension
        middles = self.parts.middles(self.parts.keys(block.points)).astype(np.float64)
        totals = np.zeros((self.k, d + 1), dtype=np.int64)
        start = 0
        for records in space.chunks(block.points, 3 * d + self.k):
            label = nearest(middles[start : start + len(records)], state.positions)
            start += len(records)
            moved = records - state.positions[label]
            for axis in range(d):  # whole numbers below 2^53: exact
                totals[:, axis] += np.bincount(label, moved[:, axis], minlength=self.k).astype(np.int64)
            totals[:, d] += np.bincount(label, minlength=self.k)
        return Tally(totals.ravel())

    def release(self, aggregate: Tally, state: Centers, noise: Noise) -> Centers:
        """Release the means and the exact counts."""
        totals = aggregate.totals.reshape(self.k, -1)
        counts = self.counts.add(totals[:, -1], noise)
        shifts = self.sums.add(totals[:, :-1], noise) / np.maximum(counts, 1)[:, None]
        shifts[counts == 0] = 0.0
        space = self.parts.space
        return Centers(space, space.inside(state.positions + shifts), state.spread, counts)
