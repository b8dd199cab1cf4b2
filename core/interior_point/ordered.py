"""An interior point under policies whose secret pairs are near each other: a search for the median."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.draws import Draw
from core.errors import InvalidValue
from core.gaps import Order
from core.interior_point.counted import CountsMethod
from core.mechanisms.ordered_search import OrderedSearch, check_near
from core.noise import Noise


@dataclass(frozen=True)
class OrderedFinder:
    """Find the point of rank n / 2; the sensitivity is that of `OrderedSearch`.

    Utility. If the search is off by at most m, at most n / 2 + m records are below the point and more than
    n / 2 - m are at or below it. So for n > 2 m some record is at or below it, and some at or above it.

    Args:
        search: finds a point of the rank.
    """

    search: OrderedSearch

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder.draws`."""
        return self.search.draws()

    def find(self, order: Order, noise: Noise) -> int:
        """Release a grid point; some point even where there are no records."""
        return int(self.search.points(order, np.array([order.total / 2]), noise)[0])

    def records_needed(self, failure: float) -> int:
        """See `Finder.records_needed`."""
        return 2 * self.search.largest_error(1, failure) + 1


class OrderedMethod(CountsMethod):
    """A search for the median over noisy counts of the records below points."""

    name: ClassVar[str] = "ordered"
    tightness: ClassVar[str] = (
        "About so many rows are needed where they have two neighboring values, half of them each, and "
        "every noisy count may mislead the search. Where rows spread, few counts can, and fewer suffice."
    )
    uses_policy: ClassVar[bool] = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        return check_near(self.setting.neighbors, self.setting.grid.extents[0] + 1)

    def finder(self, share: float) -> OrderedFinder:
        """See `CountsMethod.finder`."""
        setting = self.setting
        size, epsilon = setting.grid.extents[0] + 1, share * setting.budget.epsilon
        return OrderedFinder(OrderedSearch.of(size, setting.neighbors.secrets, 1, epsilon))
