"""The exponential mechanism over all grid points, which prefers deep ones."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.gaps import Order, Runs
from core.interior_point.counted import CountsMethod
from core.mechanisms.exponential import Exponential
from core.noise import Noise

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ExponentialFinder:
    """Choose a grid point v by the exponential mechanism with the score min(#{x <= v}, #{x >= v}).

    The score of a point is its depth. Points of equal score are chosen from as runs.

    Privacy. Adding a record raises every point's score by 0 or 1, so the change of the scores has range 1.
    A replacement raises or lowers each score by at most 1, so the change has range 2.

    Utility. A point outside the records has score 0. Some point has a score of at least n / 2. So no interior
    point is found with probability at most size exp(-n / (2 scale)).

    Args:
        size: number of grid points; any Python integer.
        choice: chooses the point.
    """

    size: int
    choice: Exponential

    def draws(self) -> tuple[Exponential]:
        """See `Finder.draws`."""
        return (self.choice,)

    def find(self, order: Order, noise: Noise) -> int:
        """Release a grid point; some point even where there are no records."""
        runs = Runs.between(order, 0, self.size)
        return self.choice.point(runs.starts, runs.lengths, depth(runs, order.total), noise)

    def records_needed(self, failure: float) -> int:
        """Return the smallest even n with size exp(-n / (2 scale)) <= failure."""
        return 2 * math.ceil(self.choice.scale * (math.log(self.size) - math.log(failure)))


def depth(runs: Runs, total: int) -> Ints:
    """Return min(#{x <= v}, #{x >= v}) of each run's points v; positive for interior points, and only those.

    Args:
        runs: the points.
        total: number of records.
    """
    return np.asarray(np.minimum(runs.upto, total - runs.below))


class ExponentialMethod(CountsMethod):
    """The exponential mechanism, under both neighbor relations and with any delta."""

    name: ClassVar[str] = "exponential"

    def finder(self, share: float) -> ExponentialFinder:
        """See `CountsMethod.finder`."""
        grid, epsilon, spread = self.setting.grid, self.setting.budget.epsilon, self.setting.neighbors.changes
        return ExponentialFinder(grid.extents[0] + 1, Exponential.of("point", share * epsilon, spread))
