"""Send rows to the shards of their units as words of 64 bits, and put the rows of a unit together there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.sampling import U64, scramble
from transforms.sorted_words import sorted_words
from transforms.unit_keys import last_words, unit_ids

Labels = NDArray[np.bytes_]

ROWS = 1 << 16
"""Rows that are handled at a time, few enough for the cache of the processor and for 16 bits."""

_SHARD = 0x756E697473
"""Tweak of the hash that chooses shards. No sampling of records uses it."""

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
        self._shards, self._salt = shards, salt
        self._parts: list[list[Any]] = [[] for _ in range(shards)]
        self._width = 0

    def add(self, keys: pa.Array, words: Sequence[U64]) -> None:
        """Add rows, best not many more than `ROWS`.

        Args:
            keys: shape (n,), of `unit_keys`, without nulls.
            words: shape (n,) each, as many for all rows.
        """
        ids = unit_ids(keys)
        own = [ids] if pa.types.is_integer(keys.type) else [ids, last_words(keys)]
        self._width = len(own) + len(words)
        rows = np.empty((len(ids), self._width), dtype="<u8")
        for place, word in enumerate((*own, *words)):
            rows[:, place] = word
        shard = scramble(ids, self._salt, _SHARD) >> np.uint64(32)
        shard *= np.uint64(self._shards)
        shard >>= np.uint64(32)
        shard = shard.astype(np.uint16)
        rows = np.take(rows, np.argsort(shard, kind="stable"), axis=0)  # a radix sort, as for all 16 bits
        start = 0
        for parts, size in zip(self._parts, np.bincount(shard, minlength=self._shards).tolist(), strict=True):
            if size:
                parts.append(rows[start : start + size])
            start += size

    def pieces(self, labels: Labels | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the piece of every shard, with rows or without: `_HEAD` bytes, labels, and rows one by one.

        Args:
            labels: of which the last word of each row is a place. A piece has all of them, or those of its
                rows where these are fewer, and their places. So it has at most as many labels as rows.
        """
        every = b"" if labels is None else b"\n".join(labels.tolist())
        for number, parts in enumerate(self._parts):
            names = every
            if labels is not None and len(labels) > sum(map(len, parts)) > 0:
                parts = [np.concatenate(parts)]
                used, place = np.unique(parts[0][:, -1], return_inverse=True)
                parts[0][:, -1], names = place, b"\n".join(labels[used.astype(np.int64)].tolist())
            head = self._width.to_bytes(8, "little"), len(names).to_bytes(8, "little")
            yield number, b"".join((*head, names, *parts)) if parts else b""


@dataclass(frozen=True)
class UnitRows:
    """The rows of a shard, in which those of a unit are together.

    Args:
        words: shape (n, w): the words of each row without its key.
        of_unit: shape (n,), index of the unit of each row, which does not decrease.
        ids: shape (units,), identity of each unit.
        hashes: shape (n,), hash of the unit of each row.
    """

    words: U64
    of_unit: NDArray[np.int64]
    ids: U64
    hashes: U64


def joined_rows(parts: Sequence[bytes]) -> U64 | None:
    """Return all rows of pieces, shape (n, w), one piece after the other; None without rows."""
    filled = [part for part in parts if part]
    if not filled:
        return None
    width = int.from_bytes(filled[0][:8], "little")
    each = [np.frombuffer(part, "<u8", offset=_HEAD + _labeled(part)).reshape(-1, width) for part in filled]
    return np.concatenate(each, out=_empty(sum(map(len, each)), width))


def _empty(rows: int, width: int) -> U64:
    """Return words for rows in the memory of Arrow, which does not lie between what stays on the heap."""
    return np.frombuffer(pa.allocate_buffer(8 * rows * width), dtype="<u8").reshape(rows, width)


def joined_labels(parts: Sequence[bytes], rows: U64) -> pa.Array:
    """Return the labels of pieces, each once, and make the last words of their rows places among them.

    Args:
        parts: pieces of `ShardRows` with labels.
        rows: what `joined_rows` returns for them.
    """
    place: dict[bytes, int] = {}
    places, sizes, before = [], [], [0]
    for part in filter(None, parts):
        names = part[_HEAD : _HEAD + _labeled(part)].split(b"\n")
        places += [place.setdefault(name, len(place)) for name in names]
        before.append(len(places))
        sizes.append((len(part) - _HEAD - _labeled(part)) // (8 * rows.shape[1]))
    moved = rows[:, -1].astype(np.int64) + np.repeat(before[:-1], sizes)
    rows[:, -1] = np.array(places, dtype=np.uint64)[moved]
    return pa.array(list(place), pa.binary())


def _labeled(piece: bytes) -> int:
    """Return how many bytes the labels of a piece take."""
    return int.from_bytes(piece[8:_HEAD], "little")


def unit_rows(rows: U64, hashes: U64, words: int) -> UnitRows:
    """Put the rows of each unit together.

    Units are in the order of their hashes. Units with the same identity are next to
    each other, and are told apart by the rest of their keys.

    Args:
        rows: shape (n, w), at least one row; see `joined_rows`.
        hashes: shape (n,), a hash of the first word of each row, different for different words.
        words: number of words of a row beside its key.
    """
    width = rows.shape[1]
    order, hashes = sorted_words(hashes)
    rows = np.take(rows, order, axis=0, out=_empty(*rows.shape), mode="clip")
    changes = hashes[1:] != hashes[:-1]
    if width > words + 1:
        further = rows[1:, 1] != rows[:-1, 1]
        if (further & ~changes).any():  # units with the same identity may have different keys
            again = np.lexsort((rows[:, 1], hashes))
            rows = np.take(rows, again, axis=0)
            changes |= rows[1:, 1] != rows[:-1, 1]
    first = np.append(True, changes)
    return UnitRows(rows[:, width - words :], np.cumsum(first) - 1, rows[first, 0], hashes)
