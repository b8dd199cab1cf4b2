"""Pieces wait in an unnamed file of the process that made the spill; every other process keeps them."""

import errno
import gc
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from transforms import gather_parts
from transforms import spill as module
from transforms.embedded_runner import EmbeddedRunner
from transforms.list_files import File
from transforms.plain_errors import RoundError
from transforms.read_blocks import Descriptor
from transforms.spill import Place, Spill, made_spills

PARTS = 5


def test_a_piece_comes_back_and_only_its_place_is_kept() -> None:
    spill = Spill()
    pieces = [b"x" * 100_000, ("file", 7, (1, 2), b""), b""]
    kept = [spill.put(piece) for piece in pieces]
    assert all(isinstance(place, Place) for place in kept)
    assert [spill.get(place) for place in reversed(kept)] == pieces[::-1]


def test_arrays_come_back_as_they_were_and_can_be_written() -> None:
    spill = Spill()
    grid = np.arange(12, dtype=np.uint16).reshape(3, 4)
    arrays = [grid, np.asfortranarray(grid), grid[:, ::2], np.empty((0, 2)), np.array([b"a", b"bc"]), grid.T]
    for found, array in zip(spill.get(spill.put((arrays, "text")))[0], arrays, strict=True):
        assert found.dtype == array.dtype and np.array_equal(found, array)
        assert found.flags.writeable and found.flags.aligned
        assert found.flags.f_contiguous == array.flags.f_contiguous or not array.flags.contiguous


def test_no_piece_overwrites_the_arrays_of_another() -> None:
    spill = Spill()
    pieces = [[np.full(size, number), np.arange(size)] for number, size in enumerate((5, 0, 900, 3, 40))]
    kept = [spill.put(piece) for piece in pieces]
    for place, piece in zip(kept, pieces, strict=True):
        assert all(map(np.array_equal, spill.get(place), piece))


def test_what_the_system_writes_and_reads_in_parts_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may do less than it is asked to, such as where a disk is nearly full."""
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:7], at))
    monkeypatch.setattr(os, "preadv", lambda file, into, at: read(file, [into[0][:5]], at))
    spill, rows = Spill(), np.arange(50)
    first, second = spill.put([b"text", rows]), spill.put(rows[::-1].copy())
    assert np.array_equal(spill.get(first)[1], rows) and np.array_equal(spill.get(second), rows[::-1])
    os.ftruncate(spill._file, 300)
    with pytest.raises(OSError, match="a spilled piece is incomplete"):
        spill.get(first)


def test_a_step_of_this_process_finds_the_same_file() -> None:
    spill = Spill()
    assert pickle.loads(pickle.dumps(spill)) is spill


def test_threads_share_a_piece_while_one_of_them_holds_it() -> None:
    spill = Spill()
    place = spill.put({1, 2})
    with ThreadPoolExecutor(4) as threads:
        held = list(threads.map(spill.share, [place] * 50))
    assert held[0] == {1, 2} and all(piece is held[0] for piece in held)
    assert spill.get(place) is not held[0]
    del held
    gc.collect()
    assert not spill._shared
    assert spill.share("not spilled") == "not spilled"


def test_a_piece_is_held_until_it_is_dropped() -> None:
    spill = Spill()
    place, other = spill.put({1, 2}), spill.put({3})
    one = id(spill.share(place, hold=True))
    spill.share(other, hold=True)
    gc.collect()
    assert id(spill.share(place)) == one
    for kept in (place, place, "not spilled"):
        spill.drop(kept)
    gc.collect()
    assert set(spill._shared) == {other} and spill.share(place) == {1, 2}
    spill.empty()
    gc.collect()
    assert not spill._shared


def test_threads_do_not_overwrite_each_other() -> None:
    spill = Spill()
    pieces = [bytes([i % 251]) * (i % 97) for i in range(2000)]
    with ThreadPoolExecutor(4) as threads:
        kept = list(threads.map(spill.put, pieces))
    assert [spill.get(place) for place in kept] == pieces


def test_the_file_has_no_name_and_belongs_to_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spill = Spill()
    spill.put(b"secret")
    assert list(tmp_path.iterdir()) == []
    found = os.fstat(spill._file)
    assert found.st_nlink == 0 and stat.S_IMODE(found.st_mode) == 0o600
    assert not os.get_inheritable(spill._file)


def test_the_file_is_closed_with_its_spill() -> None:
    spill = Spill()
    spill.put(b"secret")
    file = os.fstat(spill._file)
    place, left = spill._file, pickle.dumps(spill)
    del spill
    gc.collect()
    try:
        assert not os.path.samestat(file, os.fstat(place))
    except OSError as error:
        assert error.errno == errno.EBADF
    assert pickle.loads(left).put(b"rows") == b"rows"


def test_the_spill_of_a_step_is_gone_with_the_step() -> None:
    with made_spills() as made:
        spill = Spill()
        step = spill.another()
        kept = step.put([1, 2])
        assert isinstance(kept, Place) and step.get(kept) == [1, 2]
        assert made == [spill]
        descriptor = step._file
        os.fstat(descriptor)
        del step
        gc.collect()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
        found = pickle.loads(pickle.dumps(spill)).another()
        assert found is not spill and found.writes
        later = Spill()
    Spill()
    assert made == [spill, later]  # so those of steps end the list of nobody


def test_another_process_keeps_its_pieces() -> None:
    spill = Spill()
    spill.put(b"first")
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).put('rows'))"
    sent = pickle.dumps(spill).hex()
    ran = subprocess.run([sys.executable, "-c", code, sent], capture_output=True, text=True, check=True)
    assert ran.stdout == "rows\n"


def test_a_forked_process_does_not_write_to_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both would write to the same offsets."""
    spill = Spill()
    spill.put(b"first")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    for own in (spill, pickle.loads(pickle.dumps(spill))):
        assert own.put(b"rows") == b"rows"


