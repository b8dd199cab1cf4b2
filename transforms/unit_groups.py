"""Which groups a privacy unit keeps, where it may be in at most some of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import scramble
from transforms.sorted_words import sorted_numbers, sorted_within
from transforms.unit_keys import unit_ids, unit_keys

Ints = NDArray[np.int64]

GROUP = 0x67726F7570
"""Tweak of the hash that chooses groups. No sampling of records uses it."""


@dataclass(frozen=True)
class GroupNames:
    """What chooses groups by their names: made once for all rows of a shard.

    Args:
        hashes: of the names, shape (names,).
        ranks: place of each name in their order, shape (names,).
    """

    hashes: NDArray[np.uint64]
    ranks: Ints

    @classmethod
    def of(cls, names: pa.Array, salt: bytes) -> "GroupNames":
        """Return it for labels or numbers of groups, all different, and 16 secret bytes."""
        ranks = np.empty(len(names), dtype=np.int64)
        ranks[pc.sort_indices(names).to_numpy()] = np.arange(len(names))
        return cls(unit_ids(unit_keys(names, salt)), ranks)


@dataclass(frozen=True)
class UnitGroups:
    """The pairs of a unit and a group in which it has rows, unit by unit.

    Args:
        order: rows in the order of their pairs, shape (n,).
        of_pair: pair of each row in that order, shape (n,).
        rows: number of rows of each pair, shape (pairs,).
        hashes: of the unit and the group, shape (pairs,).
        kept: whether the unit keeps the group, shape (pairs,).
    """

    order: NDArray[np.intp]
    of_pair: Ints
    rows: Ints
    hashes: NDArray[np.uint64]
    kept: NDArray[np.bool_]

    @classmethod
    def of(
        cls, of_unit: Ints, ids: NDArray[np.uint64], groups: Ints, names: GroupNames, most: int, salt: bytes
    ) -> "UnitGroups":
        """Choose for each unit at most `most` of its groups: those with the smallest hashes.

        What a unit keeps is a function of the groups in which it has rows: it depends neither on other units
        nor on the places of rows.

        Args:
            of_unit: shape (n,), index of the unit of each row.
            ids: shape (units,), identities.
            groups: shape (n,), the group of each row as an index of `names`.
            names: of the groups.
            most: groups that a unit keeps.
            salt: 16 secret bytes.
        """
        pair = of_unit * len(names.hashes) + groups
        order = sorted_numbers(pair)
        pair = pair[order]
        first = np.append(True, pair[1:] != pair[:-1]) if len(pair) else np.empty(0, dtype=np.bool_)
        begins, of_pair = np.flatnonzero(first), np.cumsum(first) - 1
        unit_of, group_of = np.divmod(pair[begins], len(names.hashes))
        hashes = pair_hashes(ids[unit_of], names.hashes[group_of], salt)
        # Two groups of a unit may have one hash if their names have: then the smaller name comes first.
        ranked = sorted_within(unit_of, hashes, (names.ranks[group_of],))
        kept = np.empty(len(begins), dtype=np.bool_)
        kept[ranked] = places(unit_of[ranked]) < most
        return cls(order, of_pair, np.diff(np.append(begins, len(pair))), hashes, kept)

    def keep(self) -> NDArray[np.bool_]:
        """Return which rows are in groups that their units keep, shape (n,)."""
        kept = np.empty(len(self.order), dtype=np.bool_)
        kept[self.order] = self.kept[self.of_pair]
        return kept


def pair_hashes(ids: NDArray[np.uint64], names: NDArray[np.uint64], salt: bytes) -> NDArray[np.uint64]:
    """Return hashes of identities of units and hashes of names of groups, shape (n,) each."""
    return scramble(scramble(ids, salt, GROUP) ^ names, salt, GROUP)


def places(sorted_: NDArray[Any]) -> Ints:
    """Return the place of each element among the equal ones, in a sorted array."""
    new = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1])) if len(sorted_) else sorted_
    return np.arange(len(sorted_)) - np.repeat(new, np.diff(np.append(new, len(sorted_))))
