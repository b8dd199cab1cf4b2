"""NoisyAVG as published, on integers: the private mean of the records inside a public ball."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.draws import Draw, Gaussian, Laplace
from core.noise import Noise
from core.one_cluster.paper.weighted import Weighted

Ints = NDArray[np.int64]

_SUM_BITS = 60
_MAX_SQUARE = 2**62  # no two grid points are farther apart


@dataclass(frozen=True)
class AverageScales:
    """Constants of NoisyAVG at its own (epsilon, delta); Nissim, Stemmer and Vadhan 2016, Algorithm 5.

    Published: m = count + Lap(2 / epsilon) - (2 / epsilon) ln(2 / delta), and the mean plus a Gaussian of
    scale 8 R / (epsilon m) sqrt(2 ln(8 / delta)) per coordinate, where R is the ball's radius.
    """

    epsilon: float
    delta: float

    @property
    def count(self) -> Laplace:
        """Noise of the count, at epsilon / 2: its scale is 2 / epsilon."""
        return Laplace.of("count", self.epsilon / 2, 1)

    @property
    def sum(self) -> Gaussian:
        """Noise of the sum, per unit of the ball's radius, of scale 8 / epsilon sqrt(2 ln(8 / delta)).

        The sum's L2 sensitivity is 2 under `replace_one`, per unit of the radius.
        """
        scale = 8 / self.epsilon * math.sqrt(2 * math.log(8 / self.delta))
        return Gaussian(what="sum, per step of the ball's radius", scale=scale, sensitivity=2)

    def draws(self) -> tuple[Draw, ...]:
        """Every draw."""
        return self.count, self.sum


@dataclass(frozen=True)
class ReleasedMean:
    """A released mean.

    Args:
        mean: shape (d,), grid steps from the ball's center.
        count: noisy number of records.
        error: with probability 1 - 2 beta the mean is within this of the true mean, grid steps.
    """

    mean: NDArray[np.float64]
    count: int
    error: float


def noisy_average(
    data: Weighted, center: Ints, radius: int, records: int, scales: AverageScales, beta: float, noise: Noise
) -> ReleasedMean | None:
    """Release the mean of the records within `radius` of `center`.

    The published algorithm adds a continuous Gaussian to the mean. Here discrete Gaussian noise is added to
    the sum of x - center, and the noisy sum is divided by the released count. The scale of the noise is the
    published one times m, which does not depend on the data.

    One record adds a vector of norm at most R to the sum. So under `replace_one` the sum has L2 sensitivity
    2 R, half of the 4 R for which the published scale is made. The count has sensitivity 1. Where n R could
    exceed 2^60, x - center is first rounded to a multiple of a public unit.

    Args:
        data: the records to average. Their number is private; only the number n of all records is public.
        center: public, shape (d,), grid steps.
        radius: R, public, grid steps.
        records: n, public.
        scales: noise scales.
        beta: failure probability of each of the two parts of the error bound: sum and count.
        noise: where randomness comes from.

    Returns:
        The mean, or None where the noisy count is too small to be distinguished from 0.
    """
    dimension = len(center)
    moved = data.points - center
    inside = (moved**2).sum(axis=1) <= min(radius**2, _MAX_SQUARE)
    unit = (records * radius >> _SUM_BITS) + 1
    rounding = math.sqrt(dimension) / 2 if unit > 1 else 0.0
    steps = (moved[inside] + unit // 2) // unit
    total = (steps * data.counts[inside, None]).sum(axis=0, dtype=np.int64)
    reach = radius / unit + rounding
    noisy = scales.sum.add(total, noise, reach)
    held = np.array([data.counts[inside].sum()], dtype=np.int64)
    count = int(scales.count.add(held, noise)[0])
    if count - scales.count.scale * math.log(2 / scales.delta) <= 0:
        return None
    gaussian = scales.sum.scale * reach * unit * (math.sqrt(dimension) + math.sqrt(2 * math.log(1 / beta)))
    miscounted = radius * math.ceil(scales.count.scale * math.log(1 / beta))
    mean = noisy.astype(np.float64) * (unit / count)
    return ReleasedMean(mean, count, (gaussian + miscounted) / count + unit * rounding)
