"""Learn a threshold from labeled examples: choose among all, or an interior point of those around a rank."""

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.draws import Draw, Laplace
from core.gaps import Order, Points, Runs
from core.interior_point.finder import AmongPoints
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise

Ints = NDArray[np.int64]

MOST_RANKS = 1 << 18
"""Most ranks that are tried: the choice among them takes a fraction of a second."""

LEAST_ALPHA = 1e-5
"""Errors, as a part of all examples, that steps between so many ranks allow."""


@dataclass(frozen=True)
class Examples:
    """Labeled examples in order of their values.

    Args:
        zeros: those labeled 0.
        ones: those labeled 1.
        all: both.
        ends: number of examples up to each run of one value and label, ones before zeros, from 0 on.
        ones_upto: of these, those labeled 1.
    """

    zeros: Order
    ones: Order
    all: Order
    ends: Ints
    ones_upto: Ints

    @classmethod
    def of_counts(cls, counts: Counts) -> "Examples":
        """Take the keys of `counts` for twice the value plus the label."""
        of_one = counts.keys % 2 == 1
        zeros, ones = (
            Order.of_counts(Counts(counts.keys[of] // 2, counts.counts[of])) for of in (~of_one, of_one)
        )
        values = np.unique(counts.keys // 2)
        ranks = (
            zeros.ranks[np.searchsorted(zeros.values, values)]
            + ones.ranks[np.searchsorted(ones.values, values)]
        )
        order = np.argsort(counts.keys ^ 1)
        ones_first, labels = counts.counts[order], of_one[order]
        return cls(
            zeros,
            ones,
            Order(values, np.append(ranks, zeros.total + ones.total)),
            np.append(0, np.cumsum(ones_first)),
            np.append(0, np.cumsum(np.where(labels, ones_first, 0))),
        )

    def errors(self, thresholds: Points) -> Ints:
        """Number of examples that each threshold labels wrongly: ones below it and zeros from it on."""
        below = self.ones.ranks[np.searchsorted(self.ones.values, thresholds)]
        return np.asarray(
            below + self.zeros.total - self.zeros.ranks[np.searchsorted(self.zeros.values, thresholds)]
        )

    def errors_of_cuts(self, ranks: Ints) -> Ints:
        """Number of examples that cuts label wrongly: ones below the rank and zeros from it on, ones first.

        Args:
            ranks: from 0 on; beyond all examples, everything is labeled 0.
        """
        ranks = np.minimum(ranks, self.all.total)
        run = np.searchsorted(self.ends, ranks, side="right") - 1
        # Within a run of zeros, the ones up to its start are all there are, so the smaller of both is exact.
        run_end = np.minimum(run + 1, len(self.ends) - 1)
        ones = np.minimum(self.ones_upto[run] + ranks - self.ends[run], self.ones_upto[run_end])
        return np.asarray(2 * ones - ranks + self.zeros.total)


class Learner(Protocol):
    """A private method that learns a threshold."""

    def draws(self) -> tuple[Draw, ...]:
        """Every draw that `learn` can make."""

    def learn(self, examples: Examples, noise: Noise) -> int:
        """Release a threshold; never raises on data."""


@dataclass(frozen=True)
class AmongAll:
    """Choose among all thresholds by the number of examples that they label wrongly.

    Adding an example adds 0 or 1 to every threshold's errors: their change has range 1, and twice that
    for a replacement.

    Args:
        size: number of grid points of the value's axis; thresholds are 0, ..., size.
        choice: chooses the threshold.
    """

    size: int
    choice: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `Learner`."""
        return (self.choice,)

    def learn(self, examples: Examples, noise: Noise) -> int:
        """See `Learner`."""
        runs = Runs.between(examples.all, 0, self.size + 1)
        return self.choice.point(runs.starts, runs.lengths, -examples.errors(runs.starts), noise)

    def errors(self, failure: float) -> int:
        """Bound the errors above the best threshold's, but for probability `failure`: on any data."""
        return math.ceil(self.choice.scale * (math.log(self.size + 1) - math.log(failure)))

    def examples_needed(self, alpha: float, failure: float) -> int:
        """Examples from which on these errors are at most a part `alpha` of them."""
        return math.ceil(self.errors(failure) / alpha)


@dataclass(frozen=True)
class AmongRanks:
    """Choose a rank by the errors of cutting there, find an interior point of the examples around it.

    The way from interior points to thresholds by which both need the same number of records but for a
    factor (Bun, Nissim, Stemmer and Vadhan 2015), for any labels.

    Examples are in order of their values, those labeled 1 before those labeled 0 where values are equal.
    Cutting at rank k labels the first k examples 0 and the others 1. At the ends of a run of equal values
    that is a threshold, and between them its errors rise and then fall again, so that one of the ends makes
    no more of them. Let c be an interior point of the `window` examples before and after rank k. Then c or
    c + 1 has at most `window` examples between its rank and k, or is an end of the run that k lies in; and
    where there are too few examples on one side, 0 or `size` does. So one of these four candidates errs at
    most `window` times more than the cut; the exponential mechanism picks one by the number of errors.

    Privacy: the errors of the cut at k are 2 (ones among the first k) - k + zeros in all, and the zeros
    move all cuts alike. One example x more: the first k stay as they are, or gain x and lose another one,
    so that their ones become 0 or 1 more where x is a one, and 0 or 1 fewer where it is not. One example x in
    place of y: they stay, or gain x and lose some one where x stands before y, and gain some one and lose y
    where it stands behind; the sign is again the same for all k. So the change of the errors has range 2.
    (A cut behind all examples gains x alone: its errors move by 1 or 0, within that range.) The window around
    a given rank gains one example at most and loses one at most, just so.
    (That is why blocks are not cut to noisy sizes, one of which takes x: where x comes to lie at the end of
    a block, two outcomes of the sizes lead to the same blocks without x, and the sum of the two noises'
    epsilons is exceeded.) The ranks that are tried depend on a noisy number of examples.

    Args:
        size: number of grid points of the value's axis; thresholds are 0, ..., size.
        total: noise of the number of examples; None where it is public.
        total_margin: the most by which that noise is supposed to be off.
        rank: chooses the rank.
        step: distance between the ranks that are tried, unless they become more than `MOST_RANKS`.
        finder: of the interior point; its choice has spread 2.
        window: examples on either side of the rank.
        choice: chooses the candidate.
    """

    size: int
    total: Laplace | None
    total_margin: int
    rank: Exponential
    step: int
    finder: AmongPoints
    window: int
    choice: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `Learner`."""
        total = () if self.total is None else (self.total,)
        return (*total, self.rank, *self.finder.draws(), self.choice)

    def learn(self, examples: Examples, noise: Noise) -> int:
        """See `Learner`."""
        total = examples.all.total
        if self.total is not None:
            total = int(self.total.add(np.array([total]), noise)[0])
        total = max(1, total + self.total_margin)
        step = max(self.step, math.ceil(total / MOST_RANKS))
        ranks = step * np.arange(math.ceil(total / step) + 1)
        rank = self.rank.point(ranks, np.ones_like(ranks), -examples.errors_of_cuts(ranks), noise)
        around = ranked(examples.all, rank - self.window, rank + self.window)
        found = self.finder.find(around, noise)
        candidates = np.unique(np.array([0, found, found + 1, self.size], dtype=np.int64))
        return self.choice.point(candidates, np.ones_like(candidates), -examples.errors(candidates), noise)

    def errors(self, failure: float) -> int:
        """Bound the errors above the best threshold's, but for probability `failure`, by a union bound.

        For up to `examples_covered` examples: what the rank loses, also to a step, the window, and what the
        choice loses.
        """
        return self._before_steps(failure) + (self.step + 1) // 2

    def _before_steps(self, failure: float) -> int:
        log = math.log(2 / failure)
        rank = self.rank.scale * (math.log(MOST_RANKS + 1) + log)
        return math.ceil(rank) + self.window + math.ceil(self.choice.scale * (math.log(4) + log))

    def examples_needed(self, alpha: float, failure: float) -> int:
        """Examples from which on the errors above the best are at most a part `alpha` of them.

        Also of more than `examples_covered`: of n, the step is below (n + 2 total_margin) / MOST_RANKS + 1.

        Args:
            alpha: at least `LEAST_ALPHA`.
            failure: see `errors`.
        """
        beyond = self._before_steps(failure) + 1 + self.total_margin / MOST_RANKS
        needed = beyond / (alpha - 1 / (2 * MOST_RANKS))
        return math.ceil(max(self.errors(failure) / alpha, needed))

    @property
    def examples_covered(self) -> int:
        """Examples up to which the ranks are as dense as intended."""
        return self.step * MOST_RANKS - 2 * self.total_margin

    @classmethod
    def of(cls, size: int, epsilon: float, neighbors: Neighbors, failure: float) -> "AmongRanks":
        """Set scales that spend `epsilon`.

        Args:
            size: number of grid points of the value's axis.
            epsilon: sum over all draws.
            neighbors: the relation; it says whether the number of examples is public.
            failure: of the whole; a half is for the number of examples and the finder.
        """
        public = neighbors.name == "replace_one"
        parts = {"total": 0.0 if public else 0.05, "rank": 0.35, "choice": 0.1}
        point = Exponential.of("interior point", (1 - sum(parts.values())) * epsilon, 2)
        finder = AmongPoints(size, point)
        total = None if public else Laplace.of("number of examples", parts["total"] * epsilon, 1)
        learner = cls(
            size=size,
            total=total,
            total_margin=0 if total is None else math.ceil(total.scale * math.log(4 / failure)),
            rank=Exponential.of("rank", parts["rank"] * epsilon, 2),
            step=1,
            finder=finder,
            window=math.ceil(finder.records_needed(failure / 4) / 2),
            choice=Exponential.of("candidates", parts["choice"] * epsilon, neighbors.moves),
        )
        return replace(learner, step=max(1, learner._before_steps(failure / 2) // 16))


def ranked(order: Order, first: int, last: int) -> Order:
    """Return the records of ranks first, ..., last - 1, as far as there are any; ties are divided."""
    first, last = max(0, first), min(last, order.total)
    low = int(np.searchsorted(order.ranks, first, side="right")) - 1
    high = int(np.searchsorted(order.ranks, last, side="left"))
    if first >= last:
        return Order(order.values[:0], order.ranks[:1])
    return Order(order.values[low:high], np.clip(order.ranks[low : high + 1], first, last) - first)
