"""The method `interior_point`: in one round, or on a wide axis in four, where no machine holds all examples.

The four rounds make the draws of `InteriorPointLearner`, with its scales, from the same numbers. The privacy
of each is proven there. What one round draws is the public state of the next one.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.aggregate import Counts, Tally
from core.draws import Charged, Draw
from core.focus import CELLS, Bools, Focused
from core.gaps import Order, Runs
from core.mechanisms.offers import NEVER, Offer, Offers
from core.noise import Noise
from core.rounds import Block
from core.sections import MOST_SECTIONS, Sectioned
from core.stored import Store
from core.task import Accuracy
from core.threshold.examples import Examples, labeled, ranked
from core.threshold.found import FoundThreshold, Promises
from core.threshold.interior_point import MOST_RANKS, InteriorPointLearner
from core.threshold.learner import ExamplesInSections, LearnerMethod, LearnThreshold
from core.tightness import Tightness


@dataclass(frozen=True)
class CountExamples:
    """Release about how many examples there are; the number itself where it is public.

    Args:
        learner: has the draw.
    """

    purpose: ClassVar[str] = "about how many rows there are"
    learner: InteriorPointLearner
    name: str = "number_of_rows"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return () if self.learner.total is None else (self.learner.total,)

    def summarize(self, block: Block, state: None) -> Tally:
        """Count the examples."""
        return Tally(np.array([len(block.points)]))

    def release(self, aggregate: Tally, state: None, noise: Noise) -> int:
        """Release a number."""
        return self.learner.about(int(aggregate.totals[0]), noise)


@dataclass(frozen=True)
class ChooseRank(ExamplesInSections):
    """Choose a rank by the errors of its cut; the state before it is about how many examples there are.

    A second look counts the examples before each section. So a section knows which of the ranks that are
    tried are its own: those after its first example and up to its last one. The first section also has the
    rank 0, and the last one all ranks beyond the examples.

    Args:
        label: grid coordinate from which a label counts as 1.
        learner: has the draw.
    """

    ranked: ClassVar[bool] = True
    purpose: ClassVar[str] = "how many rows lie below the threshold"
    learner: InteriorPointLearner
    name: str = "rank"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.learner.rank,)

    @property
    def sections(self) -> int:
        """See `InSections.sections`."""
        return MOST_SECTIONS

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds: one for each rank that is tried."""
        return MOST_RANKS + 2

    def examine(self, section: Sectioned, state: int, noise: Noise, store: Store) -> Offers:
        """Offer the ranks of a section, as numbers of those that are tried."""
        if section.low == section.high:
            return Offers(())
        examples, before = Examples.of_counts(section.counts), int(section.before[0])
        step, most = self.learner.steps(state)
        first = before // step + 1 if section.low else 0
        last = most if section.high == self.size else min(most, (before + examples.all.total) // step)
        tried = np.arange(first, last + 1)
        losses = examples.errors_of_cuts(step * tried - before) - examples.zeros.total
        change = examples.ones.total - examples.zeros.total
        return Offers((Offer.of(section.low, tried, np.ones_like(tried), losses, change, NEVER, noise),))

    def release(self, aggregate: Offers, state: int, noise: Noise) -> int:
        """Release a rank."""
        return self.learner.steps(state)[0] * aggregate.choose(self.learner.rank, NEVER, noise)


@dataclass(frozen=True)
class FindInWindow(Focused):
    """Find an interior point of the examples around a rank, which is the state before it.

    Args:
        learner: has the finder and the window.
    """

    purpose: ClassVar[str] = "a value among those around this rank"
    learner: InteriorPointLearner
    name: str = "value"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.learner.finder.draws()

    @property
    def points(self) -> int:
        """See `Focused.points`."""
        return self.learner.size

    @property
    def near(self) -> tuple[int]:
        """See `Focused.near`."""
        return (2 * self.learner.window,)

    def hot(self, runs: Runs, total: int, state: int) -> Bools:
        """See `Focused.hot`."""
        window = self.learner.window
        return np.asarray((runs.upto > state - window) & (runs.below < state + window))

    def release(self, aggregate: Counts, state: int, noise: Noise) -> int:
        """Release a value."""
        window = self.learner.window
        around = ranked(Order.of_counts(aggregate), state - window, state + window)
        return self.learner.finder.find(around, noise)


@dataclass(frozen=True)
class ChooseCandidate:
    """Choose one of four thresholds by its errors; the state before it is the value that was found.

    Args:
        label: grid coordinate from which a label counts as 1.
        learner: has the draw.
    """

    purpose: ClassVar[str] = "which of four thresholds makes few errors"
    label: int
    learner: InteriorPointLearner
    name: str = "threshold"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.learner.choice,)

    def summarize(self, block: Block, state: int) -> Tally:
        """Count the errors of each threshold."""
        examples = Examples.of_counts(labeled(block.points, self.label))
        return Tally(examples.errors(self.learner.candidates(state)))

    def release(self, aggregate: Tally, state: int, noise: Noise) -> FoundThreshold:
        """Release a threshold."""
        return FoundThreshold(self.learner.choose(state, aggregate.totals, noise))


class InteriorPointMethod(LearnerMethod):
    """An interior point of the examples around a privately chosen rank."""

    name: ClassVar[str] = "interior_point"

    def learner(self, share: float) -> InteriorPointLearner:
        """See `LearnerMethod.learner`."""
        setting = self.setting
        epsilon = share * setting.budget.epsilon
        return InteriorPointLearner.of(self.size, epsilon, setting.neighbors, setting.params.failure)

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        learner, label = self.learner(share), self.label
        if self.size <= CELLS:
            return (LearnThreshold(label, learner),)
        return (
            CountExamples(learner),
            ChooseRank(label, learner, salt=self.setting.salt),
            FindInWindow(learner),
            ChooseCandidate(label, learner),
        )

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        learner, alpha = self.learner(share), self.setting.params.alpha
        failure = (
            self.setting.params.failure / 2
        )  # the other half is for the number of examples and the finder
        needed = learner.examples_needed(alpha, failure)
        covered = f"The promised number of errors is for at most {learner.examples_covered:,} examples."
        errors = learner.errors(failure)
        tightness = Tightness(
            f"Of the {errors:,} errors, {learner.rank.scale * math.log(MOST_RANKS):,.0f} allow for a choice "
            f"among {MOST_RANKS:,} ranks that all but one are equally bad, and {learner.window:,} for a "
            "window around the rank in which all labels are wrong. No rows are known that have both. Where "
            "labels change once, few ranks are nearly as good as the best, and errors are ten times smaller "
            "or more.",
            reached=False,
        )
        names = ("alpha", "records_needed", "errors")
        return Accuracy(
            Promises(alpha, needed, errors),
            error=needed,
            notes=(*self.notes, covered),
            tightness=dict.fromkeys(names, tightness),
        )
