"""The median of the blocks' answers on each axis, with noise by its smooth sensitivity."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.domain import Points
from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.mechanisms.admissible import Admissible
from core.mechanisms.calibrate_noise import MOST_EPSILON, heavy_tailed, laplace_noise
from core.neighbors import Neighbors
from core.noise import Noise
from core.order_statistics import order_statistic, smooth_sensitivity
from core.sample_and_aggregate.aggregator import Aggregator, Expected, vanishing
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.median import MEDIAN, about_median
from core.sample_and_aggregate.outputs import Aggregation
from core.task import Accuracy
from core.tightness import Tightness


@dataclass(frozen=True, kw_only=True)
class SmoothMedian(Aggregation):
    """Release the median of each axis, with noise by its smooth sensitivity.

    Changing one answer replaces one value on every axis. So every axis is charged.

    Args:
        noise: of one axis, drawn for each.
    """

    purpose: ClassVar[str] = "the median of the blocks' answers on each axis, and how far from it they are"
    noise: Admissible

    def value_draws(self) -> tuple[Draw, ...]:
        """See `Aggregation.value_draws`."""
        return (self.noise,)

    def aggregate(self, points: Points, noise: Noise) -> Stable:
        """Release the medians and the radius about them."""
        value = np.zeros(self.grid.dimension, dtype=np.int64)
        one_replaced = Neighbors("replace_one")
        for axis, extent in enumerate(self.grid.extents):
            counts = Counts.of(points[:, axis])
            smooth = smooth_sensitivity(counts, extent, MEDIAN, self.noise.beta, one_replaced)
            (median,) = self.noise.add([order_statistic(counts, extent, MEDIAN)], smooth, noise)
            value[axis] = min(max(median, 0), extent)
        return Stable(value, *about_median(self.radius, points, value, noise))


class SmoothMedianOfAnswers(Aggregator):
    """The median of each axis with noise. It is near the stable answers where these are a clear majority."""

    name: ClassVar[str] = "smooth_median"
    of_errors: ClassVar[Tightness] = Tightness(
        "The promised errors are one step of the grid, or more where the noise is. The noise is largest "
        "where all answers that are not stable are at one end of an axis. Also there errors are usually many "
        "times smaller, because noise grows fast with each change by which the median could leave the stable "
        "answers, and the promise allows for a few changes fewer than these rows need.",
        reached=False,
    )

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        Let D be half the width that holds the stable answers. The median is within D of their center, and
        stays there after `spare` changes. So the smooth sensitivity is at most the larger of 2 D and
        e^(-beta spare) times the width of the axis, hence at most their sum.
        """
        noise, axes = self._round(share).noise, self.setting.grid.dimension
        part = vanishing(noise, self._spare(self.stable), self._failure, 1.0)
        expected = self._expected(noise) if self._spare(self.stable) >= 0 else None
        if part >= 1:
            return self.promised(share, None, expected=expected)
        spread_factor = 1 + 2 * noise.scale(1.0) * noise.tail(self._failure)
        return self.promised(share, [part] * axes, spread_factor, expected=expected)

    @property
    def _failure(self) -> float:
        return self.value_failure / self.setting.grid.dimension

    def _spare(self, agreeing: int) -> int:
        """How many answers may change before the median can leave those that agree."""
        return agreeing - (self.setting.params.blocks + 1) // 2 - 1

    def _expected(self, noise: Admissible) -> Expected:
        """Return the errors by which methods are compared.

        Where answers lie evenly at a distance b, the largest gap that k changes can make is (k + 1) b. So the
        smooth sensitivity is the largest e^(-beta k) (k + 1) b.

        After `spare` changes the gap also holds answers that do not agree with most. If these scatter, each
        further change adds their distance. If they agree far away, the next change adds the whole axis.
        """
        blocks, beta, tail = self.setting.params.blocks, noise.beta, noise.tail(self.usual_failure)
        grown = max(1.0, math.exp(beta - 1) / beta)

        def error(agreeing: int, beyond: float) -> float:
            left = math.exp(-beta * max(0, self._spare(agreeing))) * min(1.0, beyond)
            return noise.scale(self.between(agreeing) * grown + left) * tail

        return Expected(
            agreeing=error(self.stable, beyond=grown / max(1, blocks - self.stable)),
            even=noise.scale(min(1.0, grown / blocks)) * tail,
            divided=error(self.divided, beyond=1.0),
        )

    def _round(self, share: float) -> SmoothMedian:
        axes, one = self.setting.grid.dimension, self.per_answer(share)
        noise = self._noise(self.value_share * one.epsilon / axes, one.delta / axes)
        return SmoothMedian(
            **self.common(share),
            noise=replace(
                noise, what=f"median of an axis, {noise.density}", changes=self.changes, times=axes
            ),
        )

    def _noise(self, epsilon: float, delta: float) -> Admissible:
        """Return the density and the smoothness of the least expected error; any choice is private.

        Raises:
            InvalidValue: epsilon is too small.
        """
        epsilon = min(epsilon, MOST_EPSILON)
        found = []
        for beta in (epsilon * np.geomspace(1e-3, 1, 100)).tolist():
            found += [heavy_tailed("cauchy", beta, epsilon), heavy_tailed("student", beta, epsilon)]
            if delta > 0:
                found.append(laplace_noise(beta, epsilon, delta))
        noises = [noise for noise in found if noise is not None]
        if not noises:
            raise InvalidValue("epsilon", epsilon, "it is too small for noise by smooth sensitivity")
        return min(noises, key=lambda noise: self._expected(noise).mean)
