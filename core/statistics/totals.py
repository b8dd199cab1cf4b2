"""Exact totals of groups: sparse, keyed by group, and added up in any order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Ints, Keys, shard_of
from core.rounds import Block
from core.statistics.quantities import Quantity
from core.statistics.values import ValueCounts


@dataclass(frozen=True, eq=False)
class GroupTotals:
    """Totals of those groups that hold rows. Keys are sorted and distinct.

    Args:
        keys: shape (m,): numbers of public keys, or labels of private ones.
        totals: shape (m, q), int64: of each group and quantity.
        values: the values of those columns of which ranks are sought.
    """

    keys: Keys
    totals: Ints
    values: tuple[ValueCounts, ...] = ()

    @classmethod
    def of(
        cls, block: Block, quantities: Sequence[Quantity], labeled: bool, axes: Sequence[int] = ()
    ) -> "GroupTotals":
        """Add up the rows of a block; without groups all of them have the key 0.

        All rows of a unit are in one block, so its units can be counted there. Units are told apart by the
        identities of their rows.

        Args:
            block: n records.
            quantities: what is summed up.
            labeled: whether keys are labels, or else numbers of groups.
            axes: columns whose values are counted.
        """
        groups = np.zeros(len(block.points), np.int64) if block.groups is None else block.groups
        numbers, place = np.unique(groups, return_inverse=True)
        totals = np.empty((len(numbers), len(quantities)), dtype=np.int64)
        counted = np.bincount(place, minlength=len(numbers))
        order, starts = np.argsort(place, kind="stable"), np.append(0, np.cumsum(counted)[:-1])
        of_units = any(quantity.kind in ("units", "missing", "excess") for quantity in quantities)
        units = _distinct(place, block.ids, len(numbers)) if of_units else counted
        for i, quantity in enumerate(quantities):
            if quantity.kind == "rows":
                totals[:, i] = counted
            elif quantity.kind == "units":
                totals[:, i] = units
            elif quantity.kind in ("missing", "excess"):
                totals[:, i] = quantity.of_counts(counted, units)
            elif quantity.kind == "unit_sum":
                totals[:, i] = _clamped(quantity, place, block, len(numbers))
            elif len(numbers):
                totals[:, i] = np.add.reduceat(quantity.values(block.points)[order], starts)
        values = tuple(ValueCounts.of(place, block.points[:, axis]) for axis in axes)
        if not labeled:
            return cls(numbers, totals, values)
        labels = np.asarray(block.labels, dtype=np.bytes_)[numbers] if len(numbers) else np.empty(0, "S1")
        by_label = np.argsort(labels, kind="stable")
        width = int(np.char.str_len(labels).max(initial=1))
        moved = np.argsort(by_label)
        sorted_ = tuple(ValueCounts.merged([each], [moved]) for each in values)
        return cls(labels[by_label].astype(f"S{width}"), totals[by_label], sorted_)

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def merged(cls, parts: Sequence["GroupTotals"]) -> "GroupTotals":
        """Add up any number of totals at once, at least one."""
        filled = [part for part in parts if len(part)]
        if len(filled) < 2:
            return (filled or list(parts))[0]
        keys: Any = np.concatenate([part.keys for part in filled])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        totals = np.concatenate([part.totals for part in filled])[order]
        new = np.concatenate([[True], keys[1:] != keys[:-1]])
        first, place = np.flatnonzero(new), np.empty(len(keys), dtype=np.int64)
        place[order] = np.cumsum(new) - 1
        places = np.split(place, np.cumsum([len(part) for part in filled[:-1]]))
        values = zip(*(part.values for part in filled), strict=True)
        merged = tuple(ValueCounts.merged(each, places) for each in values)
        return cls(keys[first], np.add.reduceat(totals, first, axis=0), merged)

    def __add__(self, other: "GroupTotals") -> "GroupTotals":
        return self.merged([self, other])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GroupTotals)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.totals, other.totals)
            and self.values == other.values
        )

    def above(self, floor: int) -> "GroupTotals":
        """Return the totals as they are: no floor but 0 is used, and every group here holds a row."""
        return self

    def split(self, shards: int) -> "Sequence[GroupTotals]":
        """Split by key into `shards` parts, of which any may be empty."""
        shard = shard_of(self.keys, shards)
        order = np.argsort(shard, kind="stable")  # keys stay ascending in every shard
        keys, totals = self.keys[order], self.totals[order]
        ends = np.searchsorted(shard[order], np.arange(shards + 1))
        parts = [slice(*ends[number : number + 2]) for number in range(shards)]
        values = [tuple(each.kept(shard == number) for each in self.values) for number in range(shards)]
        return [GroupTotals(keys[p], totals[p], of) for p, of in zip(parts, values, strict=True)]

    def at(self, keys: Keys) -> Ints:
        """Return the totals of groups, shape (len(keys), q); those of a group without rows are 0."""
        found = np.zeros((len(keys), self.totals.shape[1]), dtype=np.int64)
        place = self.places(keys)
        found[place >= 0] = self.totals[place[place >= 0]]
        return found

    def places(self, keys: Keys) -> Ints:
        """Return the place of each of some keys among the groups; -1 for one without rows."""
        if not len(self):
            return np.full(len(keys), -1)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        return np.where(self.keys[place] == keys, place, -1)


def _distinct(place: Ints, ids: NDArray[np.uint64], groups: int) -> Ints:
    """Return the number of distinct identities in each group."""
    order, first = _units(place, ids)
    return np.bincount(place[order[first]], minlength=groups)


def _clamped(quantity: Quantity, place: Ints, block: Block, groups: int) -> Ints:
    """Return the sum of each group, in which the sum of each unit is clamped to the quantity's ends."""
    order, first = _units(place, block.ids)
    found = np.zeros(groups, dtype=np.int64)
    if len(first):
        of_units = np.add.reduceat(quantity.values(block.points)[order], first)
        np.add.at(found, place[order[first]], np.clip(of_units, *quantity.ends))
    return found


def _units(place: Ints, ids: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Return an order of rows by group and unit, and where in it the rows of each unit in a group begin."""
    order = np.lexsort((ids, place))
    place, ids = place[order], ids[order]
    new = np.ones(len(ids), dtype=np.bool_)
    new[1:] = (place[1:] != place[:-1]) | (ids[1:] != ids[:-1])
    return order, np.flatnonzero(new)
