"""What the methods that look at the counts of all records share."""

from abc import abstractmethod
from typing import ClassVar

from core.draws import Charged
from core.interior_point.params import InteriorPoint
from core.interior_point.rounds import Finder, FindInCounts
from core.interior_point.sampled import promised
from core.task import Accuracy, Method


class CountsMethod(Method[InteriorPoint]):
    """A method whose finder gets the counts of all records."""

    tightness: ClassVar[str]
    """See `Tightness.says`."""

    @abstractmethod
    def finder(self, share: float) -> Finder:
        """Return the algorithm, with the draws that `share` of the budget pays for."""

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (FindInCounts(self.finder(share)),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        return promised(
            self.name,
            self.finder(share).records_needed(self.setting.params.failure),
            self.tightness,
            "The counts of the distinct grid points are merged and sorted on one machine.",
        )