def test_a_forked_process_does_not_empty_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that made it still reads it."""
    spill = Spill()
    place = spill.put(b"rows")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    spill.empty()
    monkeypatch.undo()
    assert spill.get(place) == b"rows"


def test_a_full_disk_leaves_pieces_to_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    spill = Spill()
    before = spill.put(b"before")
    monkeypatch.setattr(module, "_FULL", set())
    monkeypatch.setattr(os, "pwrite", full)
    assert spill.put(b"rows") == b"rows" == spill.get(b"rows")
    assert module.full_folders() == {tempfile.gettempdir()}
    monkeypatch.undo()
    after = spill.put(b"after")
    assert (spill.get(before), spill.get(after)) == (b"before", b"after")


def test_what_a_run_spilled_can_be_freed_at_its_end() -> None:
    outside = Spill()
    outside.put(b"x" * 5000)
    with made_spills() as made:
        inside, limited = Spill(), Spill(lambda: 1 << 30)
        place = inside.put(b"x" * 5000)
        inside.index["name"] = [place]
        assert inside.get(place) and os.fstat(inside._file).st_size > 5000
    assert made == [inside, limited]
    for spill in made:
        spill.empty()
    assert os.fstat(inside._file).st_size == 0 < os.fstat(outside._file).st_size
    assert not inside.index
    for spill in made:
        assert not spill.writes and spill.put(b"late") == b"late"
    assert outside.writes and Spill().writes


@pytest.mark.parametrize("begun", [True, False])
def test_a_piece_that_was_pickled_before_its_spill_was_emptied_is_not_written(begun: bool) -> None:
    class Slow:
        def __reduce__(self) -> tuple[object, ...]:
            spill.empty()
            return str, ()

    spill = Spill(lambda: 1 << 30)
    slow = Slow()
    if begun:
        spill.put(b"rows")
    assert spill.put(slow) is slow
    assert not spill.writes and begun == (spill._file >= 0)
    assert not begun or os.fstat(spill._file).st_size == 0


def test_the_room_is_asked_for_once_the_first_piece_comes() -> None:
    asked: list[int] = []
    spill = Spill(lambda: asked.append(1) or 100)
    assert not asked and spill.writes
    assert isinstance(spill.put(b"x" * 90), Place) and spill.put(b"more") == b"more"
    assert not spill.writes and asked == [1]


def test_a_folder_that_takes_no_file_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(tempfile, "TemporaryFile", fails)
    spill = Spill(lambda: 1 << 30)
    assert spill.put(b"rows") == b"rows" and not spill.writes


def test_a_disk_that_frees_nothing_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was released stays so."""

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    spill = Spill()
    spill.put(b"rows")
    monkeypatch.setattr(os, "ftruncate", fails)
    spill.empty()
    assert not spill.writes


def test_threads_that_want_a_piece_at_once_read_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spill, read = Spill(), list[object]()
    place = spill.put({1, 2})

    again, all_there = threading.Event(), threading.Barrier(4)

    def slowly(kept: object) -> object:
        if read:
            again.set()
        read.append(kept)
        again.wait(0.5)
        return Spill.get(spill, kept)

    def share(kept: object) -> object:
        all_there.wait()
        return spill.share(kept)

    monkeypatch.setattr(spill, "get", slowly)
    with ThreadPoolExecutor(4) as threads:
        held = list(threads.map(share, [place] * 4))
    assert read == [place] and all(piece is held[0] for piece in held)


