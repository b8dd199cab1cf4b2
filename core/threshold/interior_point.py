"""A threshold from an interior point of the examples around a privately chosen rank."""

import math
from dataclasses import dataclass, replace

import numpy as np

from core.aggregate import Ints
from core.draws import Draw, Laplace
from core.interior_point.exponential import ExponentialFinder
from core.mechanisms.exponential import Exponential
from core.mechanisms.tails import largest_sum_of_two
from core.neighbors import Neighbors
from core.noise import Noise
from core.threshold.examples import Examples, ranked

MOST_RANKS = 1 << 18
"""Most ranks that are tried: the choice among them takes a fraction of a second."""


@dataclass(frozen=True)
class InteriorPointLearner:
    """Choose a rank by the errors of cutting there, then find an interior point of the examples around it.

    Interior points and thresholds need the same number of records, but for a constant factor (Bun, Nissim,
    Stemmer and Vadhan 2015). This is that reduction, for any labels.

    Examples are in order of their values; of equal values, those labeled 1 come first. The cut at rank k
    labels the first k examples 0 and the others 1.
    1. The exponential mechanism chooses a rank k by the errors of its cut.
    2. The finder looks for an interior point c of the window: `window` examples before rank k and as many
       after it.
    3. The exponential mechanism chooses one of the thresholds c, c + 1, 0 and `size` by its errors.

    Utility: one of the four thresholds makes at most `window` more errors than the cut.
    - At either end of the examples of one value, the cut is a threshold. Between the ends its errors rise
      and then fall, so one of the ends makes no more errors than the cut.
    - If k lies among the examples of value c, the thresholds c and c + 1 are the ends of these. Otherwise
      one of the two has at most `window` examples between its rank and k.
    - If there are fewer than `window` examples on one side of k, 0 or `size` has at most `window` examples
      between its rank and k.

    Privacy of the rank. The errors of the cut at k are 2 (ones among the first k) - k + (zeros in all). The
    zeros move the errors of all cuts alike.
    - One example x more: the first k stay as they are, or gain x and lose another one. Their ones become 0
      or 1 more if x is a one, and 0 or 1 fewer if it is a zero.
    - One example x in place of y: the first k stay as they are. Otherwise, if x stands before y, they gain x
      and lose an example; if x stands after y, they lose y and gain an example. The sign is again the same
      for all k.
    - So the change of the errors has range 2. A cut behind all examples gains x alone: its errors change by 0
      or 1, which is within that range.

    Privacy of the rest. The window around a given rank gains at most one example and loses at most one, so
    the finder sees a replacement. The ranks that are tried depend on the noisy number of examples alone.

    Blocks of noisy sizes, one of which holds x, would not do instead of ranks. Where x comes to lie at the
    end of a block, two outcomes of the sizes lead to the same blocks without x, and the privacy loss
    exceeds the sum of the two noises' epsilons.

    Args:
        size: number of grid points of the value's axis; thresholds are 0, ..., size.
        total: noise of the number of examples; None where it is public.
        total_margin: bound on that noise, which may fail with a part of the failure probability.
        rank: chooses the rank.
        step: distance between the ranks that are tried; larger where there would be more than `MOST_RANKS`.
        finder: of the interior point; its choice has spread 2.
        window: examples on either side of the rank.
        choice: chooses the candidate.
    """

    size: int
    total: Laplace | None
    total_margin: int
    rank: Exponential
    step: int
    finder: ExponentialFinder
    window: int
    choice: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `Learner.draws`."""
        total = () if self.total is None else (self.total,)
        return (*total, self.rank, *self.finder.draws(), self.choice)

    def learn(self, examples: Examples, noise: Noise) -> int:
        """See `Learner.learn`."""
        step, most = self.steps(self.about(examples.all.total, noise))
        ranks = step * np.arange(most + 1)
        rank = self.rank.point(ranks, np.ones_like(ranks), -examples.errors_of_cuts(ranks), noise)
        around = ranked(examples.all, rank - self.window, rank + self.window)
        found = self.finder.find(around, noise)
        return self.choose(found, examples.errors(self.candidates(found)), noise)

    def about(self, examples: int, noise: Noise) -> int:
        """Release a number of examples that is hardly too small; the number itself where it is public."""
        if self.total is not None:
            examples = int(self.total.add(np.array([examples]), noise)[0])
        return max(1, examples + self.total_margin)

    def steps(self, about: int) -> tuple[int, int]:
        """Return the distance between the ranks that are tried, and the number of the last one, from 0 on."""
        step = max(self.step, math.ceil(about / MOST_RANKS))
        return step, math.ceil(about / step)

    def candidates(self, found: int) -> Ints:
        """Return the thresholds of which one is released."""
        return np.unique(np.array([0, found, found + 1, self.size], dtype=np.int64))

    def choose(self, found: int, errors: Ints, noise: Noise) -> int:
        """Release one of the candidates, given their errors."""
        candidates = self.candidates(found)
        return self.choice.point(candidates, np.ones_like(candidates), -errors, noise)

    def errors(self, failure: float) -> int:
        """Bound the errors above those of the best threshold, but for probability `failure`.

        The bound holds for up to `examples_covered` examples. It adds what the choice of the rank loses, half
        a step, the window, and what the choice of the candidate loses.

        A choice of scale s among K others that are no better than the best loses s ln(K) + x or more with
        probability at most e^(-x / s). That holds for the choice of the candidate whatever the rank is. So
        what both choices lose beyond s ln(K) is at most the sum of two independent exponential variables.
        """
        return self._before_steps(failure) + (self.step + 1) // 2

    def _before_steps(self, failure: float) -> int:
        ranks, candidates = self.rank.scale * math.log(MOST_RANKS), self.choice.scale * math.log(3)
        both = largest_sum_of_two(self.rank.scale, self.choice.scale, failure)
        return math.ceil(ranks + candidates + both) + self.window

    def examples_needed(self, alpha: float, failure: float) -> int:
        """Return the number of examples from which on the errors are at most a part `alpha` of them.

        That includes more than `examples_covered`: for n examples, the step is below
        (n + 2 total_margin) / MOST_RANKS + 1.

        Args:
            alpha: above 1 / (2 MOST_RANKS).
            failure: see `errors`.
        """
        beyond = self._before_steps(failure) + 1 + self.total_margin / MOST_RANKS
        needed = beyond / (alpha - 1 / (2 * MOST_RANKS))
        return math.ceil(max(self.errors(failure) / alpha, needed))

    @property
    def examples_covered(self) -> int:
        """Number of examples up to which the ranks that are tried are `step` apart."""
        return self.step * MOST_RANKS - 2 * self.total_margin

    @classmethod
    def of(cls, size: int, epsilon: float, neighbors: Neighbors, failure: float) -> "InteriorPointLearner":
        """Set the scales that spend `epsilon`.

        Args:
            size: number of grid points of the value's axis.
            epsilon: sum over all draws.
            neighbors: the relation; it says whether the number of examples is public.
            failure: of the promise; one half of it is for the number of examples and the finder.
        """
        public = neighbors.name == "replace_one"
        parts = {"total": 0.0 if public else 0.05, "rank": 0.35, "choice": 0.1}
        point = Exponential.of("interior point", (1 - sum(parts.values())) * epsilon, 2)
        finder = ExponentialFinder(size, point)
        total = None if public else Laplace.of("number of examples", parts["total"] * epsilon, 1)
        learner = cls(
            size=size,
            total=total,
            total_margin=0 if total is None else math.ceil(total.scale * math.log(4 / failure)),
            rank=Exponential.of("rank", parts["rank"] * epsilon, 2),
            step=1,
            finder=finder,
            window=math.ceil(finder.records_needed(failure / 4) / 2),
            choice=Exponential.of("candidates", parts["choice"] * epsilon, neighbors.changes),
        )
        return replace(learner, step=max(1, learner._before_steps(failure / 2) // 16))
