"""An interior point under policies whose secret pairs are near each other: a search for the median."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.counted_points import ReadsRanks, StoredOrder, order_of
from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.interior_point.found import FoundPoint
from core.interior_point.params import InteriorPoint
from core.interior_point.sampled import promised
from core.mechanisms.ordered_search import OrderedSearch, check_near
from core.noise import Noise
from core.task import Accuracy, Method

_TIGHTNESS = (
    "About so many rows are needed where they have two neighboring values, half of them each, and "
    "every noisy count may mislead the search. Where rows spread, few counts can, and fewer suffice."
)


@dataclass(frozen=True)
class SearchMedian(ReadsRanks):
    """Find the point of rank n / 2; the sensitivity is that of `OrderedSearch`.

    Utility. If the search is off by at most m, at most n / 2 + m records are below the point and more than
    n / 2 - m are at or below it. So for n > 2 m some record is at or below it, and some at or above it.

    Args:
        search: finds a point of the rank.
    """

    search: OrderedSearch
    purpose: ClassVar[str] = "a point between the smallest and the largest row"
    name: str = "interior_point"

    @property
    def points(self) -> int:
        """See `ReadsRanks.points`."""
        return self.search.size

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.search.draws()

    def release(self, aggregate: Counts | StoredOrder, state: None, noise: Noise) -> FoundPoint:
        """Release a grid point; some point even where there are no records."""
        order = order_of(aggregate)
        return FoundPoint(int(self.search.points(order, np.array([order.total / 2]), noise)[0]))


class OrderedMethod(Method[InteriorPoint]):
    """A search for the median over noisy counts of the records below points."""

    name: ClassVar[str] = "ordered"
    uses_policy: ClassVar[bool] = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        return check_near(self.setting.neighbors, self.setting.grid.extents[0] + 1)

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (SearchMedian(self._search(share)),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        records = 2 * self._search(share).largest_error(1, self.setting.params.failure) + 1
        return promised(self.name, records, _TIGHTNESS)

    def _search(self, share: float) -> OrderedSearch:
        setting = self.setting
        size, epsilon = setting.grid.extents[0] + 1, share * setting.budget.epsilon
        return OrderedSearch.of(size, setting.neighbors.secrets, 1, epsilon)
