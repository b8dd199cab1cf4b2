"""The round of threshold on an axis that is not wide, and what its methods share."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from core.aggregate import Counts
from core.draws import Charged, Draw
from core.noise import Noise
from core.policy import Cuts
from core.rounds import Block
from core.sections import InSections
from core.task import Method
from core.threshold.examples import Examples, labeled
from core.threshold.found import FoundThreshold
from core.threshold.params import Threshold


class Learner(Protocol):
    """A private algorithm that learns a threshold from examples on one machine."""

    @property
    def size(self) -> int:
        """Number of values."""

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw that `learn` can make."""

    def learn(self, examples: Examples, noise: Noise) -> int:
        """Release a threshold; never raises on data."""


@dataclass(frozen=True)
class LearnThreshold:
    """Count the examples of each value and label, then let the learner find a threshold.

    Neighbors, sensitivity and proof are those of the learner, which sees all examples.

    Args:
        label: grid coordinate from which a label counts as 1.
        learner: the algorithm.
    """

    purpose: ClassVar[str] = "from which value on rows are labeled 1"
    label: int
    learner: Learner
    name: str = "threshold"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.learner.draws()

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds: of every value and label."""
        return 2 * self.learner.size

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the examples of each value and label; see `labeled`."""
        return labeled(block.points, self.label)

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundThreshold:
        """Release a threshold."""
        return FoundThreshold(self.learner.learn(Examples.of_counts(aggregate), noise))


@dataclass(frozen=True)
class ExamplesInSections(InSections):
    """A round that counts the examples of each value and label in sections of the values.

    Args:
        label: grid coordinate from which a label counts as 1.
        learner: has the draws.
    """

    label: int
    learner: Learner

    @property
    def size(self) -> int:
        """See `InSections.size`."""
        return self.learner.size

    def count(self, block: Block) -> tuple[Counts, int]:
        """See `InSections.count`."""
        return labeled(block.points, self.label), 2


class LearnerMethod(Method[Threshold]):
    """A method that counts the examples and leaves the rest to a learner."""

    notes: ClassVar[tuple[str, ...]] = ("The threshold labels 1 what is at or above it.",)

    @property
    def size(self) -> int:
        """Number of grid points of the value's axis."""
        return self.setting.grid.extents[0] + 1

    @property
    def label(self) -> int:
        """Grid coordinate from which a label counts as 1."""
        return max(1, -(-self.setting.grid.extents[1] // 2))

    @property
    def labels(self) -> Cuts:
        """Two cells, the examples labeled 0 and those labeled 1."""
        return [np.empty(0, dtype=np.int64), np.array([self.label])]

    @abstractmethod
    def learner(self, share: float) -> Learner:
        """Return the algorithm, with the draws that `share` of the budget pays for."""

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (LearnThreshold(self.label, self.learner(share)),)
