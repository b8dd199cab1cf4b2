"""Draws of noise as values: a round holds its draws, adds noise with them, and is charged for them.

A draw is made from public parameters alone. It knows the scale of its noise, how much the noisy quantity may
change, and how often it is drawn. From these follows what it costs. The same value adds the noise, so a plan
can't charge for one scale while a round uses another. Each draw gets its answer by one call of
`Noise.answer`. So a noise that replaces the real one in a test sees every draw and its answer.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost, Mechanism
from core.noise import Noise
from core.rounds import Round

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Draw(ABC):
    """One kind of draw of a round.

    Args:
        what: the noisy quantity, in a few words.
        times: how often it is drawn, at most.
        disjoint: whether these draws see disjoint parts of the records. One change then concerns one of them,
            so they compose in parallel and cost as much as one.
        rate: rate of the secret Poisson sample that it sees.
        changes: how many changes of one record lie between neighbors, where the sensitivity is for one
            change.
    """

    kind: ClassVar[str]
    what: str
    times: int = 1
    disjoint: bool = False
    rate: float = 1.0
    changes: int = 1

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """Scale of the noise, in units of the noisy quantity."""

    @property
    @abstractmethod
    def change(self) -> float:
        """How much the noisy quantity may change, in the norm that the noise is calibrated to."""

    @abstractmethod
    def cost_of_one(self) -> Cost:
        """Return the cost of one draw for one change of the records that it sees."""

    @property
    def cost(self) -> Cost:
        """Cost of one draw between neighbors."""
        return self.cost_of_one().amplified(self.rate).grouped(self.changes)

    def mechanisms(self, round_: str) -> tuple[Mechanism, ...]:
        """Return what is charged: one mechanism a draw, one for all disjoint draws, none for a free draw."""
        cost = self.cost
        if cost == Cost():
            return ()
        one = Mechanism(
            round_,
            f"{self.kind}: {self.what}",
            self.noise_scale,
            self.change * self.changes,
            cost.epsilon,
            cost.delta,
            cost.rho,
            self.kind,
        )
        return (one,) * (1 if self.disjoint else self.times)


LARGEST_SCALE = 2.0**56
"""Scales that plans refuse: noise of a smaller one is in int64 but for a probability of e^-128."""


@runtime_checkable
class Charged(Round, Protocol):
    """A round that lists its draws."""

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw that `release` can make."""


def charged(rounds: Iterable[Charged]) -> tuple[Mechanism, ...]:
    """Return the mechanisms that a run of these rounds is charged for, in order."""
    return tuple(m for step in rounds for draw in step.draws() for m in draw.mechanisms(step.name))


@dataclass(frozen=True, kw_only=True)
class Additive(Draw):
    """Integer noise on integers.

    Args:
        scale: scale of the noise, in units of the noisy quantity; 0 where the quantity is equal for
            neighbors, and no noise is added.
        sensitivity: largest change between neighbors.
    """

    scale: float
    sensitivity: float

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return self.sensitivity

    def add(self, values: Ints, noise: Noise, unit: float | Ints | NDArray[np.float64] = 1.0) -> Ints:
        """Add noise of `unit` times the scale to each value.

        Args:
            values: exact, any shape.
            noise: where randomness comes from.
            unit: public, above 0; the scale and the sensitivity are multiples of it. An array, shape (k,),
                gives each row of `values` a unit of its own; the sensitivity is then that of all rows, each
                in its unit.
        """
        units = np.broadcast_to(unit, len(values))

        def sample() -> Ints:
            noisy = np.array(values)
            if self.scale != 0:  # a scale below 0 is refused where noise is drawn
                for one in np.unique(units):  # equal units at once: there may be as many rows as numbers
                    rows = units == one
                    noisy[rows] = self._added(noisy[rows], self.scale * float(one), noise)
            return noisy

        return noise.answer(self, sample, unit)

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Standard deviation of the noise, at most."""

    @abstractmethod
    def _added(self, values: Ints, scale: float, noise: Noise) -> Ints:
        """Add noise of this scale."""


@dataclass(frozen=True, kw_only=True)
class Laplace(Additive):
    """Discrete Laplace noise on integers of L1 sensitivity `sensitivity`: sensitivity / scale is epsilon."""

    kind: ClassVar[str] = "discrete Laplace"

    @classmethod
    def of(cls, what: str, epsilon: float, l1: float, **more: Any) -> "Laplace":
        """Return the draw that spends `epsilon`."""
        return cls(what=what, scale=l1 / epsilon, sensitivity=l1, **more)

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        return Cost(self.sensitivity / self.scale if self.sensitivity else 0.0)

    @property
    def deviation(self) -> float:
        """See `Additive.deviation`."""
        return math.sqrt(2) * self.scale

    def _added(self, values: Ints, scale: float, noise: Noise) -> Ints:
        return noise.laplace(values.ravel(), scale).reshape(values.shape)


@dataclass(frozen=True, kw_only=True)
class Gaussian(Additive):
    """Discrete Gaussian noise on integers of L2 sensitivity `sensitivity`.

    Its zCDP is sensitivity^2 / (2 scale^2), exactly the rho of the continuous Gaussian (Canonne, Kamath and
    Steinke 2020, Theorem 4).
    """

    kind: ClassVar[str] = "discrete Gaussian"

    @classmethod
    def of(cls, what: str, rho: float, l2: float, **more: Any) -> "Gaussian":
        """Return the draw that spends `rho`."""
        return cls(what=what, scale=l2 / math.sqrt(2 * rho), sensitivity=l2, **more)

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        return Cost(rho=(self.sensitivity / self.scale) ** 2 / 2 if self.sensitivity else 0.0)

    @property
    def deviation(self) -> float:
        """See `Additive.deviation`."""
        return self.scale

    def _added(self, values: Ints, scale: float, noise: Noise) -> Ints:
        return noise.gaussian(values.ravel(), scale).reshape(values.shape)
