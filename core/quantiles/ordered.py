"""Quantiles under policies whose secret pairs are near each other: a search over noisy cumulative counts."""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from core.aggregate import Counts
from core.counted_points import Ranks, ReadsRanks, StoredOrder, order_of
from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.mechanisms.ordered_search import OrderedSearch, check_near
from core.noise import Noise
from core.quantiles.found import FoundQuantiles, FoundValue, Promises, in_order, promised
from core.quantiles.params import OneValue, Quantiles
from core.task import Accuracy, Method
from core.tightness import Tightness


@dataclass(frozen=True)
class SearchQuantiles(ReadsRanks):
    """Release several quantiles; the sensitivity is that of `OrderedSearch`.

    Args:
        probabilities: ascending, in (0, 1).
        search: finds a point for each rank.
    """

    probabilities: tuple[float, ...]
    search: OrderedSearch
    purpose: ClassVar[str] = "where the quantiles lie"
    name: str = "quantiles"

    @property
    def points(self) -> int:
        """See `ReadsRanks.points`."""
        return self.search.size

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.search.draws()

    def release(self, aggregate: Counts | StoredOrder, state: None, noise: Noise) -> FoundQuantiles:
        """Release a grid point for each probability."""
        order = order_of(aggregate)
        steps = self.search.points(order, np.array(self.probabilities) * order.total, noise)
        return in_order(self.probabilities, steps.tolist())


@dataclass(frozen=True)
class SearchValue(ReadsRanks):
    """Release one quantile or extreme; the sensitivity is that of `OrderedSearch`.

    Args:
        probability: p, in [0, 1].
        inside: how many records inside of an extreme a value is sought, at most half of them; 0 for
            0 < p < 1.
        search: finds a point of the rank.
    """

    probability: float
    inside: int
    search: OrderedSearch
    purpose: ClassVar[str] = "a value whose rank is close to the wanted one"
    name: str = "release"

    @property
    def points(self) -> int:
        """See `ReadsRanks.points`."""
        return self.search.size

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.search.draws()

    def release(self, aggregate: Counts | StoredOrder, state: None, noise: Noise) -> FoundValue:
        """Release a grid point."""
        return self.found(order_of(aggregate), noise)

    def found(self, order: Ranks, noise: Noise) -> FoundValue:
        """Release a grid point, given the records."""
        inward = min(self.inside, order.total / 2) * (1 if self.probability == 0 else -1)
        rank = np.array([self.probability * order.total + inward])
        return FoundValue(int(self.search.points(order, rank, noise)[0]))


P = TypeVar("P", Quantiles, OneValue)


_TIGHTNESS = Tightness(
    "The promised rank error allows for every noisy count of a search to mislead it. Where many rows lie on "
    "each value, only the few counts near the wanted rank can, and errors are several times smaller.",
    reached=False,
)


class _Ordered(Method[P]):
    """A method that searches points of some ranks."""

    name: ClassVar[str] = "ordered"
    uses_policy: ClassVar[bool] = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        return check_near(self.setting.neighbors, self.setting.grid.extents[0] + 1)

    def _search(self, share: float, ranks: int) -> OrderedSearch:
        setting = self.setting
        size, epsilon = setting.grid.extents[0] + 1, share * setting.budget.epsilon
        return OrderedSearch.of(size, setting.neighbors.secrets, ranks, epsilon)


class OrderedQuantiles(_Ordered[Quantiles]):
    """All quantiles by one search; the counts below ends of blocks serve all of them."""

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        given = self.setting.params.probabilities
        return (SearchQuantiles(given, self._search(share, len(given))),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        params, ranks = self.setting.params, len(self.setting.params.probabilities)
        search = self._search(share, ranks)
        worst = search.largest_error(ranks, params.failure)
        return promised(worst, search.typical_error, search.typical_error, _TIGHTNESS)


class OrderedValue(_Ordered[OneValue]):
    """One quantile by one search.

    A minimum or maximum is sought m + 1 records inside of the extreme, m being the largest error. So among
    2 (m + 1) records or more the value is not beyond the extreme, and at most 2 m + 1 records are beyond it.
    """

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (SearchValue(self.setting.params.quantile, self._inside(share), self._search(share, 1)),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        search, inside = self._search(share, 1), self._inside(share)
        error = inside + search.largest_error(1, self.setting.params.failure)
        promises = Promises(error, math.hypot(inside, search.typical_error))
        if not inside:
            return Accuracy(promises, error=error, tightness={"rank_error": _TIGHTNESS})
        note = (
            f"The value is sought {inside:,} records inside of the extreme. Among at least {2 * inside:,} "
            "records the value is beyond them with a probability of at most "
            f"{self.setting.params.failure:.4g}; among fewer it is sought in their middle, and it may be "
            "anywhere in the domain."
        )
        return Accuracy(promises, error=error, notes=(note,), tightness={"rank_error": _TIGHTNESS})

    def _inside(self, share: float) -> int:
        params = self.setting.params
        if 0 < params.quantile < 1:
            return 0
        return self._search(share, 1).largest_error(1, params.failure) + 1
