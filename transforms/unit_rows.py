"""Send rows to the shards of their units as words of 64 bits, and number the units there."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.sampling import U64, siphash
from transforms.sorted_words import sorted_words
from transforms.unit_keys import last_words, unit_ids

Labels = NDArray[np.bytes_]

ROWS = 1 << 16
"""Rows that are handled at a time, few enough for the cache of the processor and for 16 bits."""

_SHARD, _NUMBER = 0x756E697473, 0x6E756D626572
"""Tweaks of the hashes that choose shards, and the numbers of units. No sampling of records uses them."""

_HEAD = 16
"""Bytes before the labels of a piece: the number of words of a row, and the bytes of the labels."""


class ShardRows:
    """Rows on their way to the shards of their units.

    A row is the one or two words of its unit's key, and words of its own. The shard of a row is a keyed hash
    of its unit, so all rows of a unit are in the same shard.

    Args:
        shards: number of shards, at most 2^16.
        salt: 16 secret bytes.
    """

    def __init__(self, shards: int, salt: bytes) -> None:
        self._shards, self._factor = shards, secret_factor(salt, _SHARD)
        self._places = np.uint8 if shards <= 1 << 8 else np.uint16  # numpy sorts both by radix, bytes faster
        self._numbers = np.arange(shards, dtype=self._places)
        self._parts: list[list[list[U64]]] = [[] for _ in range(shards)]

    def add(self, keys: pa.Array, words: Sequence[U64]) -> None:
        """Add rows, best not many more than `ROWS`.

        Args:
            keys: shape (n,), of `unit_keys`, without nulls.
            words: shape (n,) each, as many for all rows.
        """
        told = pa.types.is_dictionary(keys.type) and len(keys.dictionary) <= len(keys)
        every = keys.dictionary if told else keys
        ids = unit_ids(every)
        own = [ids] if pa.types.is_integer(every.type) else [ids, last_words(every)]
        shard = ids * self._factor
        shard >>= np.uint64(32)
        shard *= np.uint64(self._shards)
        shard >>= np.uint64(32)
        shard = shard.astype(self._places)
        if told:
            place = keys.indices.to_numpy().astype(np.intp)
            shard = np.take(shard, place, mode="clip")
        order = np.argsort(shard, kind="stable")
        key = np.take(place, order, mode="clip") if told else order
        rows = [np.take(word, key, mode="clip") for word in own]
        rows += [np.take(word, order, mode="clip") for word in words]
        ends = np.searchsorted(np.take(shard, order, mode="clip"), self._numbers, "right").tolist()
        for parts, start, end in zip(self._parts, [0, *ends[:-1]], ends, strict=True):
            if end > start:
                parts.append([word[start:end] for word in rows])

    def pieces(self, labels: Labels | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the piece of every shard, with rows or without: `_HEAD` bytes, labels, and rows word by word.

        Args:
            labels: of which the last word of each row is a place. A piece has all of them, or those of its
                rows where these are fewer, and their places. So it has at most as many labels as rows.
        """
        every = b"" if labels is None else b"\n".join(labels.tolist())
        for number, parts in enumerate(self._parts):
            if not parts:
                yield number, b""
                continue
            words, names = list(zip(*parts, strict=True)), every
            if labels is not None and len(labels) > sum(map(len, words[-1])):
                used, place = np.unique(np.concatenate(words[-1]), return_inverse=True)
                words[-1] = (place.astype("<u8"),)
                names = b"\n".join(labels[used.astype(np.int64)].tolist())
            head = len(words).to_bytes(8, "little"), len(names).to_bytes(8, "little")
            yield number, b"".join((*head, names, *itertools.chain.from_iterable(words)))


@lru_cache(maxsize=8)
def secret_factor(salt: bytes, tweak: int) -> np.uint64:
    """Return a secret odd number. Upper bits of products with it are spread (Dietzfelbinger et al. 1997)."""
    return np.uint64(siphash(np.zeros(1, np.uint64), salt, tweak)[0] | np.uint64(1))


def words_of(piece: bytes) -> list[U64]:
    """Return the words of the rows of a piece with rows, shape (n,) each."""
    width = int.from_bytes(piece[:8], "little")
    return list(np.frombuffer(piece, "<u8", offset=_HEAD + _labeled(piece)).reshape(width, -1))


def joined(pieces: Sequence[Sequence[U64]]) -> list[U64]:
    """Return the words of the rows of at least one piece, one piece after the other."""
    if len(pieces) == 1:
        return list(pieces[0])
    rows = sum(len(piece[0]) for piece in pieces)
    return [np.concatenate(words, out=_empty(rows)) for words in zip(*pieces, strict=True)]


def _empty(rows: int) -> U64:
    """Return words in the memory of Arrow, which does not lie between what stays on the heap."""
    return np.frombuffer(pa.allocate_buffer(8 * rows), dtype="<u8")


