"""Release a number with noise that follows its smooth sensitivity, and the answer in data units."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from core.budget import Cost
from core.domain import Grid
from core.draws import Draw, Laplace
from core.mechanisms.admissible import Admissible
from core.mechanisms.calibrate_noise import Choice, calibrate_noise
from core.mechanisms.tails import largest_of
from core.noise import Noise

_BOTH = 0.999  # a probability is below 1
_PARTS = 20  # of the failure probability, which the scale's noise and the value's noise share
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
        failure: probability with which `within` may not hold.
    """

    noise: Admissible
    level: Laplace | None = None
    failure: float = 0.1

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

    def within(self, scale: float | None) -> float | None:
        """Return what the value is off by at most, but with probability `failure`, given its released scale.

        The level is rounded up, and has noise L. So the true scale is at most e^(unit m) times the released
        one unless L < -m, for any m. Together with a tail of the noise of the value this bounds its error,
        and half a step more its rounding. How `failure` is divided between the two is chosen by public
        numbers alone.
        """
        if scale is None or self.level is None:
            return None
        return scale * self._factor + 0.5

    @property
    def _factor(self) -> float:
        """What the error is at most, in released scales; see `within`."""
        unit, level = self.noise.beta * _UNIT, cast(Laplace, self.level).scale
        found = []
        for part in range(1, _PARTS):
            one = self.failure * part / _PARTS
            most = largest_of(1, level, min(2 * one, _BOTH))  # of |L|, twice as often as of -L
            found.append(self.noise.tail(self.failure - one) * math.exp(unit * most))
        return min(found)


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
        return SmoothNoise(noise, failure=params.failure)
    level = Laplace.of("scale of the noise, in powers of e^beta", share * one.epsilon, 1, changes=changes)
    return SmoothNoise(noise, level, params.failure)
