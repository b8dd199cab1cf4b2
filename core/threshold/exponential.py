"""The exponential mechanism over all thresholds."""

import math
from dataclasses import dataclass
from typing import ClassVar

from core.draws import Draw
from core.gaps import Runs
from core.mechanisms.exponential import Exponential, missed_scores
from core.noise import Noise
from core.task import Accuracy
from core.threshold.examples import Examples
from core.threshold.found import Promises
from core.threshold.learner import LearnerMethod
from core.tightness import Tightness


@dataclass(frozen=True)
class ExponentialLearner:
    """Choose among all thresholds by the exponential mechanism, with minus their errors as scores.

    The errors of a threshold are the examples that it mislabels.

    Privacy. Adding an example adds 0 or 1 to the errors of every threshold, so the change of the scores has
    range 1. A replacement adds -1, 0 or 1, so the change has range 2.

    Under a policy that keeps labels public, a secret pair is two values v < w with the same label. Moving an
    example from v to w changes the errors of the thresholds in (v, w] alone: each by -1 if it is labeled 1,
    each by 1 if it is labeled 0. So the change has range 1.

    Args:
        size: number of grid points of the value's axis; thresholds are 0, ..., size.
        choice: chooses the threshold.
    """

    size: int
    choice: Exponential

    def draws(self) -> tuple[Draw, ...]:
        """See `Learner.draws`."""
        return (self.choice,)

    def learn(self, examples: Examples, noise: Noise) -> int:
        """See `Learner.learn`."""
        runs = Runs.between(examples.all, 0, self.size + 1)
        return self.choice.point(runs.starts, runs.lengths, -examples.errors(runs.starts), noise)

    def errors(self, failure: float) -> int:
        """Bound the errors above those of the best threshold on any data, but for probability `failure`.

        Thresholds that make at least a more errors than the best one are chosen with probability at most
        `failure`, for a of `missed_scores` times the scale. So the bound is the largest integer below a.

        The bound E is attained: of 2 E examples, let E of value v - 1 be labeled 0, and E of value v be
        labeled 1. The threshold v makes no errors, and every other one makes E. As E is below a, the other
        thresholds are chosen with a larger probability than `failure`. So no smaller number can be promised.
        """
        return max(0, math.ceil(self.choice.scale * missed_scores(self.size + 1, failure)) - 1)

    def examples_needed(self, alpha: float, failure: float) -> int:
        """Return the number of examples from which on these errors are at most a part `alpha` of them."""
        return max(1, math.ceil(self.errors(failure) / alpha))


class ExponentialMethod(LearnerMethod):
    """The exponential mechanism over all thresholds."""

    name: ClassVar[str] = "exponential"
    uses_policy: ClassVar[bool] = True

    def learner(self, share: float) -> ExponentialLearner:
        """See `LearnerMethod.learner`."""
        setting = self.setting
        spread = setting.neighbors.changes
        if setting.neighbors.policy is not None and not setting.neighbors.secrets.crosses(self.labels):
            spread = 1
        choice = Exponential.of("threshold", share * setting.budget.epsilon, spread)
        return ExponentialLearner(self.size, choice)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        learner, params = self.learner(share), self.setting.params
        needed = learner.examples_needed(params.alpha, params.failure)
        promises = Promises(params.alpha, needed, learner.errors(params.failure))
        tightness = Tightness(
            f"No smaller number of errors than {promises.errors:,} can be promised. Where so many rows of "
            "one value are labeled 0, and as many of the next are labeled 1, every threshold but one "
            "mislabels so many, and one of these is released too often. On spread values, the released "
            f"threshold mislabels about {learner.choice.scale:.3g} more than the best.",
            reached=True,
        )
        names = ("alpha", "records_needed", "errors")
        return Accuracy(promises, error=needed, notes=self.notes, tightness=dict.fromkeys(names, tightness))
