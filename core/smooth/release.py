"""Release a number with noise that follows its smooth sensitivity, and the answer in data units."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from core.budget import Budget, Mechanism, calibrate, laplace
from core.domain import Grid
from core.noise import Noise
from core.smooth.admissible import Admissible, Choice, calibrate_noise

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
        noise: calibrated noise.
        scale_epsilon: what is spent on the scale; 0 where it is kept secret.
    """

    noise: Admissible
    scale_epsilon: float = 0.0

    def value(self, value: int, smooth: float, least: int, most: int, noise: Noise) -> int:
        """Release an integer of beta-smooth sensitivity `smooth`, kept within [least, most]."""
        return min(max(value + self.noise.draw(self.noise.scale(smooth), noise), least), most)

    def scale(self, smooth: float, noise: Noise) -> float | None:
        """Release the scale of the noise, within a factor e^beta and its own noise.

        ln S moves by at most beta, so ceil(ln S / beta) has sensitivity 1: discrete Laplace.
        """
        if self.scale_epsilon == 0:
            return None
        unit = self.noise.beta * _UNIT
        level = np.array([math.ceil(math.log(smooth) / unit)], dtype=np.int64)
        noisy = int(noise.laplace(level, 1 / self.scale_epsilon)[0])
        return self.noise.scale(math.exp(min(noisy * unit, 700.0)))

    def mechanisms(self, round_: str) -> tuple[Mechanism, ...]:
        """Both draws, as they are charged."""
        what = f"{self.noise.kind} noise, per unit of smooth sensitivity"
        value = Mechanism(
            round_, what, 1 / self.noise.alpha, 1, epsilon=self.noise.epsilon, delta=self.noise.delta
        )
        if self.scale_epsilon == 0:
            return (value,)
        return value, laplace(round_, "scale of the noise, in powers of e^beta", self.scale_epsilon, 1)


def per_move(epsilon: float, delta: float, moves: int) -> tuple[float, float]:
    """Return what one change may cost so that neighbors `moves` changes apart, 1 or 2, cost (epsilon, delta).

    Group privacy: (epsilon / 2, delta / (1 + e^(epsilon / 2))) for one change is (epsilon, delta) for two.
    """
    return (epsilon, delta) if moves == 1 else (epsilon / 2, delta / (1 + math.exp(min(epsilon / 2, 700.0))))


def as_charged(mechanisms: Sequence[Mechanism], moves: int) -> tuple[Mechanism, ...]:
    """Return mechanisms calibrated to one change as they are charged between neighbors `moves` apart."""
    return tuple(mechanisms) if moves == 1 else tuple(m.under_replacement() for m in mechanisms)


def calibrate_smooth(
    params: NoiseParams, epsilon: float, delta: float, moves: int, doubling: float
) -> SmoothNoise:
    """Calibrate a release to (epsilon, delta) between neighbors `moves` changes apart.

    Args:
        params: choice of noise, failure probability and the share of the scale.
        epsilon: to spend.
        delta: to spend, by Laplace noise only.
        moves: 1, or 2 where a replacement is two changes.
        doubling: see `calibrate_noise`.
    """
    share = params.scale_share
    one, one_delta = per_move(epsilon, delta, moves)
    noise = calibrate_noise(params.noise, (1 - share) * one, one_delta, params.failure, doubling)
    return SmoothNoise(noise, share * one)


def plan_release(
    params: NoiseParams, budget: Budget, moves: int, doubling: float
) -> tuple[SmoothNoise, tuple[Mechanism, ...]]:
    """Calibrate the only round of a task, "release", to spend the budget; return its draws as charged."""

    def smooth(multiplier: float) -> SmoothNoise:
        return calibrate_smooth(params, multiplier * budget.epsilon, budget.delta, moves, doubling)

    def mechanisms(multiplier: float) -> tuple[Mechanism, ...]:
        return as_charged(smooth(multiplier).mechanisms("release"), moves)

    multiplier = calibrate(budget, mechanisms)
    return smooth(multiplier), mechanisms(multiplier)
