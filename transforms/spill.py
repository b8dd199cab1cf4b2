"""Keep pieces of rows in a file while they wait to be gathered, instead of in the memory of a runner.

The file is on the disk of the folder for temporary files. It has no name, so it is in no folder, and the
system frees it when the process ends in any way.
"""

import math
import os
import pickle
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np


def keep_to_folder() -> None:
    """Let temporary files be in TMPDIR or nowhere: where its disk is full, Python would take /tmp.

    Rows may have to stay off other disks. So pieces that TMPDIR does not take stay in memory.
    """
    folder = os.environ.get("TMPDIR")
    if folder and os.path.isdir(folder):
        tempfile.tempdir = os.path.abspath(folder)


keep_to_folder()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a spilled piece is. It passes through the runner in place of the piece.

    Args:
        offset: of its first byte in the file.
        sizes: bytes of its pickle, and then of each array, which is written by itself and never copied.
    """

    offset: int
    sizes: tuple[int, ...]


class Spill:
    """The file of one pipeline, or of one step. Only the process that makes it has it.

    A step that runs in another process, perhaps on another machine, gets a spill without a file when Beam
    unpickles it. Such a spill leaves pieces as they are, and the runner shuffles them. A spill does the same
    when the disk is full. The file grows until the pipeline is gone, or has ended as it should: a repeated
    step needs its pieces again.

    Args:
        room: returns the bytes from which on pieces are left as they are, when the first one is put; None for
            no limit.
    """

    def __init__(self, room: Callable[[], int] | None = None) -> None:
        self._key = (os.getpid(), uuid.uuid4().hex)  # a forked process must not write to the same offsets
        self._lock, self._end, self._file = threading.Lock(), 0, -1
        self._room, self._most = room, math.inf
        self.index: dict[Hashable, Sequence[Place]] = {}
        """Places that consumers find again, by a name of theirs; empty in other processes."""
        self._sharing, self._shared = threading.Lock(), weakref.WeakValueDictionary[Place, Any]()
        self._held: dict[Place, Any] = {}
        _SPILLS[self._key] = self
        made = _MADE.get()
        if made is not None:
            made.append(self)

    @property
    def writes(self) -> bool:
        """Whether this process has the file, and it has room."""
        own = _SPILLS.get(self._key) is self and self._key[0] == os.getpid()
        return own and self._end < self._most

    def put(self, piece: Any) -> Any:
        """Write a piece, and return its place; return the piece itself where there is no file."""
        if not self.writes:
            return piece
        arrays: list[pickle.PickleBuffer] = []
        head = pickle.dumps(piece, pickle.HIGHEST_PROTOCOL, buffer_callback=arrays.append)
        parts = [memoryview(head), *(array.raw() for array in arrays)]
        sizes = tuple(map(len, parts))
        try:
            with self._lock:
                if self._file < 0 and self._most:
                    self._open()
                if self._end >= self._most:
                    return piece
                offset, self._end = self._end, self._end + sum(sizes)
            end = offset
            for part in parts:
                written = 0
                while written < len(part):
                    written += os.pwrite(self._file, part[written:], end + written)
                end += written
        except OSError:
            if self._room is None:
                _FULL.add(tempfile.gettempdir())
            else:
                self._most = 0
            return piece
        return Place(offset, sizes)

    def another(self) -> "Spill":
        """Return an empty spill of this process; see `temporary_spill`."""
        return temporary_spill()

    def empty(self) -> None:
        """Free what the file takes on the disk. Nothing is written any more."""
        with self._lock:
            self._most = 0
            self.index.clear()
            self._held.clear()
            if self._file >= 0 and self._key[0] == os.getpid():
                with suppress(OSError):  # what was released stays so
                    os.ftruncate(self._file, 0)

    def get(self, kept: Any) -> Any:
        """Return the piece for what `put` returned.

        Raises:
            OSError: the file cannot be read.
        """
        if not isinstance(kept, Place):
            return kept
        parts, begin = [np.empty(size, dtype=np.uint8).data for size in kept.sizes], kept.offset
        for data in parts:
            read = 0
            while read < len(data):
                part = os.preadv(self._file, [data[read:]], begin + read)
                if not part:
                    raise OSError("a spilled piece is incomplete")
                read += part
            begin += read
        return pickle.loads(parts[0], buffers=parts[1:])

    def share(self, kept: Any, hold: bool = False) -> Any:
        """Return the piece as `get` does, but the same object to all threads that hold it at one time.

        Args:
            kept: what `put` returned.
            hold: whether it stays in memory until `drop`.

        Raises:
            OSError: the file cannot be read.
        """
        if not isinstance(kept, Place):
            return kept
        with self._sharing:
            piece = self._shared.get(kept)
            if piece is None:
                piece = self._shared[kept] = self.get(kept)
            if hold:
                self._held[kept] = piece
            return piece

    def drop(self, kept: Any) -> None:
        """Hold a piece no longer."""
        if isinstance(kept, Place):
            with self._sharing:
                self._held.pop(kept, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self._key,)

    def _open(self) -> None:
        with tempfile.TemporaryFile() as unnamed:
            self._file = os.dup(unnamed.fileno())
        weakref.finalize(self, os.close, self._file)
        if self._room is not None:
            self._most = self._room()


@dataclass(frozen=True)
class Spilled:
    """A piece that may wait in a file, for consumers that do not have the spill.

    Args:
        spill: of the pipeline.
        kept: what its `put` returned.
    """

    spill: Spill
    kept: Any


def fetched(piece: Any) -> Any:
    """Return a piece as it is, or what is spilled.

    Raises:
        OSError: the file cannot be read.
    """
    return piece.spill.get(piece.kept) if isinstance(piece, Spilled) else piece


_MADE: ContextVar[list[Spill] | None] = ContextVar("_MADE", default=None)
"""What `made_spills` yields."""


@contextmanager
def made_spills() -> Iterator[list[Spill]]:
    """Yield a list of all spills that this thread makes inside.

    A pipeline that has ended is gone only when Python collects its cycles. Whoever ran it empties its spills,
    if it ended as it should: otherwise threads may still read them. Those of single steps are not listed.
    """
    made: list[Spill] = []
    before = _MADE.set(made)
    try:
        yield made
    finally:
        _MADE.reset(before)


def temporary_spill() -> Spill:
    """Return a spill of this process, for one step: its file is gone with it."""
    with made_spills():
        return Spill()


_FULL: set[str] = set()
"""What `full_folders` returns."""


def full_folders() -> set[str]:
    """Return folders for temporary files to which pieces could not be written, so that memory holds them."""
    return set(_FULL)


_SPILLS: weakref.WeakValueDictionary[tuple[int, str], Spill] = weakref.WeakValueDictionary()


def _find(key: tuple[int, str]) -> Spill:
    """Return the spill that another step of this process pickled, or one without a file."""
    found = _SPILLS.get(key)
    if found is None or key[0] != os.getpid():
        found = Spill.__new__(Spill)
        found.__dict__.update(_key=key, _file=-1, index={}, _sharing=threading.Lock(), _shared={}, _held={})
    return found
