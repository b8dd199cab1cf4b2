"""Counts that no process needs to hold as a whole: their parts wait in a store, and are read one by one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from core.aggregate import Counts, Ints

SECTIONS = 128
"""Sections of stored counts of many groups, or of a wide axis: of a hundred million, each has a million."""


class Store(Protocol):
    """Where pieces wait. They are as secret as the records."""

    def put(self, piece: Any) -> Any:
        """Keep a piece; return what `get` needs."""

    def get(self, kept: Any) -> Any:
        """Return the piece for what `put` returned."""

    def another(self) -> "Store":
        """Return an empty store of the same kind. Its pieces are gone with it."""


@dataclass(frozen=True)
class InMemory:
    """A store that keeps nothing: whoever holds what `put` returned holds the piece."""

    def put(self, piece: Any) -> Any:
        """See `Store.put`."""
        return piece

    def get(self, kept: Any) -> Any:
        """See `Store.get`."""
        return kept

    def another(self) -> "InMemory":
        """See `Store.another`."""
        return self


@dataclass(frozen=True, eq=False)
class Stored:
    """Counts, or an aggregate like them, in parts that have no key in common, in a store.

    Args:
        parts: what the store's `put` returned of each part.
        sizes: number of keys of each part.
        store: where the parts are.
    """

    parts: tuple[Any, ...]
    sizes: tuple[int, ...]
    store: Store = field(default_factory=InMemory)

    @classmethod
    def of(cls, counts: Any, store: Store | None = None) -> "Stored":
        """Store counts as one part; return what is stored as it is."""
        if isinstance(counts, Stored):
            return counts
        store = InMemory() if store is None else store
        return cls((store.put(counts),), (len(counts),), store)

    def __len__(self) -> int:
        return sum(self.sizes)

    def __iter__(self) -> Iterator[Any]:
        return map(self.store.get, self.parts)

    def __add__(self, other: "Stored") -> "Stored":
        """Add counts that have no key in common with these, and are in the same store."""
        return Stored(self.parts + other.parts, self.sizes + other.sizes, self.store)

    def __eq__(self, other: object) -> bool:
        """Say whether both are the same counts, however they are cut into parts."""
        return isinstance(other, Stored) and self.whole() == other.whole()

    def whole(self) -> Counts:
        """Return all counts."""
        return Counts.merged(list(self))


def batches(sizes: Ints, most: int) -> Ints:
    """Return the ends of batches of neighboring things, from 0 on: of one, or of several of at most a size.

    Args:
        sizes: of the things, shape (n,).
        most: of a batch of several.
    """
    ends, held = [0], 0
    for place, size in enumerate(sizes.tolist()):
        if held + size > most and place > ends[-1]:
            ends.append(place)
            held = 0
        held += size
    return np.array([*ends, len(sizes)])
