"""The exponential mechanism over all thresholds."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.draws import Charged, Draw
from core.focus import CELLS
from core.gaps import Runs
from core.mechanisms.exponential import Exponential, missed_scores
from core.mechanisms.offers import NEVER, Offer, Offers
from core.noise import Noise
from core.sections import MOST_SECTIONS, Sectioned
from core.stored import Store
from core.task import Accuracy
from core.threshold.examples import Examples
from core.threshold.found import FoundThreshold, Promises
from core.threshold.learner import ExamplesInSections, LearnerMethod, LearnThreshold
from core.tightness import Tightness

_FEWEST_SECTIONS = 16


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


@dataclass(frozen=True)
class LearnInSections(ExamplesInSections):
    """Choose among all thresholds of a wide axis, whose examples are held by different workers.

    This is the choice of `ExponentialLearner`, whose proof holds, but for errors that end: all thresholds
    that make at least `far` more errors than the best one have one score. `core.mechanisms.offers` has the
    proof that the range of the scores' change stays what it is, and that sections may offer their thresholds.

    A section has the examples of the values from its low point on and below its high point, and the
    thresholds from low + 1 to high. The first one also has the threshold 0.

    Args:
        label: grid coordinate from which a label counts as 1.
        learner: the choice.
        far: see above. Where it is at least the promised number of errors, the promise holds as it is.
    """

    purpose: ClassVar[str] = LearnThreshold.purpose
    learner: ExponentialLearner
    far: int
    name: str = LearnThreshold.name

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.learner.draws()

    @property
    def sections(self) -> int:
        """See `InSections.sections`; fewer where each has much to offer."""
        return max(_FEWEST_SECTIONS, min(MOST_SECTIONS, CELLS // (self.far + 1)))

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds: what all sections offer."""
        return min(self.sections * (self.far + 1), self.size + 1)

    def examine(self, section: Sectioned, state: None, noise: Noise, store: Store) -> Offers:
        """Offer the thresholds of a section.

        Past a value, a threshold makes one error more for each example of it that is labeled 1, and one fewer
        for each that is labeled 0.
        """
        if section.low == section.high:
            return Offers(())
        values, first = np.unique(section.counts.keys // 2, return_index=True)
        errors = np.where(section.counts.keys % 2 == 1, section.counts.counts, -section.counts.counts)
        past = np.append(0, np.cumsum(np.add.reduceat(errors, first) if len(values) else errors))
        starts = np.append(section.low + (section.low > 0), values + 1)
        lengths = np.diff(np.append(starts, section.high + 1))
        some = lengths > 0
        runs = starts[some], lengths[some], past[some]
        return Offers((Offer.of(section.low, *runs, int(past[-1]), self.far, noise),))

    def release(self, aggregate: Offers, state: None, noise: Noise) -> FoundThreshold:
        """Release a threshold."""
        return FoundThreshold(aggregate.choose(self.learner.choice, self.far, noise))


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

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        learner, setting = self.learner(share), self.setting
        if self.size <= CELLS:
            return (LearnThreshold(self.label, learner),)
        far = min(learner.errors(1e-10 * setting.params.failure) + 1, NEVER)
        return (LearnInSections(self.label, learner, far, salt=setting.salt),)

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
