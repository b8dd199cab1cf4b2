"""Interior points: a grid point between the smallest and the largest record."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts, Sample
from core.domain import Grid
from core.draws import Draw
from core.gaps import Order, Runs
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.rounds import Block

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class FoundPoint:
    """The released point, or None where the method found none.

    Args:
        step: grid point.
    """

    step: int | None

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return the point in data units."""
        if self.step is None:
            return None
        return {"point": grid.restore(np.array([[self.step]]))[0, 0].item()}


class Finder(Protocol):
    """A private method that finds an interior point."""

    def draws(self) -> tuple[Draw, ...]:
        """Every draw that `find` can make."""

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a grid point, or None; never raises on data."""


@dataclass(frozen=True)
class AmongPoints:
    """The exponential mechanism with the score min(#{x <= v}, #{x >= v}), over runs of equal score.

    Adding a record raises every point's score by 0 or 1: its change has range 1, and twice that for a
    replacement. A point outside the records has score 0 and some point has n / 2, so no interior point is
    found with probability at most size exp(-n / (2 scale)).

    Args:
        size: number of grid points; any Python integer.
        choice: chooses the point.
    """

    size: int
    choice: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder`."""
        return (self.choice,)

    def find(self, order: Order, noise: Noise) -> int:
        """Release a grid point; some point even where there are no records."""
        runs = Runs.between(order, 0, self.size)
        return self.choice.point(runs.starts, runs.lengths, depth(runs, order.total), noise)

    def records_needed(self, failure: float) -> int:
        """Smallest n at which an interior point is promised: size exp(-n / (2 scale)) <= failure."""
        return 2 * math.ceil(self.choice.scale * (math.log(self.size) - math.log(failure)))


def depth(runs: Runs, total: int) -> Ints:
    """Score of each run's points: min(#{x <= v}, #{x >= v}), positive just for interior points."""
    return np.asarray(np.minimum(runs.upto, total - runs.below))


@dataclass(frozen=True)
class FindInSample:
    """The only round under `replace_one`: let the method find a point among a random subset of the records.

    The subset has a public size, and an interior point of it is one of all records. That it does no harm to
    privacy is said at `core.aggregate.Sample`.

    Args:
        finder: the method.
        records: size of the subset: no machine holds more records.
        salt: 16 secret bytes that choose the subset.
    """

    finder: Finder
    records: int
    salt: bytes = field(repr=False)
    name: str = "interior_point"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.finder.draws()

    def summarize(self, block: Block, state: None) -> Sample:
        """Sample the block's records."""
        return Sample.of(self.records, block.points[:, 0], block.ids, self.salt)

    def release(self, aggregate: Sample, state: None, noise: Noise) -> FoundPoint:
        """Release a point, or none."""
        return FoundPoint(self.finder.find(Order.of_counts(Counts.of(aggregate.points)), noise))


@dataclass(frozen=True)
class FindInteriorPoint:
    """The only round: count the distinct grid points, then let the method find one.

    Args:
        finder: the method.
    """

    finder: Finder
    name: str = "interior_point"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.finder.draws()

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundPoint:
        """Release a point, or none."""
        return FoundPoint(self.finder.find(Order.of_counts(aggregate), noise))
