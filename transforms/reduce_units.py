"""Make records of the units of a shard, some units at a time, however many rows one unit has.

What is held is bounded, if the salt is secret. A shard that takes more than `_HELD` bytes is dealt by unit
into files. What one batch of units has above `_WHOLE` rows is divided again, without regard to units. Each
part of it is reduced to a few rows of each unit, and what remains of the parts is reduced again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.sampling import U64
from transforms.spill import Spill, temporary_spill
from transforms.unit_rows import UnitRows, joined, secret_factor, unit_rows

T = TypeVar("T")

Rows = Sequence[U64]
"""Words of rows, shape (n,) each: the one or two words of their unit's key, and words of their own."""

_DEAL, _BATCH = 0x6465616C, 0x6261746368
"""Tweaks of the hashes that choose the units of a file, and later ones, and those of a batch."""

_HELD = 1 << 26
"""Bytes of a shard that are held. Of a larger one, units are dealt into `_DEALT` files."""

_DEALT = 64
"""Into how many parts a shard is dealt."""

_MANY = 1 << 18
"""Rows of a shard from which on it is handled in batches of about half as many or fewer."""

_SMALL = 1 << 13
"""Rows of which smaller pieces are joined before they are divided into batches."""

_WHOLE = 1 << 20
"""Rows of a batch above which rows of a unit may be apart."""

_PART = 1 << 18
"""Rows that are dealt or reduced at a time, and about half of the rows of a part of a batch."""

_MOST_PARTS = 1 << 10
"""Most parts of one batch."""


class Reduction(Protocol):
    """How the rows of units become their records.

    `finished(merged(state(rows, copies)))` makes records of rows that have their copies beside them, and so
    does merging what was merged of their parts, if rows with one `apart` are in one part:

        merged(rows) = merged(merged(some of the rows) + merged(the others)),

    in any order of the rows. So records are a function of the multiset of the rows of their unit, and do not
    follow from how many rows other units have. `whole` returns the same of rows without copies.
    """

    @property
    def words(self) -> int:
        """Number of words of a row beside its key."""

    @property
    def state_words(self) -> int:
        """Number of words of what is merged, beside the key."""

    def whole(self, rows: UnitRows) -> Any:
        """Return the records of units from all of their rows."""

    @property
    def apart(self) -> Callable[[Rows], U64] | None:
        """What returns a hash of each row, which is the same for rows that must be reduced together.

        It is None where all rows may be apart, even copies.
        """

    def state(self, rows: UnitRows, copies: NDArray[np.int64] | None) -> UnitRows:
        """Return rows as they are merged.

        Args:
            rows: all different, where copies are given.
            copies: how often each row occurs, shape (n,); None where all rows may be apart.
        """

    def merged(self, state: UnitRows) -> list[U64]:
        """Return the rows that remain of each unit, as `unit_rows` takes them."""

    def finished(self, merged: Rows) -> Any:
        """Return the records of units from what remains of all their rows."""


def reduce_units(
    pieces: Iterable[Rows], reduction: Reduction, salt: bytes, dealt_before: int = 0
) -> Iterator[Any]:
    """Yield the records of the units of a shard, some units at a time, each unit once.

    Args:
        pieces: words of rows, at least one row each; each is read when it comes.
        reduction: how rows become records.
        salt: 16 secret bytes.
        dealt_before: how often the rows were dealt before.
    """
    source, held, size = iter(pieces), [], 0
    for piece in source:
        held.append(piece)
        size += sum(word.nbytes for word in piece)
        if size > _HELD:
            break
    else:
        yield from _of_held(held, reduction, salt)
        return
    factor = secret_factor(salt, _DEAL + dealt_before)
    every = _deal(chain(_let_go(held), source), lambda rows: rows[0] * factor, _DEALT)
    half = sum(dealt.rows for dealt in every) / 2
    for dealt in _let_go(every):
        if dealt.rows > half and dealt.bytes > _HELD:  # of few units, or they would be in more parts
            yield reduction.finished(_in_parts(dealt, dealt.rows, reduction, salt))
        else:
            yield from reduce_units(dealt, reduction, salt, dealt_before + 1)


def _of_held(pieces: list[Rows], reduction: Reduction, salt: bytes) -> Iterator[Any]:
    for batch in in_batches(pieces, salt):
        rows = sum(len(piece[0]) for piece in batch)
        if rows > _WHOLE:
            yield reduction.finished(_in_parts(batch, rows, reduction, salt))
        else:
            yield reduction.whole(unit_rows(joined(batch), reduction.words, salt))


