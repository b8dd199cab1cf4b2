"""Release a number with noise that follows its smooth sensitivity, and the answer in data units."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from core.budget import Cost
from core.domain import Grid
from core.draws import Draw, Laplace
from core.mechanisms.admissible import Admissible
from core.mechanisms.calibrate_noise import Choice, calibrate_noise
from core.noise import Noise

_UNIT = 1.001  # ln S is counted in units of slightly more than beta, to cover its rounding


class NoiseParams(Protocol):
    """Parameters that every task with admissible noise has."""

    @property
    def failure(self) -> float:
        """Probability that the noise exceeds what it is calibrated for."""

    @property
    def noise(self) -> Choice:
        """Density of the noise."""

    @property
    def scale_share(self) -> float:
        """Part of epsilon spent on the scale of the noise."""


@dataclass(frozen=True)
class Answer:
    """A released number.

    Args:
        value: data units.
        scale: released scale of its noise, data units; None where it was not asked for.
    """

    value: float
    scale: float | None = None

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return value and scale."""
        return {"value": self.value, "scale": self.scale}


@dataclass(frozen=True)
class SmoothNoise:
    """The draws of one release: admissible noise, and the noise of its own scale.

    Args:
        noise: of the value.
        level: noise of the scale's logarithm, in units of slightly more than beta; None where the scale is
            kept secret.
    """

    noise: Admissible
    level: Laplace | None = None

    def draws(self) -> tuple[Draw, ...]:
        """Both draws."""
        return (self.noise,) if self.level is None else (self.noise, self.level)

    def value(self, value: int, smooth: float, least: int, most: int, noise: Noise) -> int:
        """Release an integer of beta-smooth sensitivity `smooth`, clamped to [least, most]."""
        (released,) = self.noise.add([value], smooth, noise)
        return min(max(released, least), most)

    def scale(self, smooth: float, noise: Noise) -> float | None:
        """Release the scale of the noise, up to a factor e^beta and the noise of its level.

        ln S changes by at most beta between neighbors. So its level ceil(ln S / beta) has sensitivity 1, and
        gets discrete Laplace noise.
        """
        if self.level is None:
            return None
        unit = self.noise.beta * _UNIT
        level = np.array([math.ceil(math.log(smooth) / unit)], dtype=np.int64)
        noisy = int(self.level.add(level, noise)[0])
        return self.noise.scale(math.exp(min(noisy * unit, 700.0)))


def calibrate_smooth(
    params: NoiseParams, epsilon: float, delta: float, changes: int, doubling: float
) -> SmoothNoise:
    """Calibrate a release to (epsilon, delta) between neighbors `changes` changes apart.

    Args:
        params: choice of noise, failure probability and the share of the scale.
        epsilon: to spend.
        delta: to spend, by Laplace noise only.
        changes: 1, or 2 where a replacement is two changes.
        doubling: see `calibrate_noise`.

    Raises:
        InvalidValue: see `calibrate_noise`.
    """
    share = params.scale_share
    one = Cost(epsilon, delta).per_change(changes)
    noise = calibrate_noise(
        "value", params.noise, (1 - share) * one.epsilon, one.delta, params.failure, doubling, changes=changes
    )
    if share == 0:
        return SmoothNoise(noise)
    return SmoothNoise(
        noise, Laplace.of("scale of the noise, in powers of e^beta", share * one.epsilon, 1, changes=changes)
    )
