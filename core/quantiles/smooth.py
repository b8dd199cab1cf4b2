"""One quantile with noise by its smooth sensitivity."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.budget import calibrate
from core.draws import Charged, Draw, charged
from core.errors import InvalidValue
from core.focus import Bools, Focused
from core.gaps import Runs
from core.mechanisms.smooth_noise import SmoothNoise, calibrate_smooth
from core.neighbors import Neighbors
from core.noise import Noise
from core.order_statistics import Rank, order_statistic, ranks_that_matter, smooth_sensitivity
from core.quantiles.found import FoundValue, Promises
from core.quantiles.params import OneValue
from core.task import Accuracy, Method


@dataclass(frozen=True)
class SmoothQuantile(Focused):
    """Release an order statistic with noise by its smooth sensitivity.

    Sensitivity: see `smooth_sensitivity`. It covers both neighbor relations, so neighbors are one change
    apart under either. Cost: see `SmoothNoise`. Order statistic and sensitivity follow from the values whose
    ranks are within `ranks_that_matter` of the wanted one. In a wide domain no others reach the private stage
    one by one; see `core.focus`.

    Args:
        size: number of grid points.
        rank: the order statistic.
        neighbors: the relation.
        smooth: the draws.
    """

    size: int
    rank: Rank
    neighbors: Neighbors
    smooth: SmoothNoise
    purpose: ClassVar[str] = "the value, under noise fitted to how much one row can change it"
    name: str = "release"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.smooth.draws()

    @property
    def points(self) -> int:
        """See `Focused.points`."""
        return self.size

    @property
    def near(self) -> tuple[int]:
        """See `Focused.near`."""
        return (2 * self._matter + 1,)

    @property
    def _matter(self) -> int:
        return ranks_that_matter(self.size - 1, self.smooth.noise.beta)

    def hot(self, runs: Runs, total: int, state: None) -> Bools:
        """See `Focused.hot`."""
        rank = self.rank.of(total)
        return np.asarray((runs.upto >= rank - self._matter) & (runs.below < rank + self._matter))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundValue:
        """Release the value, and the scale of its noise where that is paid for."""
        upper = self.size - 1
        value = order_statistic(aggregate, upper, self.rank)
        bound = smooth_sensitivity(aggregate, upper, self.rank, self.smooth.noise.beta, self.neighbors)
        released = self.smooth.value(value, bound, 0, upper, noise)
        return FoundValue(released, self.smooth.scale(bound, noise))


class Smooth(Method[OneValue]):
    """Noise by smooth sensitivity. The error depends on the data, so nothing is promised."""

    name: ClassVar[str] = "smooth"
    calibrated: ClassVar[bool] = False

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        grid = self.setting.grid
        if not grid.wide:
            return None
        return InvalidValue(
            "step",
            grid.step,
            "the method smooth takes at most 2^31 steps, so use a larger one or the method exponential",
            f"is {grid.named_step}, which makes {grid.extents[0] + 1:,} grid points",
        )

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round,)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        note = (
            "The noise follows the smooth sensitivity of the data: it is small where records are "
            "dense about the rank, and no error can be promised beforehand."
        )
        return Accuracy(Promises(None, None), error=math.inf, notes=(note,))

    @cached_property
    def _round(self) -> SmoothQuantile:
        """The round that spends the budget. It is calibrated on first use, because that takes a while."""
        return self.scaled(calibrate(self.setting.budget, lambda share: charged((self.scaled(share),))))

    def scaled(self, share: float) -> SmoothQuantile:
        """Return the round of a share. One change doubles a gap of evenly spread records."""
        setting, budget = self.setting, self.setting.budget
        smooth = calibrate_smooth(
            setting.params, share * budget.epsilon, budget.delta, changes=1, doubling=1.0
        )
        rank = Rank.of_quantile(setting.params.quantile)
        return SmoothQuantile(setting.grid.extents[0] + 1, rank, setting.neighbors, smooth)
