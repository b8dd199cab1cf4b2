"""Read rows from storage once, for all passes of a pipeline, where one process runs its steps.

A pass reads, decodes, quantizes and checks the rows. The next pass needs the same blocks again. So the first
one writes them to a `Spill`, in a few bytes for each coordinate, and later ones read that, in a tenth of the
time. What they get is the same, bit for bit. Where a worker does not have the file of the process that built
the pipeline, where it is full, or where it would be in memory, every pass reads the rows from storage.
"""

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.rounds import Block, Round, looks_of
from transforms.list_files import Held
from transforms.read_blocks import Descriptor
from transforms.records import RecordsOfQuestions
from transforms.spill import Place, Spill

_MOST, _PART = 1 << 30, 4
"""Bytes that are kept at most: so many, and one of so many parts of what is free."""

_IN_MEMORY = ("tmpfs", "ramfs")
"""File systems that take memory."""

Stored = tuple[list[int], Block, int | None]
"""Numbers of questions, their block with small points, and the first identity where others follow it."""


@dataclass(frozen=True)
class ReadOnce:
    """The records of the row groups of files, which are read from storage once.

    Args:
        records: how descriptors become the records of questions. A later pass asks for no question that the
            first one did not ask for.
        spill: of the pipeline.
    """

    records: RecordsOfQuestions
    spill: Spill

    def blocks(self, element: Descriptor) -> Iterator[Block]:
        """See `transforms.records.Records.blocks`, where there is one question."""
        return (block for _, block in self.blocks_of(element, (0,)))

    def blocks_of(self, element: Descriptor, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """See `transforms.records.RecordsOfQuestions.blocks_of`."""
        kept = None if isinstance(element.file, Held) else self.spill.index.get(element)
        if kept is not None:
            yield from self._again(kept, set(due))
        elif self.spill.writes and not isinstance(element.file, Held):
            yield from self._first(element, due)
        else:
            yield from self.records.blocks_of(element, due)

    def _first(self, element: Descriptor, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Yield what storage has, and keep it, unless some of it finds no room."""
        places: list[Any] = []
        numbers: list[int] = []
        last: Block | None = None
        for number, block in self.records.blocks_of(element, due):
            if last is not None and block is not last:  # questions on the same columns share their blocks
                places.append(self.spill.put(stored(numbers, last)))
                numbers = []
            numbers, last = [*numbers, number], block
            yield number, block
        if last is not None:
            places.append(self.spill.put(stored(numbers, last)))
        if all(isinstance(place, Place) for place in places):
            self.spill.index[element] = places

    def _again(self, kept: Sequence[Place], due: set[int]) -> Iterator[tuple[int, Block]]:
        for place in kept:
            numbers, block = restored(self.spill.get(place))
            yield from ((number, block) for number in numbers if number in due)


def read_once(records: RecordsOfQuestions, strands: Iterable[Sequence[Round]]) -> ReadOnce:
    """Return how descriptors become records, which are kept where one of the strands takes several passes."""
    passes = max(sum(1 + looks_of(each) for each in rounds) for rounds in strands)
    return ReadOnce(records, Spill(room() if passes > 1 else 0))


def room() -> int:
    """Return how many bytes of the disk for temporary files may be taken; none where it is memory."""
    folder = os.path.realpath(tempfile.gettempdir())
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:  # not Linux
        mounts = []
    above = [mount for mount in mounts if os.path.commonpath([folder, mount[0]]) == mount[0]]
    if above and max(above, key=lambda mount: len(mount[0]))[1] in _IN_MEMORY:
        return 0
    return min(_MOST, shutil.disk_usage(folder).free // _PART)


def stored(numbers: list[int], block: Block) -> Stored:
    """Return a block of some questions with coordinates of the smallest type, and perhaps no identities."""
    most = int(block.points.max(initial=0))
    kind = np.min_scalar_type(most)
    first = int(block.ids[0]) if len(block.ids) else 0
    follow = bool((np.diff(block.ids) == 1).all())
    ids = np.empty(0, np.uint64) if follow else block.ids
    points = block.points.astype(kind, order="F")
    return numbers, dataclasses.replace(block, points=points, ids=ids), first if follow else None


def restored(kept: Stored) -> tuple[list[int], Block]:
    """Return what `stored` was given."""
    numbers, block, first = kept
    points = block.points.astype(np.int64, order="F")
    ids: NDArray[np.uint64] = block.ids
    if first is not None:
        ids = np.arange(first, first + len(points), dtype=np.uint64)
    return numbers, dataclasses.replace(block, points=points, ids=ids)