@pytest.mark.parametrize("given", ["here", "nowhere"])
def test_tmpdir_is_the_folder_that_it_was_when_the_process_began(tmp_path: Path, given: str) -> None:
    """Also where it is relative to another folder; one that is not there is passed over, as Python does."""
    (tmp_path / "here").mkdir()
    script = (
        "import os, tempfile; tempfile._get_default_tempdir = lambda *_: '/elsewhere'; "
        "import transforms.spill; os.chdir('/'); print(tempfile.gettempdir())"
    )
    environment = os.environ | {"TMPDIR": given, "PYTHONPATH": os.getcwd()}
    printed = subprocess.check_output(
        [sys.executable, "-c", script], env=environment, text=True, cwd=tmp_path
    )
    assert printed.strip() == (str(tmp_path / "here") if given == "here" else "/elsewhere")


@pytest.mark.parametrize("given", [True, False])
def test_temporary_files_are_in_tmpdir_also_where_its_disk_is_full(tmp_path: Path, given: bool) -> None:
    """Python tries to write to a folder before it takes it, and would take /tmp without a word."""
    script = (
        "import tempfile; tempfile._get_default_tempdir = lambda *_: '/elsewhere'; import transforms.spill; "
        "print(tempfile.gettempdir())"
    )
    environment = {key: value for key, value in os.environ.items() if key != "TMPDIR"}
    environment |= {"TMPDIR": str(tmp_path)} if given else {}
    printed = subprocess.check_output([sys.executable, "-c", script], env=environment, text=True)
    assert printed.strip() == (str(tmp_path) if given else "/elsewhere")


def test_a_full_disk_ends_a_spill_that_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    spill = Spill(lambda: 1 << 30)
    before = spill.put(b"before")
    monkeypatch.setattr(module, "_FULL", set())
    monkeypatch.setattr(os, "pwrite", full)
    assert spill.put(b"rows") == b"rows" and not spill.writes and spill.get(before) == b"before"
    assert not module.full_folders()  # what it would keep is read again


def test_a_place_without_its_file_is_an_error() -> None:
    stranger = Spill()
    with pytest.raises(OSError, match="Bad file descriptor"):
        stranger.get(Place(0, (6,)))
    stranger.put(b"")
    with pytest.raises(OSError, match="incomplete"):
        stranger.get(Place(1 << 20, (6,)))


def test_pieces_of_a_part_can_be_read_again_until_they_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one: together they may be larger than memory. A step that was done must not run on none."""
    spill, read = Spill(), list[object]()
    pieces = gather_parts.Pieces([spill.put(b"one"), spill.put(b"two")], spill)
    monkeypatch.setattr(spill, "get", lambda kept: read.append(kept) or Spill.get(spill, kept))
    assert next(iter(pieces)) == b"one" and len(read) == 1
    assert list(pieces) == list(pieces) == [b"one", b"two"]
    pieces.clear()
    with pytest.raises(RuntimeError, match="were let go"):
        iter(pieces)


def test_rows_that_cannot_be_gathered_are_not_quoted() -> None:
    """Neither where they are split nor where their pieces come together."""

    def fails(*_: object) -> Iterator[tuple[int, list[object]]]:
        yield 0, [b"rows"]
        raise ValueError("a row of person 4711")

    for step in (
        lambda: list(gather_parts._split(None, fails, 1, "Testing", "test rows", Spill())),
        lambda: gather_parts._list((0, (pieces for _, pieces in fails())), "Testing", Spill()),
    ):
        with pytest.raises(RoundError, match=r"^Testing failed with ValueError at test_spill\.py:") as caught:
            step()
        assert "4711" not in "".join(traceback.format_exception(caught.value))


def _pieces(descriptor: Descriptor) -> list[tuple[int, bytes]]:
    return [(number, f"{descriptor.row_group} {number}".encode()) for number in range(PARTS)]


@pytest.mark.parametrize(
    ("way", "spilled"), [("in_memory", True), ("multi_threading", True), ("multi_processing", False)]
)
def test_rows_do_not_go_through_a_runner_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, spilled: bool
) -> None:
    """Bundles are repeated, and the grouped pieces are the same in every way of running."""
    got: list[object] = []
    real = gather_parts.Spill.get

    def watched(self: Spill, kept: object) -> object:
        got.append(kept)
        return real(self, kept)

    monkeypatch.setattr(gather_parts.Spill, "get", watched)
    descriptors = [Descriptor(File("a", "a", 0), group, 0) for group in range(3)]
    how = {"direct_running_mode": way, "direct_num_workers": 2, "direct_runner_bundle_repeat": 1}

    def append(part: object) -> None:
        with (tmp_path / "parts").open("a") as file:
            file.write(f"{part[0]} {sorted(part[1])}\n")  # type: ignore[index]

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **how)) as pipeline:
        parts = pipeline | beam.Create(descriptors) | gather_parts.GatherParts(_pieces, PARTS, "Testing")
        _ = parts | "Append" >> beam.Map(append)
    expected = {f"{n} {[f'{group} {n}'.encode() for group in range(3)]}" for n in range(PARTS)}
    assert set((tmp_path / "parts").read_text().splitlines()) == expected
    assert all(isinstance(kept, Place) for kept in got) and bool(got) == spilled