def in_batches(pieces: list[Rows], salt: bytes) -> Iterator[list[Rows]]:
    """Yield the rows of a shard in batches, of which each has all rows of its units, at least one row.

    So what is made of the rows of units takes the memory of one batch, however many rows a shard has. A piece
    of many rows is let go when it is sorted by batch.

    Args:
        pieces: words of rows; the list is empty afterwards.
        salt: 16 secret bytes.
    """
    total = sum(len(piece[0]) for piece in pieces)
    if total < _MANY:
        if total:
            yield list(_let_go(pieces))
        return
    bits = np.uint64(min(16, (total // _MANY).bit_length() + 1))
    sorted_ = []
    for piece in _larger(_let_go(pieces), _SMALL):
        batch = piece[0] * secret_factor(salt, _BATCH) >> np.uint64(64) - bits
        batch = batch.astype(np.uint8 if bits <= 8 else np.uint16)  # numpy sorts both by radix, bytes faster
        order = np.argsort(batch, kind="stable")
        ends = np.cumsum(np.bincount(batch, minlength=1 << int(bits))).tolist()
        sorted_.append(([np.take(word, order, mode="clip") for word in piece], [0, *ends]))
    for number in range(1 << int(bits)):
        some: list[Rows] = [
            [word[begins[number] : begins[number + 1]] for word in words]
            for words, begins in sorted_
            if begins[number + 1] > begins[number]
        ]
        if some:
            yield some


def _in_parts(pieces: Iterable[Rows], total: int, reduction: Reduction, salt: bytes) -> list[U64]:
    """Return what remains of the rows of units that are too many to be held."""
    kept: list[Rows] = []
    most = _PART
    for rows, copies in _parts(pieces, total, reduction):
        kept.append(reduction.merged(reduction.state(unit_rows(rows, reduction.words, salt), copies)))
        if sum(len(part[0]) for part in kept) > most:
            kept = [_merged(kept, reduction, salt)]
            most = max(_PART, 2 * len(kept[0][0]))
    return _merged(kept, reduction, salt)


def _merged(kept: Sequence[Rows], reduction: Reduction, salt: bytes) -> list[U64]:
    return reduction.merged(unit_rows(joined(kept), reduction.state_words, salt))


def _parts(
    pieces: Iterable[Rows], total: int, reduction: Reduction
) -> Iterator[tuple[Rows, NDArray[np.int64] | None]]:
    """Yield rows that may be reduced apart, with their copies where those must be together."""
    if reduction.apart is None:
        yield from ((rows, None) for rows in _larger(pieces, _PART))
        return
    parts = min(_MOST_PARTS, 1 << (2 * total // _PART).bit_length())
    for part in _let_go(_deal(pieces, reduction.apart, parts)):
        yield _different(part)


def _different(pieces: Iterable[Rows]) -> tuple[list[U64], NDArray[np.int64]]:
    """Return rows that are all different, in an order of their own, and how often each occurs."""
    rows: list[U64] = []
    copies = np.empty(0, dtype=np.int64)
    for piece in _larger(pieces, _PART):
        counts = np.append(copies, np.ones(len(piece[0]), dtype=np.int64))
        words = joined([rows, piece]) if rows else piece
        order = np.lexsort(words)
        rows = [np.take(word, order) for word in words]
        new = np.append(True, np.any([word[1:] != word[:-1] for word in rows], axis=0))
        rows, copies = [word[new] for word in rows], np.add.reduceat(counts[order], np.flatnonzero(new))
    return rows, copies


@dataclass
class _Dealt:
    """Rows that wait in a file.

    Args:
        spill: the file.
        kept: what it returned for each piece.
        rows: number of rows.
        bytes: what they take.
    """

    spill: Spill
    kept: list[Any]
    rows: int = 0
    bytes: int = 0

    def __iter__(self) -> Iterator[list[U64]]:
        return map(self.spill.get, self.kept)

    def add(self, words: list[U64]) -> None:
        self.kept.append(self.spill.put(words))
        self.rows += len(words[0])
        self.bytes += sum(word.nbytes for word in words)


def _deal(pieces: Iterable[Rows], hashed: Callable[[Rows], U64], parts: int) -> list[_Dealt]:
    """Deal rows into parts by the upper bits of a hash; return the parts that have rows.

    Args:
        pieces: words of rows.
        hashed: returns a hash of each row, shape (n,).
        parts: a power of 2, at least 2 and at most 2^16.
    """
    spill = temporary_spill()
    dealt = [_Dealt(spill, []) for _ in range(parts)]
    bits = np.uint64(parts.bit_length() - 1)
    for piece in _larger(pieces, _PART):
        part = (hashed(piece) >> np.uint64(64) - bits).astype(np.uint16)
        order = np.argsort(part, kind="stable")
        words = [np.take(word, order) for word in piece]
        ends = np.cumsum(np.bincount(part, minlength=parts)).tolist()
        for start, end, own in zip([0, *ends[:-1]], ends, dealt, strict=True):
            if end > start:
                own.add([word[start:end] for word in words])
    return [own for own in dealt if own.rows]


def _larger(pieces: Iterable[Rows], most: int) -> Iterator[Rows]:
    """Yield pieces in their order, with those joined that have fewer rows."""
    small: list[Rows] = []
    rows = 0
    for piece in pieces:
        small.append(piece)
        rows += len(piece[0])
        if rows >= most:
            yield joined(small)
            small, rows = [], 0
    if small:
        yield joined(small)


def _let_go(held: list[T]) -> Iterator[T]:
    """Yield things from the last one on, of which none is held any more."""
    while held:
        yield held.pop()
