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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.domain import Grid
from core.rounds import Block, Round, number_of_passes
from transforms.list_files import Held
from transforms.read_blocks import Descriptor
from transforms.records import RecordsOfQuestions
from transforms.spill import Place, Spill

_MOST, _PART = 3 << 30, 4
"""Bytes that are kept at most: so many, and one of so many parts of what is free."""

_IN_MEMORY = {"tmpfs", "ramfs", "rootfs"}
"""File systems that take memory."""


@dataclass(frozen=True)
class ReadOnce:
    """The records of the row groups of files, of which some are kept in the first pass over them.

    What is kept of a row group is found again by the row group and the question. Other questions may have
    been due when it was read, and passes of other questions may read it at any time.

    Args:
        records: how descriptors become the records of questions.
        kinds: of the questions that take several passes, whose blocks are kept: the type that holds every
            coordinate of the grid. So how large the file is does not depend on coordinates.
        spill: of the pipeline.
    """

    records: RecordsOfQuestions
    kinds: Mapping[int, np.dtype[Any]]
    spill: Spill

    def blocks(self, element: Descriptor) -> Iterator[Block]:
        """See `transforms.records.Records.blocks`, where there is one question."""
        return (block for _, block in self.blocks_of(element, (0,)))

    def blocks_of(self, element: Descriptor, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """See `transforms.records.RecordsOfQuestions.blocks_of`."""
        if isinstance(element.file, Held):
            return self.records.blocks_of(element, due)
        index = self.spill.index
        kept = {number: index.get((element, number)) for number in due if number in self.kinds}
        if len(kept) == len(due) and all(places is not None for places in kept.values()):
            return self._again({number: places or () for number, places in kept.items()})
        wanted = {number for number, places in kept.items() if places is None}
        if not wanted or not self.spill.writes:
            return self.records.blocks_of(element, due)
        return self._first(element, due, wanted)

    def _first(
        self, element: Descriptor, due: Sequence[int], wanted: set[int]
    ) -> Iterator[tuple[int, Block]]:
        """Yield what storage has, and keep the blocks of some questions, unless one of them finds no room."""
        places: dict[int, list[Place]] = {number: [] for number in wanted}
        last: tuple[Block, Place | None] | None = None
        for number, block in self.records.blocks_of(element, due):
            if number in places:
                if last is None or block is not last[0]:  # questions on the same columns share their blocks
                    last = block, self._put(block, self.kinds[number])
                if last[1] is None:
                    del places[number]
                else:
                    places[number].append(last[1])
            yield number, block
        for number, own in places.items():
            self.spill.index[element, number] = own

    def _put(self, block: Block, kind: np.dtype[Any]) -> Place | None:
        """Write a block; return its place, or None without room, or where its labels are large."""
        if block.labels is not None and block.labels.nbytes > block.points.nbytes:
            return None
        place = self.spill.put(stored(block, kind)) if self.spill.writes else None
        return place if isinstance(place, Place) else None

    def _again(self, kept: Mapping[int, Sequence[Place]]) -> Iterator[tuple[int, Block]]:
        numbers: dict[Place, list[int]] = {}
        for number, places in kept.items():
            for place in places:
                numbers.setdefault(place, []).append(number)
        for place in sorted(numbers, key=lambda place: place.offset):  # each question's in their order
            block = restored(self.spill.get(place))
            yield from ((number, block) for number in numbers[place])


def read_once(
    records: RecordsOfQuestions, rounds: Sequence[Sequence[Round]], grids: Sequence[Grid]
) -> ReadOnce:
    """Return how descriptors become records, given the rounds and the grid of each question."""
    kinds = {
        number: np.min_scalar_type(max(grid.extents))
        for number, (own, grid) in enumerate(zip(rounds, grids, strict=True))
        if number_of_passes(own) > 1
    }
    return ReadOnce(records, kinds, Spill(room))


def room() -> int:
    """Return how many bytes of the disk for temporary files may be taken; none where it is memory."""
    try:
        folder = tempfile.gettempdir()
        device = os.stat(folder).st_dev
        if _IN_MEMORY & _kinds(f"{os.major(device)}:{os.minor(device)}"):
            return 0
        return min(_MOST, shutil.disk_usage(folder).free // _PART)
    except (OSError, ValueError, IndexError):
        return 0


def _kinds(device: str) -> set[str]:
    """Return the types of the file systems of a device; none where the system does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return set()
    mounts = [line.split(" ") for line in lines if line]
    return {mount[mount.index("-") + 1] for mount in mounts if mount[2] == device}


Stored = tuple[Block, int | None]
"""A block with small points, and the first identity where the others follow it."""


def stored(block: Block, kind: np.dtype[Any]) -> Stored:
    """Return a block with coordinates of a type that holds them, and no identities where they follow."""
    follow = bool((np.diff(block.ids) == 1).all())
    ids = np.empty(0, np.uint64) if follow else block.ids
    first = int(block.ids[0]) if len(block.ids) else 0
    return dataclasses.replace(
        block, points=block.points.astype(kind, order="F"), ids=ids
    ), first if follow else None


def restored(kept: Stored) -> Block:
    """Return what `stored` was given."""
    block, first = kept
    points, ids = block.points.astype(np.int64, order="F"), block.ids
    if first is not None:
        ids = np.arange(first, first + len(points), dtype=np.uint64)
    return dataclasses.replace(block, points=points, ids=ids)
