"""Exact totals of groups: sparse, keyed by group, and added up in any order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Ints, Keys, shard_of
from core.rounds import Block
from core.statistics.quantities import Quantity


@dataclass(frozen=True, eq=False)
class GroupTotals:
    """Totals of those groups that hold rows. Keys are sorted and distinct.

    Args:
        keys: shape (m,): numbers of public keys, or labels of private ones.
        totals: shape (m, q), int64: of each group and quantity.
    """

    keys: Keys
    totals: Ints

    @classmethod
    def of(cls, block: Block, quantities: Sequence[Quantity], labeled: bool) -> "GroupTotals":
        """Add up the rows of a block; without groups all of them have the key 0.

        All rows of a unit are in one block, so its units can be counted there. Units are told apart by the
        identities of their rows.

        Args:
            block: n records.
            quantities: what is summed up.
            labeled: whether keys are labels, or else numbers of groups.
        """
        groups = np.zeros(len(block.points), np.int64) if block.groups is None else block.groups
        numbers, place = np.unique(groups, return_inverse=True)
        totals = np.empty((len(numbers), len(quantities)), dtype=np.int64)
        counted = np.bincount(place, minlength=len(numbers))
        order, starts = np.argsort(place, kind="stable"), np.append(0, np.cumsum(counted)[:-1])
        for i, quantity in enumerate(quantities):
            if quantity.kind == "rows":
                totals[:, i] = counted
            elif quantity.kind == "units":
                totals[:, i] = _distinct(place, block.ids, len(numbers))
            elif len(numbers):
                totals[:, i] = np.add.reduceat(quantity.values(block.points)[order], starts)
        if not labeled:
            return cls(numbers, totals)
        labels = np.asarray(block.labels, dtype=np.bytes_)[numbers] if len(numbers) else np.empty(0, "S1")
        by_label = np.argsort(labels, kind="stable")
        width = int(np.char.str_len(labels).max(initial=1))
        return cls(labels[by_label].astype(f"S{width}"), totals[by_label])

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
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        return cls(keys[first], np.add.reduceat(totals, first, axis=0))

    def __add__(self, other: "GroupTotals") -> "GroupTotals":
        return GroupTotals.merged([self, other])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GroupTotals)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.totals, other.totals)
        )

    def above(self, floor: int) -> "GroupTotals":
        """Return the totals as they are: no floor but 0 is used, and every group here holds a row."""
        return self

    def split(self, shards: int) -> list["GroupTotals"]:
        """Split by key into `shards` parts, of which any may be empty."""
        shard = shard_of(self.keys, shards)
        order = np.argsort(shard, kind="stable")  # keys stay ascending in every shard
        keys, totals = self.keys[order], self.totals[order]
        ends = np.searchsorted(shard[order], np.arange(shards + 1))
        parts = [slice(*ends[number : number + 2]) for number in range(shards)]
        return [GroupTotals(keys[part], totals[part]) for part in parts]

    def at(self, keys: Keys) -> Ints:
        """Return the totals of groups, shape (len(keys), q); those of a group without rows are 0."""
        found = np.zeros((len(keys), self.totals.shape[1]), dtype=np.int64)
        if len(self):
            place = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
            here = self.keys[place] == keys
            found[here] = self.totals[place[here]]
        return found


def _distinct(place: Ints, ids: NDArray[np.uint64], groups: int) -> Ints:
    """Return the number of distinct identities in each group."""
    order = np.lexsort((ids, place))
    place, ids = place[order], ids[order]
    new = np.ones(len(ids), dtype=np.bool_)
    new[1:] = (place[1:] != place[:-1]) | (ids[1:] != ids[:-1])
    return np.bincount(place[new], minlength=groups)
