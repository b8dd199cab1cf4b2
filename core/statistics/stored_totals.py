"""Totals of groups, and values that no process needs to hold as a whole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.aggregate import FACTOR, Keys, shard_of
from core.focus import HELD
from core.statistics.totals import GroupTotals
from core.statistics.values import ValueCounts
from core.stored import InMemory, Store, Stored, batches

_HASHES = 1 << 16
"""Hashes of groups, with which sections of their values follow from both."""


class TotalsInSections(GroupTotals):
    """Totals of groups that are split by group and value: a section has some values of each group."""

    def split(self, shards: int) -> "Sequence[TotalsInSections]":
        """Split into sections. The totals of a group are in one of them, and zeros elsewhere."""
        own, hashes = shard_of(self.keys, shards), shard_of(self.keys, _HASHES).astype(np.uint64)
        orders, ends = [], []
        for of in self.values:
            mixed = of.points.astype(np.uint64) ^ hashes[of.groups] * np.uint64(FACTOR)
            section = shard_of(mixed.view(np.int64), shards)
            orders.append(np.argsort(section, kind="stable"))  # so values stay ascending in every section
            ends.append(np.append(0, np.cumsum(np.bincount(section, minlength=shards))))
        parts = []
        for number in range(shards):
            here = [order[end[number] : end[number + 1]] for order, end in zip(orders, ends, strict=True)]
            present = own == number
            for of, some in zip(self.values, here, strict=True):
                present[of.groups[some]] = True
            places = np.cumsum(present) - 1
            values = tuple(
                ValueCounts(places[of.groups[some]], of.points[some], of.counts[some])
                for of, some in zip(self.values, here, strict=True)
            )
            totals = np.where((own == number)[present, None], self.totals[present], 0)
            parts.append(TotalsInSections(self.keys[present], totals, values))
        return parts


@dataclass(frozen=True, eq=False)
class StoredTotals:
    """Totals of groups, and their values in sections that wait in a store.

    Args:
        totals: of all groups, without values.
        distinct: of each group and axis, how many distinct values it has: totals, too.
        sections: what the store returned of the totals and values of each section, which have no pair of a
            group and a value in common.
        store: where sections are.
    """

    totals: GroupTotals
    distinct: GroupTotals
    sections: tuple[Any, ...]
    store: Store = field(default_factory=InMemory)

    @classmethod
    def of(cls, totals: "GroupTotals | StoredTotals", store: Store | None = None) -> "StoredTotals":
        """Store totals and their values as one section; return what is stored as it is."""
        if isinstance(totals, StoredTotals):
            return totals
        store, keys = InMemory() if store is None else store, totals.keys
        distinct = np.zeros((len(keys), len(totals.values)), dtype=np.int64)
        for axis, values in enumerate(totals.values):
            distinct[:, axis] = np.bincount(values.groups, minlength=len(keys))
        bare = GroupTotals(keys, totals.totals)
        return cls(bare, GroupTotals(keys, distinct), (store.put(totals),), store)

    def __len__(self) -> int:
        return len(self.totals)

    def __add__(self, other: "StoredTotals") -> "StoredTotals":
        """Add sections that have no pair of a group and a value in common, in the same store."""
        return StoredTotals(
            self.totals + other.totals,
            self.distinct + other.distinct,
            self.sections + other.sections,
            self.store,
        )

    def __eq__(self, other: object) -> bool:
        """Say whether both are the same totals and values, however they are cut into sections."""
        return isinstance(other, StoredTotals) and self.whole() == other.whole()

    def whole(self) -> GroupTotals:
        """Return all totals with their values."""
        return GroupTotals.merged([self.store.get(kept) for kept in self.sections])

    def values(self, keys: Keys) -> Iterator[tuple[Stored, ...]]:
        """Yield the values of each group by axis, in the order of some keys.

        Groups that together have at most `HELD` distinct values are held together. A larger one stays in
        parts.

        Args:
            keys: shape (n,), all different.
        """
        if not len(keys):
            return
        sizes = self.distinct.at(keys).sum(axis=1)
        ends = batches(sizes, HELD)
        store, dealt = self.store.another(), list[list[Any]]([] for _ in ends[1:])
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        for kept in self.sections:
            section = self.store.get(kept)
            place = order[np.minimum(np.searchsorted(ordered, section.keys), len(keys) - 1)]
            place = np.where(keys[place] == section.keys, place, -1)
            named = [of.renamed(place) for of in section.values]
            cuts = [np.searchsorted(of.groups, ends) for of in named]
            for number, pieces in enumerate(dealt):
                span = slice(number, number + 2)
                pieces.append(store.put([of.part(*cut[span]) for of, cut in zip(named, cuts, strict=True)]))
        for first, last, pieces in zip(ends[:-1].tolist(), ends[1:].tolist(), dealt, strict=True):
            if int(sizes[first:last].sum()) > HELD:
                yield tuple(_parts(pieces, axis, store) for axis in range(self.distinct.totals.shape[1]))
                continue
            of_axes = zip(*map(store.get, pieces), strict=True)
            together = [ValueCounts.joined(parts) for parts in of_axes]
            for group in range(first, last):
                yield tuple(Stored.of(values.at(group)) for values in together)
            pieces.clear()


def _parts(pieces: Sequence[Any], axis: int, store: Store) -> Stored:
    """Return the values of one group by axis, from pieces that have no other."""
    counts = (store.get(piece)[axis].counted() for piece in pieces)
    own = store.another()
    kept = [(own.put(each), len(each)) for each in counts]
    return Stored(tuple(place for place, _ in kept), tuple(size for _, size in kept), own)
