"""Rounds in memory: what is summed, looked at, examined and handed on, and what strands share."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.aggregate import Counts
from core.rounds import (
    Block,
    Strand,
    examined,
    number_of_passes,
    parts_of,
    run_in_memory,
    run_on_stored,
    run_strands_in_memory,
    sections_of,
    shared_passes,
    sharing,
    total_in_memory,
    total_of_stored,
)
from core.stored import Store, Stored
from tests.core.seeded import SeededNoise

NOISE = SeededNoise(0)


def block(*points: int) -> Block:
    return Block(np.array(points, dtype=np.int64)[:, None], np.arange(len(points), dtype=np.uint64))


@dataclass(frozen=True)
class Sum:
    """Adds the records to the state: in the units of the state that it has."""

    floor: int | None = None
    looks: int = 0
    seen: tuple[Any, ...] = ()
    examination: Any = None

    def summarize(self, block: Block, state: int) -> int:
        return state * int(block.points.sum())

    def recount(self, counts: int, state: int) -> int:
        return state * counts

    def release(self, aggregate: int, state: int, noise: Any) -> int:
        assert noise is NOISE
        return state + aggregate

    def coarse(self, state: int) -> "Sum":
        return replace(self, seen=("coarse", state))

    def finer(self, aggregate: Any, state: int) -> "Sum":
        return replace(self, seen=(*self.seen, aggregate))


class Total(int):
    """A number that can be stored, or split into shards."""

    def __len__(self) -> int:
        return 1

    def split(self, shards: int) -> list["Total"]:
        return [Total(self // shards + (place < self % shards)) for place in range(shards)]


@dataclass(frozen=True)
class Parts:
    """Three examiners, of which each finds what is due to it."""

    examiners: int = 3
    shards: int = 1

    def arrange(self, aggregate: Stored, store: Store) -> int:
        assert len(aggregate) == self.shards
        return 10 * sum(aggregate)

    def examine(self, arranged: int, part: int) -> int:
        return arranged * 100**part


def test_each_round_reads_all_blocks_and_the_state_before_it() -> None:
    """Also of an iterator, which can be read once."""
    blocks = [block(1, 2), block(), block(4)]
    assert run_in_memory([Sum(), Sum()], iter(blocks), 1, NOISE) == 64  # 1 + 7, and 8 + 8 * 7
    assert run_on_stored([Sum(), Sum()], 7, 1, NOISE) == 64  # type: ignore[arg-type]


def test_each_strand_reads_its_own_blocks_from_its_own_start() -> None:
    strands = [Strand((Sum(),), 1), Strand((Sum(), Sum()), 2)]
    assert run_strands_in_memory(strands, [[block(5)], [block(1)]], NOISE) == [6, 8]
    with pytest.raises(ValueError, match="shorter"):
        run_strands_in_memory(strands, [[block(5)]], NOISE)


@pytest.mark.parametrize(("floor", "expected"), [(None, [1, 2, 4]), (0, [1, 2, 4]), (1, [1, 3])])
def test_a_floor_is_taken_off_in_looks_and_at_the_end(floor: int | None, expected: list[int]) -> None:
    counts = Counts(np.arange(3), np.array([1, 2, 4]))
    looked: list[Any] = []

    class Counting(Sum):
        def summarize(self, block: Block, state: int) -> Any:
            return counts

        def finer(self, aggregate: Any, state: int) -> "Sum":
            looked.append(aggregate)
            return self

    total = total_in_memory(Counting(floor, looks=2), [block()], 1)
    assert [each.counts.tolist() for each in (*looked, total)] == [expected] * 3


def test_a_round_looks_as_often_as_it_says_and_is_then_what_it_became() -> None:
    """The round after its looks counts, and is examined."""
    seen: list[Any] = []

    class Watched(Sum):
        def summarize(self, block: Block, state: int) -> int:
            seen.append(self.seen)
            return state * int(block.points.sum())

    assert total_in_memory(Watched(looks=2), [block(3)], 2) == 6
    assert seen == [("coarse", 2), ("coarse", 2, 6), ("coarse", 2, 6, 6)]
    became = SimpleNamespace(floor=None, summarize=lambda *_: Total(7), examination=Parts())
    begun: Any = SimpleNamespace(looks=1, floor=None, summarize=lambda *_: 5, finer=lambda *_: became)
    begun.coarse = lambda _: begun
    assert total_in_memory(begun, [block()], 1) == 70 + 7000 + 700_000
    assert number_of_passes([Sum(looks=2), Sum()]) == 4


def test_all_examiners_find_something_in_what_is_arranged_once() -> None:
    for shards in (1, 4):
        assert examined(Sum(examination=Parts(shards=shards)), Total(7)) == 70 + 7000 + 700_000
    counts: Any = Total(7)

    class Recounted(Sum):
        def recount(self, counts: int, state: int) -> int:
            return Total(state * counts)

    assert total_of_stored(Recounted(examination=Parts()), counts, 1) == 70 + 7000 + 700_000


def test_sections_are_examined_with_noise_and_each_on_its_own() -> None:
    class Whole(list[int]):
        def split(self, sections: int) -> list[int]:
            return [sum(self[start::sections]) for start in range(sections)]

    def examine(section: int, state: int, noise: Any, store: Any) -> int:
        assert noise is NOISE and store.put is not None
        return state * section**2

    step: Any = SimpleNamespace(
        sections=2, examine=examine, floor=None, summarize=lambda block, _: Whole([1, 2, 3])
    )
    assert total_in_memory(step, [block()], 10, NOISE) == 10 * (16 + 4)
    stored: Any = SimpleNamespace(sections=2, floor=None, recount=lambda counts, _: counts)
    assert total_of_stored(stored, "as they are stored", 1) == "as they are stored"  # type: ignore[arg-type]


def test_a_round_without_sections_or_parts_is_like_any_other() -> None:
    """Also one that could have them, and one that has no release of parts."""
    none: Any = SimpleNamespace(sections=0, floor=None, summarize=lambda *_: 7, recount=lambda *_: 7)
    assert sections_of(none) == sections_of(Sum()) == 0
    assert total_in_memory(none, [block()], 1, NOISE) == total_of_stored(none, 7, 1) == 7  # type: ignore[arg-type]
    assert parts_of(SimpleNamespace(parts=3)) == 1  # type: ignore[arg-type]
    assert parts_of(SimpleNamespace(parts=3, release_part=None)) == 3  # type: ignore[arg-type]


def test_strands_share_passes_but_those_that_have_an_examination() -> None:
    """As many as the longest of them takes; one examination is enough for a strand to be alone."""
    short, long = Strand((Sum(),), 0), Strand((Sum(looks=2), Sum()), 0)
    alone = Strand((Sum(), Sum(examination=Parts())), 0)
    for strands, groups, passes in (
        ([short, long], [[0, 1]], 4),
        ([alone, short, long], [[1, 2], [0]], 6),
        ([alone, alone], [[0], [1]], 4),
        ([], [], 0),
    ):
        assert sharing(strands) == groups
        assert shared_passes(strands) == passes
