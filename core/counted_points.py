"""Rounds that count every point of an axis.

Where a release needs nothing but the ranks of some points, no process needs to hold all values. If the axis
has more than `CELLS` points, workers examine the counts in sections, each of which is a part of the points;
see `core.rounds.RoundInSections`. The parts wait in a store, and the release reads them one by one when it
asks for ranks; see `StoredOrder`. It gets the same ranks as from all counts at once, so what is released has
the same distribution.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.focus import CELLS
from core.gaps import Order
from core.noise import Noise
from core.rounds import Block, State
from core.stored import SECTIONS, InMemory, Store, Stored

Ints = NDArray[np.int64]


class Ranks(Protocol):
    """What a release needs of a multiset of grid points."""

    @property
    def total(self) -> int:
        """Number of records."""

    def ranks_at(self, points: Ints) -> Ints:
        """Number of records below each of `points`, shape (k,)."""


@dataclass(frozen=True, eq=False)
class StoredOrder:
    """A multiset of grid points in parts that wait in a store; see `core.gaps.Order`.

    Args:
        parts: what the store's `put` returned of each part, which is an `Order`.
        totals: shape (m,), records of each part.
        ends: shape (m, 2), the smallest and the largest point of each part.
        store: where the parts are.
    """

    parts: tuple[Any, ...]
    totals: Ints
    ends: Ints
    store: Store = field(default_factory=InMemory)

    @classmethod
    def of(cls, counts: Counts, store: Store) -> "StoredOrder":
        """Store counts as one part, or none where there are no records."""
        if not len(counts):
            return cls((), np.zeros(0, np.int64), np.zeros((0, 2), np.int64), store)
        order = Order.of_counts(counts)
        return cls((store.put(order),), np.array([order.total]), counts.keys[[0, -1]][np.newaxis], store)

    @classmethod
    def of_stored(cls, counts: Stored) -> "StoredOrder":
        """Store the parts of counts, each as one part."""
        store = counts.store.another()
        first, *others = (cls.of(part, store) for part in counts)
        return sum(others, first)

    def __add__(self, other: "StoredOrder") -> "StoredOrder":
        """Add parts that have no point in common with these, and are in the same store."""
        totals, ends = np.append(self.totals, other.totals), np.concatenate([self.ends, other.ends])
        return StoredOrder(self.parts + other.parts, totals, ends, self.store)

    def __len__(self) -> int:
        return len(self.parts)

    def __eq__(self, other: object) -> bool:
        """Say whether both are the same records, however they are cut into parts."""
        if not isinstance(other, StoredOrder):
            return False
        values = np.concatenate(
            [np.zeros(0, np.int64), *(other.store.get(kept).values for kept in other.parts)]
        )
        points = np.append(values, values + 1)
        return self.total == other.total and np.array_equal(self.ranks_at(points), other.ranks_at(points))

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self.totals.sum())

    def ranks_at(self, points: Ints) -> Ints:
        """Number of records below each of `points`, shape (k,)."""
        ranks = np.zeros(len(points), dtype=np.int64)
        for kept, total, (low, high) in zip(self.parts, self.totals, self.ends, strict=True):
            within = (points > low) & (points <= high)
            ranks[points > high] += total
            if within.any():
                ranks[within] += self.store.get(kept).ranks_at(points[within])
        return ranks


@dataclass(frozen=True)
class Between:
    """The records from one point on and below another, as ranks of points from the first one on.

    Args:
        whole: all records.
        low: the first point, which becomes 0.
        high: the point after the last.
    """

    whole: Ranks
    low: int
    high: int

    @property
    def total(self) -> int:
        """Number of records."""
        first, last = self.whole.ranks_at(np.array([self.low, self.high])).tolist()
        return int(last - first)

    def ranks_at(self, points: Ints) -> Ints:
        """Number of records below each of `points`, shape (k,), from 0 to the number of points."""
        ranks = self.whole.ranks_at(np.append(self.low, points + self.low))
        return np.asarray(ranks[1:] - ranks[0])


class CountsPoints:
    """A round that counts the records at every point of one axis."""

    def summarize(self, block: Block, state: State) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def recount(self, counts: Stored, state: State) -> Any:
        """See `core.rounds.total_of_stored`."""
        return counts.whole()


class ReadsRanks(CountsPoints):
    """Such a round whose release reads its aggregate by `order_of`; see the docstring of the module."""

    floor: ClassVar[int] = 0

    @property
    @abstractmethod
    def points(self) -> int:
        """Number of grid points."""

    @property
    def sections(self) -> int:
        """See `core.rounds.RoundInSections`: none where points are few."""
        return SECTIONS if self.points > CELLS else 0

    @property
    def most_counts(self) -> int:
        """Most counts at work; a section, which is only searched, takes less up to 3 10^8 distinct values."""
        return min(self.points, CELLS)

    def recount(self, counts: Stored, state: State) -> Counts | StoredOrder:
        """See `core.rounds.total_of_stored`."""
        if not self.sections or len(counts) <= CELLS:
            return counts.whole()
        return StoredOrder.of_stored(counts)

    def examine(self, section: Counts, state: State, noise: Noise, store: Store) -> StoredOrder:
        """Store the counts of a section; see `core.rounds.RoundInSections`."""
        return StoredOrder.of(section, store)


def order_of(aggregate: Counts | StoredOrder) -> Ranks:
    """Return the records of an aggregate of `ReadsRanks`."""
    return Order.of_counts(aggregate) if isinstance(aggregate, Counts) else aggregate
