"""Ranks of records whose counts wait in parts: the same as those of all counts, however they are cut."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from core import counted_points
from core.aggregate import Counts
from core.counted_points import Between, ReadsRanks, StoredOrder, order_of
from core.gaps import Order
from core.rounds import run_on_stored
from core.stored import InMemory, Stored
from tests.core.test_stored import Pickles

SHAPES = {
    "spread": np.random.default_rng(0).integers(0, 1 << 40, 2000),
    "ties": np.random.default_rng(1).integers(0, 30, 2000),
    "one value": np.full(50, 7),
    "none": np.zeros(0, dtype=np.int64),
    "ends": np.array([0, 0, (1 << 62) - 1]),
}


def parts_of(counts: Counts, cut: str) -> list[Counts]:
    """Cut counts by hash, by value, or not at all."""
    if cut == "by hash":
        return counts.split(7)
    ends = [0, len(counts) // 3, len(counts)] if cut == "by value" else [0, len(counts)]
    return [Counts(counts.keys[a:b], counts.counts[a:b]) for a, b in pairwise(ends)]


@pytest.mark.parametrize("cut", ["by hash", "by value", "whole"])
@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_are_those_of_all_counts(shape: str, cut: str) -> None:
    counts = Counts.of(SHAPES[shape])
    store = Pickles()
    first, *others = (StoredOrder.of(part, store) for part in parts_of(counts, cut))
    stored, whole = sum(others[::-1], first), Order.of_counts(counts)
    near = np.concatenate([counts.keys - 1, counts.keys, counts.keys + 1, [-1, 0, 1 << 62]])
    assert stored.total == whole.total == len(SHAPES[shape])
    assert np.array_equal(stored.ranks_at(near), whole.ranks_at(near))
    assert len(stored.ranks_at(near[:0])) == 0
    assert stored == StoredOrder.of(counts, InMemory())
    assert stored != StoredOrder.of(Counts.of(np.append(SHAPES[shape], 3)), InMemory())


def test_records_of_a_stretch_are_ranked_from_its_first_point() -> None:
    line = Order.of_counts(Counts.of(np.array([1, 1, 4, 6, 6, 6, 9])))
    part = Between(line, 4, 9)
    assert part.total == 4
    assert part.ranks_at(np.arange(6)).tolist() == [0, 1, 1, 4, 4, 4]
    assert Between(line, 10, 12).total == 0


@dataclass(frozen=True)
class AllRanks(ReadsRanks):
    """Release, without noise, how many records are below each of some points."""

    size: int
    name: str = "ranks"
    purpose: str = "ranks"

    @property
    def points(self) -> int:
        return self.size

    def release(self, aggregate, state, noise):
        held.append(type(aggregate))
        return order_of(aggregate).ranks_at(np.arange(0, 1 << 40, 1 << 34)).tolist()


held: list[type] = []


@pytest.mark.parametrize(("most", "kind"), [(100, StoredOrder), (5000, Counts)])
def test_many_stored_counts_are_not_held_at_once(
    monkeypatch: pytest.MonkeyPatch, most: int, kind: type
) -> None:
    """Those of a group, say, of which a round needs ranks alone."""
    monkeypatch.setattr(counted_points, "CELLS", most)
    counts = Counts.of(SHAPES["spread"])
    store = Pickles()
    first, *others = (Stored.of(part, store) for part in counts.split(5))
    round_ = AllRanks(1 << 40)
    assert round_.sections == counted_points.SECTIONS and round_.most_counts == most
    got = run_on_stored([round_], sum(others, first), None, None)
    assert got == Order.of_counts(counts).ranks_at(np.arange(0, 1 << 40, 1 << 34)).tolist()
    assert held.pop() is kind
    assert AllRanks(most).sections == 0
