"""What the methods that look at a random subset of the records share."""

from abc import abstractmethod
from typing import ClassVar

from core.draws import Charged
from core.errors import InvalidValue
from core.interior_point.found import Promises
from core.interior_point.params import InteriorPoint
from core.interior_point.rounds import Finder, FindInSample
from core.task import Accuracy, Method
from core.tightness import Tightness


class SampledMethod(Method[InteriorPoint]):
    """A method whose finder knows the number of records, and gets a random subset of as many as it needs."""

    tightness: ClassVar[str]
    """See `Tightness.says`."""

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.neighbors.name != "replace_one":
            return InvalidValue(
                "method",
                self.name,
                "it works with the number of records, which is public under neighbors replace_one only, and "
                "never that of a group; use exponential",
            )
        if self.setting.budget.delta == 0:
            return InvalidValue("delta", 0, f"method {self.name} needs one above 0; use exponential")
        return None

    @property
    def size(self) -> int:
        """Number of grid points."""
        return self.setting.grid.extents[0] + 1

    @property
    def bits(self) -> int:
        """Depth of a binary tree over the grid points."""
        return max(1, (self.size - 1).bit_length())

    @abstractmethod
    def finder(self, share: float) -> Finder:
        """Return the algorithm, with the draws that `share` of the budget pays for."""

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        finder = self.finder(share)
        records = finder.records_needed(self.setting.params.failure)
        return (FindInSample(finder, records, self.size - 1, self.setting.salt),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        records = self.finder(share).records_needed(self.setting.params.failure)
        return promised(
            self.name,
            records,
            self.tightness,
            f"It uses {records:,} records, chosen at random.",
        )


def promised(method: str, records: int, tightness: str, *more: str) -> Accuracy:
    """Return what is promised; methods are compared by the number of records that they need.

    Args:
        method: its name.
        records: from so many records on, the released point is an interior point.
        tightness: see `Tightness.says`.
        more: sentences for the person who reads a plan.
    """
    needs = f"{method} needs {records:,} records for an interior point."
    return Accuracy(
        Promises(records),
        error=records,
        notes=(needs, *more),
        tightness={"records_needed": Tightness(tightness, reached=False)},
    )
