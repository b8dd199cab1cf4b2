"""Later passes get the blocks of the first one bit for bit, and do not read; others read every time."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rounds import Block
from transforms import read_once as module
from transforms.list_files import File, Held
from transforms.read_blocks import Descriptor
from transforms.read_once import ReadOnce, read_once, restored, room, stored
from transforms.records import OneQuestion
from transforms.spill import Spill

ELEMENT = Descriptor(File("/rows.parquet", "rows.parquet", 3), 2, 1000)


class Counted:
    """Records of two questions on the same blocks and one on others, which count how often they are read."""

    def __init__(self, blocks: list[Block], others: list[Block] | None = None) -> None:
        self.pairs = [(number, block) for block in blocks for number in (0, 1)]
        self.pairs += [(2, block) for block in others or []]
        self.read = 0

    def blocks_of(self, element: Any, due: Any) -> Iterator[tuple[int, Block]]:
        self.read += 1
        yield from (pair for pair in self.pairs if pair[0] in due)


def block(n: int, most: int = 1000, first: int = 0) -> Block:
    random = np.random.default_rng(n)
    points = np.asfortranarray(random.integers(0, most, (n, 3), endpoint=True))
    return Block(points, np.arange(first, first + n, dtype=np.uint64), np.arange(6))


def assert_same(found: list[tuple[int, Block]], wanted: list[tuple[int, Block]]) -> None:
    assert [number for number, _ in found] == [number for number, _ in wanted]
    for (_, one), (_, other) in zip(found, wanted, strict=True):
        assert one.points.dtype == np.int64 and one.points.flags.f_contiguous
        assert one.ids.dtype == np.uint64
        for name in ("points", "ids", "outside", "groups", "labels"):
            mine, own = getattr(one, name), getattr(other, name)
            assert (mine is None) == (own is None)
            if mine is not None:
                assert mine.dtype == own.dtype and np.array_equal(mine, own)


@given(
    st.integers(0, 40),
    st.sampled_from([0, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**62]),
    st.sampled_from(["follow", "gap", "backward", "high"]),
    st.booleans(),
)
def test_a_block_comes_back_bit_for_bit(n: int, most: int, ids: str, groups: bool) -> None:
    given_ = {
        "follow": np.arange(7, 7 + n),
        "gap": np.arange(n) + (np.arange(n) > 3),
        "backward": np.arange(n)[::-1],
        "high": np.arange(n).astype(np.uint64) + np.uint64(1 << 63),
    }[ids].astype(np.uint64)
    made = replace(block(n, most), ids=given_)
    if groups:
        made = replace(made, groups=np.arange(n) % 2, labels=np.array([b"a", b"bc"]))
    assert_same([(0, restored(pickle.loads(pickle.dumps(stored([0], made))))[1])], [(0, made)])


def test_later_passes_do_not_read_again() -> None:
    records = Counted([block(10), block(20, 2**40)], [block(5)])
    once = ReadOnce(records, Spill())
    first = list(once.blocks_of(ELEMENT, (0, 1, 2)))
    assert_same(first, records.pairs)
    for due in ((0, 1, 2), (1,), (2, 0)):
        assert_same(list(once.blocks_of(ELEMENT, due)), [pair for pair in records.pairs if pair[0] in due])
    assert records.read == 1
    assert list(once.blocks_of(replace(ELEMENT, row_group=4), (2,)))
    assert records.read == 2, "another row group is read"


def test_questions_that_share_a_block_share_what_is_kept() -> None:
    once = ReadOnce(Counted([block(10)]), Spill())
    list(once.blocks_of(ELEMENT, (0, 1)))
    (place,) = once.spill.index[ELEMENT]
    assert restored(once.spill.get(place))[0] == [0, 1]


@pytest.mark.parametrize("most", [0, 1])
def test_without_room_every_pass_reads(most: int) -> None:
    records = Counted([block(10), block(20)])
    once = ReadOnce(records, Spill(most))
    for _ in range(3):
        assert_same(list(once.blocks_of(ELEMENT, (0,))), [pair for pair in records.pairs if pair[0] == 0])
    assert records.read == 3 and not once.spill.index


def test_a_row_group_that_was_not_read_to_its_end_is_not_kept() -> None:
    once = ReadOnce(Counted([block(10), block(20)]), Spill())
    next(once.blocks_of(ELEMENT, (0,)))
    assert not once.spill.index


def test_batches_in_memory_are_not_kept() -> None:
    records = Counted([block(10)])
    once = ReadOnce(records, Spill())
    held = Descriptor(Held("batches.arrow", "the batches", content=b"rows"), 0, 0)
    for _ in range(2):
        assert list(once.blocks_of(held, (0,)))
    assert records.read == 2 and not once.spill.index


def test_a_worker_in_another_process_reads_every_time() -> None:
    once = ReadOnce(OneQuestion(_Reader()), Spill())
    assert list(once.blocks(ELEMENT))
    script = (
        "import pickle, sys; once, element = pickle.load(sys.stdin.buffer)\n"
        "for _ in range(2): assert len(list(once.blocks(element))) == 1\n"
        "assert not once.spill.writes and not once.spill.index"
    )
    data = pickle.dumps((once, ELEMENT))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], input=data, env=environment, check=True)


class _Reader:
    def blocks(self, element: Any) -> Iterator[Block]:
        yield block(3)


class _Round:
    looks = 0


def test_one_pass_alone_keeps_nothing() -> None:
    one: Any = [_Round()]
    assert not read_once(OneQuestion(_Reader()), [one]).spill.writes
    assert read_once(OneQuestion(_Reader()), [one, [_Round(), _Round()]]).spill.writes


def test_the_room_is_a_part_of_a_disk_and_never_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < room() <= 1 << 30
    monkeypatch.setattr(module, "_MOST", 1 << 60)
    assert 0 < room() < 1 << 60
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    assert room() == 0
