"""The exponential mechanism over all grid points, which prefers deep ones."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.focus import CELLS, Bools
from core.gaps import Order, Runs
from core.interior_point.params import InteriorPoint
from core.interior_point.rounds import FindNearMedian
from core.interior_point.sampled import promised
from core.mechanisms.exponential import Exponential
from core.noise import Noise
from core.task import Accuracy, Method

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ExponentialFinder:
    """Choose a grid point v by the exponential mechanism with the score min(#{x <= v}, #{x >= v}).

    The score of a point is its depth. Points of equal score are chosen from as runs.

    Privacy. Adding a record raises every point's score by 0 or 1, so the change of the scores has range 1.
    A replacement raises or lowers each score by at most 1, so the change has range 2.

    In a wide domain scores end `far` records from the median: the score is then

        max(min(#{x <= v}, #{x >= v}) - floor(n / 2), -far).

    Without its end this is the depth up to a constant. If a record is added, floor(n / 2) grows by 0 or 1. So
    the differences change by -1 or 0, or by 0 or 1. The end keeps both ranges; so do those of a replacement.

    Utility. A point outside the records has score 0. Some point has a score of at least n / 2. So no interior
    point is found with probability at most size exp(-n / (2 scale)).

    Args:
        size: number of grid points; any Python integer.
        choice: chooses the point.
        far: see above; None where scores do not end.
    """

    size: int
    choice: Exponential
    far: int | None = None

    def draws(self) -> tuple[Exponential]:
        """See `Finder.draws`."""
        return (self.choice,)

    def find(self, order: Order, noise: Noise) -> int:
        """Release a grid point; some point even where there are no records."""
        runs = Runs.between(order, 0, self.size)
        return self.choice.point(runs.starts, runs.lengths, self.scores(runs, order.total), noise)

    def scores(self, runs: Runs, total: int) -> Ints:
        """Return the scores of the points of each run.

        Args:
            runs: the points.
            total: number of records.
        """
        depths = depth(runs, total)
        return depths if self.far is None else np.maximum(depths - total // 2, -self.far)

    def hot(self, runs: Runs, total: int) -> Bools:
        """Say of each run, which may be a cell of points of different ranks, whether a score does not end."""
        return self.scores(runs, total) > (-math.inf if self.far is None else -self.far)

    @property
    def near(self) -> tuple[int]:
        """See `core.focus.Focused.near`."""
        return (2 * (self.far or 0) + 1,)

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


class ExponentialMethod(Method[InteriorPoint]):
    """The exponential mechanism, under both neighbor relations and with any delta."""

    name: ClassVar[str] = "exponential"
    tightness: ClassVar[str] = (
        "Hardly fewer rows suffice where half of them have one value and half the next: all other values "
        "then are as far from the median as they can be. Where rows spread, fewer suffice."
    )

    def rounds(self, share: float) -> tuple[FindNearMedian]:
        """See `Method.rounds`."""
        return (FindNearMedian(self._finder(share)),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        needed = self._finder(share).records_needed(self.setting.params.failure)
        return promised(self.name, needed, self.tightness)

    def _finder(self, share: float) -> ExponentialFinder:
        """Return the algorithm, with the draw that `share` of the budget pays for."""
        grid, epsilon, spread = self.setting.grid, self.setting.budget.epsilon, self.setting.neighbors.changes
        size, choice = grid.extents[0] + 1, Exponential.of("point", share * epsilon, spread)
        finder = ExponentialFinder(size, choice)
        if size <= CELLS:
            return finder
        return replace(finder, far=finder.records_needed(1e-10 * self.setting.params.failure))
