"""Later passes get the blocks of the first one bit for bit, and do not read; others read every time."""

import math
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain import Grid
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
    kind = np.min_scalar_type(most)
    if groups:
        made = replace(made, groups=np.arange(n) % 2, labels=np.array([b"a", b"bc"]))
    assert_same([(0, restored(pickle.loads(pickle.dumps(stored(made, kind)))))], [(0, made)])


def once_of(records: Counted, several: set[int], most: float = math.inf) -> ReadOnce:
    kinds = dict.fromkeys(several, np.dtype(np.uint64))
    return ReadOnce(records, kinds, Spill(lambda: int(min(most, 1 << 40))))


def assert_reads(once: ReadOnce, due: tuple[int, ...]) -> None:
    """Assert that a pass gets all blocks of the questions that are due, each question's in their order."""
    found = list(once.blocks_of(ELEMENT, due))
    for number in due:
        own = [pair for pair in once.records.pairs if pair[0] == number]  # type: ignore[attr-defined]
        assert_same([pair for pair in found if pair[0] == number], own)
    assert {number for number, _ in found} == set(due)


def test_later_passes_do_not_read_again() -> None:
    records = Counted([block(10), block(20, 2**40)], [block(5)])
    once = once_of(records, {0, 1, 2})
    for due in ((0, 1, 2), (0, 1, 2), (1,), (2, 0)):
        assert_reads(once, due)
    assert records.read == 1
    assert list(once.blocks_of(replace(ELEMENT, row_group=4), (2,)))
    assert records.read == 2, "another row group is read"


@given(
    st.sets(st.integers(0, 2)),
    st.lists(st.lists(st.integers(0, 2), min_size=1, unique=True).map(tuple), min_size=1, max_size=6),
    st.sampled_from([0, 1, 300, 600, 900, 1 << 30]),
)
def test_whatever_was_asked_before_a_pass_gets_all_that_is_due(
    several: set[int], passes: list[tuple[int, ...]], most: int
) -> None:
    """Questions with steps of their own read in passes of which the others know nothing; bundles repeat."""
    once = once_of(Counted([block(10), block(20, 2**40)], [block(5), block(0)]), several, most)
    for due in passes:
        assert_reads(once, due)


def test_questions_of_one_pass_are_not_kept() -> None:
    records = Counted([block(10)], [block(5)])
    once = once_of(records, {2})
    for due in ((0, 1, 2), (0, 1), (0, 1, 2), (2,)):
        assert_reads(once, due)
    assert records.read == 3 and list(once.spill.index) == [(ELEMENT, 2)]


def test_questions_that_share_a_block_share_what_is_kept() -> None:
    once = once_of(Counted([block(10)]), {0, 1})
    list(once.blocks_of(ELEMENT, (0, 1)))
    one, other = once.spill.index[ELEMENT, 0], once.spill.index[ELEMENT, 1]
    assert one == other and sum(one[0].sizes) == once.spill._end


@pytest.mark.parametrize("most", [0, 1])
def test_without_room_every_pass_reads(most: int) -> None:
    """The first piece is written where there is any room."""
    records = Counted([block(10), block(20)])
    once = once_of(records, {0}, most)
    for _ in range(3):
        assert_reads(once, (0,))
    assert records.read == 3 and not once.spill.index


def test_blocks_that_find_no_room_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Block] = []
    real = module.stored
    monkeypatch.setattr(module, "stored", lambda block, kind: made.append(block) or real(block, kind))
    records = Counted([block(10 + number) for number in range(9)])
    once = once_of(records, {0, 1}, most=300)
    assert_reads(once, (0, 1))
    assert len(made) == 1, "the first one takes all room, and no other is tried"
    assert not once.spill.index and not once.spill.writes


def test_a_row_group_that_was_not_read_to_its_end_is_not_kept() -> None:
    once = once_of(Counted([block(10), block(20)]), {0})
    next(iter(once.blocks_of(ELEMENT, (0,))))
    assert not once.spill.index


def test_batches_in_memory_are_not_kept() -> None:
    records = Counted([block(10)])
    once = once_of(records, {0})
    held = Descriptor(Held("batches.arrow", "the batches", content=b"rows"), 0, 0)
    for _ in range(2):
        assert list(once.blocks_of(held, (0,)))
    assert records.read == 2 and not once.spill.index


def test_labels_that_take_more_than_the_rows_are_not_kept() -> None:
    labels = np.array([b"%d" % number for number in range(1000)])
    made = replace(block(10), groups=np.arange(10), labels=labels)
    once = once_of(Counted([made]), {0})
    for _ in range(2):
        assert_reads(once, (0,))
    assert not once.spill.index


def test_a_worker_in_another_process_reads_every_time() -> None:
    once = ReadOnce(OneQuestion(_Reader()), {0: np.dtype(np.uint16)}, Spill())
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


def test_questions_of_several_passes_are_kept() -> None:
    one: Any = _Round()
    look: Any = _Round()
    look.looks = 1
    grids = [Grid((0.0, 0.0), (1.0, top), 1.0) for top in (1.0, 255.0, 256.0, 1.0)]
    once = read_once(OneQuestion(_Reader()), [[one], [one, one], [look], []], grids)
    assert once.kinds == {1: np.uint8, 2: np.uint16}, "by the grid, which is public, not by the points"


MOUNTS = {
    "disk": (["21 1 8:1 / / rw - ext4 /dev/root rw"], True),
    "memory": (["21 1 8:1 / / rw - ext4 /dev/root rw", "30 21 0:31 / /tmp rw master:2 - tmpfs  rw"], False),
    "nothing known": ([], True),
    "damaged": (["30 21 0:31 / /tmp rw"], False),
    "odd": (
        ["21 1 8:1 / /a\x85b\u2028c rw - ext4 /dev/root rw", "30 21 0:31 / /tmp rw - ext4 x rw", ""],
        True,
    ),
    "short": (["30", "30 21 0:31 / /tmp rw - ext4 x rw"], False),
}


@pytest.mark.parametrize("case", MOUNTS)
def test_the_room_is_a_part_of_a_disk_and_never_memory(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    lines, disk = MOUNTS[case]
    device = os.makedev(0, 31) if case != "disk" else os.makedev(8, 1)
    real = os.stat(tempfile.gettempdir())
    monkeypatch.setattr(os, "stat", lambda *_, **__: os.stat_result((*real[:2], device, *real[3:])))
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "\n".join(lines))
    assert (room() > 0) == disk


def test_the_room_has_a_limit_and_is_none_where_the_system_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 0 < room() <= 3 << 30
    monkeypatch.setattr(module, "_MOST", 1 << 60)
    assert 0 < room() < shutil.disk_usage(tempfile.gettempdir()).free

    def fails(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(shutil, "disk_usage", fails)
    assert room() == 0


def test_memory_of_this_machine_is_none() -> None:
    if not Path("/dev/shm").exists():
        pytest.skip("no file system in memory on this machine")
    before, tempfile.tempdir = tempfile.tempdir, "/dev/shm"
    try:
        assert room() == 0
    finally:
        tempfile.tempdir = before
