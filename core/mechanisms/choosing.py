"""The choosing mechanism: choose a key of nearly the largest count, or nothing, among keys in the data."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost
from core.draws import Draw
from core.noise import Noise

Ints = NDArray[np.int64]
Keys = Ints | NDArray[np.object_]

Parts = Callable[[], Iterable[tuple[Keys, Ints]]]
"""Yields keys of shape (m,), integers of any size, and their scores of shape (m,): the same whenever called.
No key is in two parts, and keys that no record touches need not be listed."""


@dataclass(frozen=True, kw_only=True)
class Choosing(Draw):
    """Choose a key of nearly the largest positive score, or nothing.

    It is the exponential mechanism over the keys of positive score and one more candidate, "nothing", whose
    score is always `nothing`. Assume that a record touches at most k keys, and that adding it raises each of
    their scores by at most 1. With scale = 1 / epsilon this is (epsilon, delta)-private for one record more
    or less, with

        delta = k / (k + exp(epsilon (nothing - 1)))  <=  k exp(-epsilon (nothing - 1)),

    That delta is reached where there is no key before, and k keys of score 1 after.

    Proof. Let a record be added. Let w <= w' be the weights exp(epsilon score) of the old candidates
    and of "nothing" before and after, w' <= e^epsilon w, and Z their sum before. The new candidates,
    j <= k of them, have score 1 and together weigh j e^epsilon. Put
    y = j e^epsilon / Z <= k exp(-epsilon (nothing - 1)).

    - After against before: an old candidate's probability grows by at most e^epsilon, as Z does not
      shrink. The new ones together have at most j e^epsilon / (Z + j e^epsilon) = y / (1 + y).
    - Before against after: let a be the probability before of a set T of old candidates. Afterwards it
      is least if T keeps its weight and all others grow: a / (a + e^epsilon (1 - a) + y), so
      a - e^epsilon Pr'[T] <= a - a e^epsilon / (e^epsilon + y) <= y / (e^epsilon + y) <= y / (1 + y).

    Utility. Let M be the largest score, and m the largest number of candidates. "Nothing" wins with
    probability at most failure if M >= nothing + scale ln(1 / failure). The chosen score is at least
    M - scale ln(m / failure) with probability 1 - failure.

    Args:
        scale: Gumbel scale.
        nothing: score of choosing nothing.
        keys: the k above, the largest number of keys that one record touches.
    """

    kind: ClassVar[str] = "choosing mechanism"
    scale: float
    nothing: int
    keys: int

    @classmethod
    def of(cls, what: str, epsilon: float, delta: float, keys: int, **more: Any) -> "Choosing":
        """Return the draw with the smallest score of nothing that is (epsilon, delta)-private for one change.

        From k / (k + exp(epsilon (nothing - 1))) <= delta follows
        nothing >= 1 + ln(k (1 - delta) / delta) / epsilon.
        A delta of 1/2 or more is taken as 1/2.

        Args:
            what: see `Draw`.
            epsilon: pure part.
            delta: additive part, above 0.
            keys: most keys that one record touches.
            more: further fields.
        """
        delta = min(delta, 0.5)
        nothing = 1 + math.ceil(math.log(keys * (1 - delta) / delta) / epsilon)
        return cls(what=what, scale=1 / epsilon, nothing=nothing, keys=keys, **more)

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return 1

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        epsilon = 1 / self.scale
        return Cost(epsilon, 1 / (1 + math.exp(min(epsilon * (self.nothing - 1), 700.0)) / self.keys))

    def choose(self, parts: Parts, noise: Noise) -> int | None:
        """Release a key, or None.

        Args:
            parts: of the keys.
            noise: where randomness comes from.
        """
        return noise.answer(self, ChoiceOfKeys(parts, self.nothing, self.scale, noise))


@dataclass(frozen=True, eq=False)
class ChoiceOfKeys:
    """A choice among keys and "nothing"; see `Choosing`.

    Keys of equal score are equally likely. So of each score only the number of its keys is held, and one of
    them, each with the same probability.

    Args:
        parts: of the keys.
        nothing: score of choosing nothing.
        scale: of the exponential mechanism.
        noise: where randomness comes from.
    """

    parts: Parts
    nothing: int
    scale: float
    noise: Noise

    def __call__(self) -> int | None:
        """Return the key, or None."""
        numbers: dict[int, int] = {}
        one: dict[int, int] = {}
        for keys, scores in self.parts():
            positive = np.flatnonzero(scores > 0)
            order = positive[np.argsort(scores[positive], kind="stable")]
            found, first, sizes = np.unique(scores[order], return_index=True, return_counts=True)
            for score, at, size in zip(found.tolist(), first.tolist(), sizes.tolist(), strict=True):
                numbers[score] = numbers.get(score, 0) + size
                place = self.noise.below(numbers[score])
                if place < size:
                    one[score] = int(keys[order[at + place]])
        scores = np.array([*numbers, self.nothing], dtype=np.int64)
        run = self.noise.select_run(scores, [*numbers.values(), 1], self.scale)
        return None if run == len(numbers) else one[int(scores[run])]
