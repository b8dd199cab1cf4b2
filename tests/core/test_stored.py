"""Counts in parts: the same counts, however they are cut and wherever they wait."""

import pickle

import numpy as np

from core.aggregate import Counts
from core.stored import InMemory, Stored


class Pickles:
    """A store that keeps bytes, so that no piece is held."""

    def put(self, piece):
        return pickle.dumps(piece)

    def get(self, kept):
        return pickle.loads(kept)

    def another(self):
        return Pickles()


def test_parts_are_the_counts_in_any_store():
    counts = Counts.of(np.random.default_rng(0).integers(0, 300, 1000))
    for store in (InMemory(), Pickles()):
        first, *others = (Stored.of(part, store) for part in counts.split(7))
        stored = sum(others[::-1], first)
        assert len(stored) == len(counts) and len(stored.parts) == 7
        assert stored.whole() == counts
        assert sum(len(part) for part in stored) == len(counts)
        assert stored == Stored.of(counts)
        assert Stored.of(stored) is stored
        assert stored != Stored.of(Counts(counts.keys, counts.counts + 1))


def test_nothing_is_stored_as_nothing():
    nothing = Stored.of(Counts.of(np.zeros(0, dtype=np.int64)))
    assert len(nothing + nothing) == 0
    assert len((nothing + nothing).whole()) == 0
