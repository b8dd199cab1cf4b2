"""Blocks are split by group: each record is in its own group, once, whatever the blocks were."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from core.rounds import Block
from core.sampling import poisson_sample
from transforms import split_groups
from transforms.split_groups import GroupSplit, ReaderOfGroups

SALT = b"sixteen secrets!"


@dataclass(frozen=True)
class Given:
    def blocks(self, element: list[Block]) -> Iterator[Block]:
        return iter(element)


def records(n: int, groups: int, blocks: int = 3) -> list[Block]:
    rng = np.random.default_rng(n)
    points, of = rng.integers(0, 1000, (n, 2)), rng.integers(0, groups, n)
    cut = np.array_split(np.arange(n), blocks)
    outside = [rng.integers(0, 3, (groups, 4)) for _ in cut]
    return [
        Block(points[part], part.astype(np.uint64), counts, of[part])
        for part, counts in zip(cut, outside, strict=True)
    ]


def reader(groups: int, salt: bytes | None = None) -> ReaderOfGroups:
    return ReaderOfGroups.one(Given(), GroupSplit(groups, 2, salt))


@pytest.mark.parametrize("held", [1, 64, 1 << 22])
@pytest.mark.parametrize("size", [8, 1 << 18])
def test_each_record_is_in_its_group(held: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_groups, "_MOST_HELD", held)
    monkeypatch.setattr(split_groups, "BLOCK_VALUES", size)
    element = records(500, 7)
    got = list(reader(7).blocks_of(element, range(7)))
    for group in range(7):
        mine = [block for number, block in got if number == group]
        assert all(len(block.points) <= max(1, size // 2) for block in mine)
        expected = [
            (block.points[block.groups == group], block.ids[block.groups == group]) for block in element
        ]
        for i, name in enumerate(("points", "ids")):
            ours = np.concatenate([getattr(block, name) for block in mine])
            assert np.array_equal(ours, np.concatenate([part[i] for part in expected]))
        counted = sum((block.outside for block in mine if block.outside is not None), np.zeros(4, np.int64))
        assert np.array_equal(counted, sum(block.outside[group] for block in element))
        assert all(block.groups is None and block.labels is None for block in mine)


def test_groups_without_records_have_an_empty_block_and_others_are_not_given() -> None:
    element = [Block(np.ones((4, 2), np.int64), np.arange(4, dtype=np.uint64), None, np.full(4, 2))]
    got = list(reader(5).blocks_of(element, [1, 2]))
    assert [(number, len(block.ids)) for number, block in got] == [(2, 4), (1, 0)]
    nothing = [Block(np.empty((0, 2), np.int64), np.empty(0, np.uint64), None, np.empty(0, np.int64))]
    assert [number for number, _ in reader(3).blocks_of(nothing, range(3))] == [0, 1, 2]


def test_many_small_blocks_are_split_together() -> None:
    element = records(1000, 4, blocks=50)
    assert len(list(reader(4).blocks_of(element, range(4)))) == 4


def test_a_unit_is_sampled_independently_in_its_groups() -> None:
    """All groups sample with one key, so the records of a unit need identities of their own."""
    n = 4000
    ids = np.arange(n, dtype=np.uint64)
    element = [Block(np.zeros((n, 2), np.int64), ids, None, np.full(n, group)) for group in range(2)]
    kept = {
        salt: [
            poisson_sample(block.ids, 0.5, SALT, 7)
            for _, block in sorted(reader(2, salt).blocks_of(element, range(2)), key=lambda pair: pair[0])
        ]
        for salt in (None, SALT)
    }
    assert np.array_equal(*kept[None])
    agree = np.count_nonzero(kept[SALT][0] == kept[SALT][1])
    assert abs(agree - n / 2) < 5.2 * np.sqrt(n) / 2  # one in five million by chance


def test_records_without_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="have no groups"):
        list(reader(1).blocks_of([Block(np.zeros((1, 2), np.int64), np.zeros(1, np.uint64))], [0]))


def test_the_salt_of_groups_is_not_in_any_text() -> None:
    assert "secrets" not in repr(reader(2, SALT))


def test_more_groups_than_a_byte_counts_are_told_apart() -> None:
    n = 1000
    points, ids = np.zeros((n, 2), np.int64), np.arange(n, dtype=np.uint64)
    element = [Block(points, ids, None, np.arange(n)[::-1].copy())]
    got = {number: block.ids.tolist() for number, block in reader(n).blocks_of(element, range(n))}
    assert got == {number: [n - 1 - number] for number in range(n)}


def test_what_is_left_out_of_a_group_without_records_is_counted() -> None:
    """Also of the last group."""
    counts = np.array([[0, 0, 0, 0], [3, 0, 0, 1], [0, 0, 0, 0], [0, 2, 0, 0]])
    element = [Block(np.ones((2, 2), np.int64), np.arange(2, dtype=np.uint64), counts, np.zeros(2, int))]
    got = {number: block for number, block in reader(4).blocks_of(element, range(4))}
    assert [len(got[number].ids) for number in range(4)] == [2, 0, 0, 0]
    for number, left in enumerate(counts):
        given = got[number].outside
        assert (given is None and not left.any()) or np.array_equal(given, left)


@dataclass(frozen=True)
class GivenOfQuestions:
    """Questions with one block each, whose only record has the number of its question as identity."""

    def blocks_of(self, element: list[int], due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        element += due
        for question in due:
            ids = np.array([question], dtype=np.uint64)
            yield question, Block(np.zeros((1, 2), np.int64), ids, None, np.array([1]))


def test_questions_with_groups_and_without_have_their_own_strands() -> None:
    """A question that is not due is not read, since that takes as long as for one that is."""
    reader_of_all = ReaderOfGroups(GivenOfQuestions(), (GroupSplit(3, 2), None, GroupSplit(2, 2), None))
    assert reader_of_all.owners == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (3, 0)]
    for due, questions in ((range(7), [0, 1, 2, 3]), ([6, 4], [2, 3]), ([0], [0]), ([3], [1]), ([], [])):
        asked: list[int] = []
        got = {strand: block.ids.tolist() for strand, block in reader_of_all.blocks_of(asked, due)}
        known = {1: [0], 3: [1], 5: [2], 6: [3]}
        assert sorted(asked) == questions
        assert got == {strand: known.get(strand, []) for strand in due}
