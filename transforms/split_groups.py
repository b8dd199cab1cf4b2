"""Split blocks of records by their groups, of which each is a strand of rounds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.rounds import Block
from core.sampling import siphash
from transforms.heap import BLOCK_VALUES
from transforms.records import OneQuestion, Records, RecordsOfQuestions

_MOST_HELD = 1 << 22
"""Coordinates that wait to be split together at most, so that many groups do not make many small blocks."""

_GROUP, _GROUP_PLACE = 0x616C6F6E65, 40
"""Tweak of the hash that makes identities of a unit's records: the number of the group stands above its 40
bits. No other choice uses it."""


@dataclass(frozen=True)
class GroupSplit:
    """How the records of a question are split into those of its groups.

    Args:
        groups: number of groups. The number of a group is its place among the public keys.
        dimension: number of columns.
        salt: where a unit may have records in several groups, 16 secret bytes that give each of them an
            identity of its own. Groups then sample their records independently, although all of them use one
            key. Otherwise a unit would be in the samples of all of its groups or of none, and what samples
            save in one group would depend on another one. None where identities are those of rows: of two
            neighbors each has a row in one group.
    """

    groups: int
    dimension: int
    salt: bytes | None = field(default=None, repr=False)

    def is_full(self, blocks: Sequence[Block]) -> bool:
        """Return whether no further block is to be split together with these."""
        return sum(each.points.size for each in blocks) >= min(_MOST_HELD, BLOCK_VALUES * self.groups)

    def nothing(self) -> Block:
        """Return a block without records."""
        return Block(np.empty((0, self.dimension), np.int64), np.empty(0, np.uint64))

    def split(self, blocks: Sequence[Block]) -> Iterator[tuple[int, Block]]:
        """Yield the records of each group that has some, in blocks that fit the cache."""
        groups = np.concatenate([_groups(block) for block in blocks])
        order = np.argsort(groups.astype(np.uint16), kind="stable")  # numpy uses radix sort for 16 bits
        ids = np.concatenate([block.ids for block in blocks])[order]
        axes = [
            np.concatenate([block.points[:, axis] for block in blocks])[order]
            for axis in range(self.dimension)
        ]
        outside = _added([block.outside for block in blocks if block.outside is not None])
        ends = np.cumsum(np.bincount(groups, minlength=self.groups)).tolist()
        size = max(1, BLOCK_VALUES // self.dimension)
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            counts = None if outside is None or not outside[number].any() else outside[number]
            if start == end and counts is None:
                continue
            for first in range(start, max(end, start + 1), size):
                last = min(first + size, end)
                points = np.empty((last - first, self.dimension), np.int64, order="F")
                for axis, values in enumerate(axes):
                    points[:, axis] = values[first:last]
                own = _identities(ids[first:last], number, self.salt)
                yield number, Block(points, own, counts if first == start else None)


@dataclass(frozen=True)
class ReaderOfGroups:
    """How elements become the records of strands; see `transforms.records.RecordsOfQuestions`.

    A question has one strand, or one for each of its groups. Strands are numbered in the order of the
    questions, and those of a question in the order of its groups. An element is read once for all of them.
    Every record of a question by group is in the blocks of its own group alone.

    Args:
        records: how elements become the records of the questions, with the public groups that they are in.
        splits: of each question; None where it is one strand.
    """

    records: RecordsOfQuestions
    splits: tuple[GroupSplit | None, ...]

    @classmethod
    def one(cls, reader: Records, split: GroupSplit) -> "ReaderOfGroups":
        """Return the reader of one question, which has groups."""
        return cls(OneQuestion(reader), (split,))

    @property
    def owners(self) -> list[tuple[int, int]]:
        """The question of each strand, and the number of its group there, 0 without groups."""
        groups = [1 if split is None else split.groups for split in self.splits]
        return [(question, group) for question, count in enumerate(groups) for group in range(count)]

    def blocks_of(self, element: object, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """See `RecordsOfQuestions.blocks_of`. A group without records has an empty block."""
        wanted = set(due)
        strands = {owner: strand for strand, owner in enumerate(self.owners) if strand in wanted}
        asked = list(dict.fromkeys(question for question, _ in strands))
        held: dict[int, list[Block]] = {}
        empty: dict[int, Block] = {}
        for question, block in self.records.blocks_of(element, asked):
            split = self.splits[question]
            if split is None:
                yield strands[question, 0], block
                continue
            if question not in held:
                own = [strand for (of, _), strand in strands.items() if of == question]
                empty |= dict.fromkeys(own, split.nothing())
            held.setdefault(question, []).append(block)
            if split.is_full(held[question]):
                yield from _filled(split.split(held[question]), question, strands, empty)
                held[question] = []
        for question, blocks in held.items():
            split = self.splits[question]
            if split is not None and blocks:
                yield from _filled(split.split(blocks), question, strands, empty)
        yield from empty.items()


def _filled(
    blocks: Iterable[tuple[int, Block]],
    question: int,
    strands: Mapping[tuple[int, int], int],
    empty: dict[int, Block],
) -> Iterator[tuple[int, Block]]:
    """Yield the blocks of groups by the numbers of their strands, which then are empty no more."""
    for group, block in blocks:
        strand = strands.get((question, group))
        if strand is not None:
            empty.pop(strand, None)
            yield strand, block


def _identities(ids: NDArray[np.uint64], group: int, salt: bytes | None) -> NDArray[np.uint64]:
    """Return the identities of records in a group; see `GroupSplit`.

    Samples choose by these identities, so a pseudorandom function makes them, another one for each group.
    """
    return ids if salt is None else siphash(ids, salt, group << _GROUP_PLACE | _GROUP)


def _groups(block: Block) -> NDArray[np.int64]:
    if block.groups is None:
        raise ValueError("The records have no groups.")
    return block.groups


def _added(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Return the sum of counts of `Block.outside` by group, shape (groups, 2 d); None without any."""
    return np.sum(counts, axis=0) if counts else None
