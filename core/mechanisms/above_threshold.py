"""AboveThreshold: find the first of many values that reaches a threshold, at the cost of one."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from core.budget import Cost
from core.draws import Draw
from core.mechanisms.tails import some_exceeds
from core.neighbors import Neighbors
from core.noise import Noise


@dataclass(frozen=True, kw_only=True)
class AboveThreshold(Draw):
    """Release the index of the first value whose noisy version reaches the noisy threshold.

    Let D be the sensitivity of the values. The release is (D / threshold_scale + s D / query_scale)-private,
    where s = 1 if `monotone` and s = 2 otherwise (Lyu, Su and Li 2017).

    Proof, which holds for integers too. Fix the noise of all values but that of the released index i.
    - Raise the threshold's noise by D, which costs D / threshold_scale. Every value before i stays below the
      threshold, because it rises by at most D.
    - Value i may have fallen by D itself, and the threshold has risen by D. So its noise must rise by 2 D.
    - If all values can only have risen, value i has not fallen, and D is enough.
    - If all values can only have fallen, the threshold need not rise, and D is enough for value i.

    Args:
        threshold_scale: Laplace scale of the threshold, drawn once.
        query_scale: Laplace scale of each value, drawn afresh.
        sensitivity: D, the largest change of a value between neighbors.
        monotone: whether one change moves all values the same way, as an added record does with counts.
    """

    kind: ClassVar[str] = "AboveThreshold"
    threshold_scale: float
    query_scale: float
    sensitivity: float = 1
    monotone: bool = False

    @classmethod
    def of(
        cls, what: str, epsilon: float, neighbors: Neighbors, *, counts: bool, **more: Any
    ) -> "AboveThreshold":
        """Split `epsilon` so that threshold plus query noise has the smallest variance.

        With epsilon_1 for the threshold and epsilon_2 for the queries the variance is proportional to
        1 / epsilon_1^2 + s^2 / epsilon_2^2: epsilon_2 = s^(2/3) epsilon_1.

        Args:
            what: see `Draw`.
            epsilon: what is spent.
            neighbors: the relation.
            counts: whether the values all grow when a record is added. Under `replace_one` that does not
                make them monotone, because a replacement may move them both ways.
            more: further fields.
        """
        monotone = counts and neighbors.name == "add_or_remove_one"
        s, sensitivity = 1 if monotone else 2, more.get("sensitivity", 1)
        first = epsilon / (1 + s ** (2 / 3))
        scales = sensitivity / first, s * sensitivity / (epsilon - first)
        return cls(what=what, threshold_scale=scales[0], query_scale=scales[1], monotone=monotone, **more)

    @property
    def noise_scale(self) -> float:
        """Scale of the threshold's noise."""
        return self.threshold_scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return self.sensitivity

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        s = 1 if self.monotone else 2
        return Cost(self.sensitivity / self.threshold_scale + s * self.sensitivity / self.query_scale)

    def first(self, values: Iterable[int], threshold: int, noise: Noise) -> int | None:
        """Release the index of the first value that reaches `threshold`, or None where none does.

        Args:
            values: one after the other, read only as far as needed.
            threshold: value to reach.
            noise: where randomness comes from.
        """
        return noise.answer(self, lambda: self.sampled(values, threshold, noise))

    def sampled(self, values: Iterable[int], threshold: int, noise: Noise) -> int | None:
        """Draw what `first` releases, as a part of a larger draw."""
        noisy_threshold = _noisy(threshold, self.threshold_scale, noise)
        for index, value in enumerate(values):
            if _noisy(value, self.query_scale, noise) >= noisy_threshold:
                return index
        return None

    def error(self, queries: int, failure: float) -> int:
        """Bound the error a on at most `queries` integer values.

        With probability 1 - failure a released value is at least threshold - a, and every value passed
        over at most threshold + a. Integer noise obeys Pr[|Z| > z] <= exp(-z / scale) for integers z. Half
        of `failure` goes to the threshold and half to all queries: threshold_scale ln(2 / failure) +
        query_scale ln(2 queries / failure), each rounded up.
        """
        return math.ceil(self.threshold_scale * math.log(2 / failure)) + math.ceil(
            self.query_scale * math.log(2 * queries / failure)
        )

    def shortfall(self, queries: int, failure: float) -> int:
        """Return the smallest e such that a released value is at least threshold - e, but for `failure`.

        Of at most `queries` values below threshold - e, one is released only if its noise exceeds that of the
        threshold by more than e.
        """
        return bisect_left(
            range(self.error(queries, failure)),
            True,
            key=lambda e: some_exceeds(queries, self.query_scale, e, self.threshold_scale) <= failure,
        )

    def missed(self, error: int, queries: int) -> float:
        """Bound the probability that the noise of the threshold and of some value together exceed `error`.

        Where the threshold's exceeds z or some value's error - z, it may, so the sum exp(-z /
        threshold_scale) + queries exp(-(error - z) / query_scale) bounds it for every integer z from 0 to
        error. The sum is convex in z: its least value is beside the root of its derivative. With `error` from
        the method of this name, it is at most `failure`.
        """
        if error < 0:
            return 1.0
        t, q = self.threshold_scale, self.query_scale
        root = (error / q + math.log(q / (queries * t))) / (1 / t + 1 / q)
        beside = (min(max(0, math.floor(root) + i), error) for i in (0, 1))
        return min(1.0, *(math.exp(-z / t) + queries * math.exp(-(error - z) / q) for z in beside))


def _noisy(value: int, scale: float, noise: Noise) -> int:
    return int(noise.laplace(np.array([value], dtype=np.int64), scale)[0])