class GatheredLabels:
    """The labels of the pieces of a shard, each once."""

    def __init__(self) -> None:
        self._place: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._place)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._place)

    def words_of(self, piece: bytes) -> list[U64]:
        """Add the labels of a piece with rows; return its words, of which the last become places here."""
        names = piece[_HEAD : _HEAD + _labeled(piece)].split(b"\n")
        places = [self._place.setdefault(name, len(self._place)) for name in names]
        *words, label = words_of(piece)
        return [*words, np.array(places, dtype=np.uint64)[label.astype(np.int64)]]


def _labeled(piece: bytes) -> int:
    """Return how many bytes the labels of a piece take."""
    return int.from_bytes(piece[8:_HEAD], "little")


@dataclass(frozen=True)
class UnitRows:
    """The rows of a shard, and the unit of each.

    Args:
        words: shape (n,) each, the words of each row without its key.
        ids: shape (n,), the identity of each row's unit: its key, or the first word of it.
        of_unit: shape (n,), the number of each row's unit. Some numbers are those of no unit. Numbers follow
            from the keys of the units and the number of rows.
        numbers: all numbers are below it. It is at most 5 n + 2.
        more: the second word of keys that have two, shape (n,).
    """

    words: list[U64]
    ids: U64
    of_unit: NDArray[np.int64]
    numbers: int
    more: U64 | None = None

    def take(self, some: NDArray[Any]) -> "UnitRows":
        """Return some of the rows, by their indices."""
        words = [np.take(word, some) for word in self.words]
        more = None if self.more is None else np.take(self.more, some)
        return UnitRows(words, np.take(self.ids, some), np.take(self.of_unit, some), self.numbers, more)

    def with_words(self, words: Sequence[U64]) -> "UnitRows":
        """Return the rows with other words."""
        return dataclasses.replace(self, words=list(words))

    def rows(self, some: NDArray[Any], words: Sequence[U64]) -> list[U64]:
        """Return rows as `unit_rows` takes them: keys of some of the rows, and words of their own."""
        keys = [self.ids] if self.more is None else [self.ids, self.more]
        return [*(np.take(key, some) for key in keys), *words]


def unit_rows(rows: Sequence[U64], words: int, salt: bytes) -> UnitRows:
    """Number the units of rows.

    Args:
        rows: shape (n,) each, at least one row; see `joined_rows`.
        words: number of words of a row beside its key.
        salt: 16 secret bytes.
    """
    ids = rows[0]
    of_unit, numbers = numbers_of(ids * secret_factor(salt, _NUMBER))  # by an odd number, so all differ
    if len(rows) > words + 1:
        held = np.empty(numbers, dtype=np.uint64)
        held[of_unit] = rows[1]
        if (np.take(held, of_unit, mode="clip") != rows[1]).any():  # one identity, but different keys
            keys, inverse = np.unique(np.stack([ids, rows[1]], axis=1), axis=0, return_inverse=True)
            of_unit, numbers = inverse, len(keys)
    more = rows[1] if len(rows) > words + 1 else None
    return UnitRows(list(rows[len(rows) - words :]), ids, of_unit, numbers, more)


def numbers_of(spread: U64) -> tuple[NDArray[np.int64], int]:
    """Return a number for each word, and a bound of the numbers. Equal words alone have equal numbers.

    The upper bits of a word are its place in a table, and the number of the smallest word that has this
    place. Words that find another one at their place, a fifth or less if they are random, are sorted.

    Args:
        spread: shape (n,), at least one word; fast if their upper bits are spread.

    Returns:
        Numbers, shape (n,), which follow from n and the set of the words, and their bound of at most 5 n.
    """
    bits = len(spread).bit_length() + 1
    number = (spread >> np.uint64(64 - bits)).view(np.int64)
    table = np.full(1 << bits, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(table, number, spread)
    others = np.flatnonzero(np.take(table, number, mode="clip") != spread)
    if not len(others):
        return number, len(table)
    order, found = sorted_words(spread[others])
    changes = np.cumsum(np.append(True, found[1:] != found[:-1]))
    number[others[order]] = len(table) - 1 + changes
    return number, len(table) + int(changes[-1])


def one_of_each(some: NDArray[np.int64], rows: UnitRows) -> NDArray[np.int32]:
    """Return the last of `some` rows of each unit that has one, in the order of the units' numbers.

    Args:
        some: shape (m,), indices of rows.
        rows: fewer than 2^31.
    """
    last = np.full(rows.numbers, -1, dtype=np.int32)
    last[np.take(rows.of_unit, some, mode="clip")] = some.astype(np.int32)
    return np.take(last, np.flatnonzero(last >= 0), mode="clip")  # which is faster than by a mask


def renumbered(rows: UnitRows) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Leave out the numbers of no unit; return the index of each row's unit, and a row of each unit."""
    first = one_of_each(np.arange(len(rows.of_unit)), rows)
    index = np.empty(rows.numbers, dtype=np.int64)
    index[rows.of_unit[first]] = np.arange(len(first))
    return index[rows.of_unit], first
