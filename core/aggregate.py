"""Integer aggregates with an associative, commutative `+`: the same bit for bit under any split."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Aggregate(Protocol):
    """What workers send to the private stage."""

    def __add__(self, other: Self) -> Self:
        """Merge two aggregates of disjoint parts of the data."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Sparse counts: `counts[i]` records have key `keys[i]`; keys are sorted and distinct.

    Args:
        keys: shape (m,), int64.
        counts: shape (m,), int64, all positive.
    """

    keys: Ints
    counts: Ints

    @classmethod
    def of(cls, keys: Ints) -> "Counts":
        """Count the occurrences in `keys`, shape (n,)."""
        keys = np.sort(keys)
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else keys
        return cls(keys[first], np.diff(np.append(first, len(keys))))

    @classmethod
    def joined(cls, parts: Sequence["Counts"]) -> "Counts":
        """Join parts whose keys ascend from part to part."""
        return cls(np.concatenate([p.keys for p in parts]), np.concatenate([p.counts for p in parts]))

    def __add__(self, other: "Counts") -> "Counts":
        if not len(other.keys):
            return self
        if not len(self.keys):
            return other
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        counts = np.concatenate([self.counts, other.counts])[order]
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        return Counts(keys[first], np.add.reduceat(counts, first))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Counts)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.counts, other.counts)
        )

    def above(self, floor: int) -> "Counts":
        """Keep max(0, count - floor) where it is positive: still 1-Lipschitz in every count."""
        kept = self.counts > floor
        return Counts(self.keys[kept], self.counts[kept] - floor)

    def split(self, shards: int) -> list[tuple[int, "Counts"]]:
        """Split by key into at most `shards` parts, each with the number of its shard."""
        mixed = self.keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        shard = (mixed >> np.uint64(40)) % np.uint64(shards)
        parts = ((s, shard == s) for s in range(shards))
        return [(s, Counts(self.keys[here], self.counts[here])) for s, here in parts if here.any()]


@dataclass(frozen=True, eq=False)
class Tally:
    """Dense integer totals: counts of fixed cells, or a sum of integer vectors beside its count.

    Args:
        totals: shape (m,), int64.
    """

    totals: Ints

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.totals + other.totals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and np.array_equal(self.totals, other.totals)
