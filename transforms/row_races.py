"""Hashes of the rows of a unit, by whose order some of them are chosen at random."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.sampling import U64, scramble
from transforms.keyed_blocks import keyed_blocks
from transforms.sorted_words import sorted_within, sorted_words
from transforms.unit_groups import places

_ROW = 0x6B657074
"""Tweak of the hash that chooses rows. No sampling of records uses it."""

_COPIES = 1 << 14
"""Copies of one row that are hashed at a time."""

_MANY_COPIES = 1 << 18
"""Copies of all rows that are hashed at a time."""

_FEW = 16
"""Number of repeated hashes from which on all hashes are sorted."""


def race_of(words: Sequence[U64], of_unit: NDArray[np.int64], salt: bytes) -> U64:
    """Return a hash of each row, shape (n,), by whose order rows of a unit are chosen.

    The hashes of a unit's rows follow from the unit and the multiset of its points. Copies of a point have
    different hashes. Equal hashes of different points are ordered by the points.

    Args:
        words: shape (n,) each: the identity of the row's unit, and the words of its point.
        of_unit: shape (n,), index of the unit of each row.
        salt: 16 secret bytes.
    """
    race = first_hashes(words, salt)
    copies = repeated(race)
    if len(copies):
        some = [word[copies] for word in words]
        race[copies] = _race_of_copies(race[copies], some, of_unit[copies], salt)
    return race


def first_hashes(words: Sequence[U64], salt: bytes) -> U64:
    """Return the hash of each row and of its copies before they have others, shape (n,); see `race_of`."""
    messages = np.empty((len(words[0]), len(words) + len(words) % 2), dtype=np.uint64)
    for place, word in enumerate(words):
        messages[:, place] = word
    messages[:, len(words) :] = 0
    return keyed_blocks(messages, salt, _ROW)[:, 0].copy()


def repeated(hashes: U64) -> NDArray[np.intp]:
    """Return the indices of those hashes that occur several times.

    Upper bits of a hash are its place in a table, which holds the last hash of each place. A hash that occurs
    twice is the one that its place holds, or is among the others of its place, which are few and are sorted.

    Args:
        hashes: shape (n,), fewer than 2^31; fast if their upper bits are spread.
    """
    bits = len(hashes).bit_length() + 2
    place = (hashes >> np.uint64(64 - bits)).view(np.int64)
    every = np.arange(len(hashes), dtype=np.uint16 if len(hashes) <= 1 << 16 else np.int32)
    last = np.empty(1 << bits, dtype=every.dtype)
    last[place] = every
    held = np.take(last, place, mode="clip")
    others = np.flatnonzero(held != every)
    found = hashes[others]
    ordered = np.sort(found)
    twice = [found[found == hashes[held[others]]], ordered[1:][ordered[1:] == ordered[:-1]]]
    number = sum(map(len, twice))
    if not number:
        return np.empty(0, dtype=np.intp)
    some = (
        np.arange(len(hashes)) if number >= _FEW else np.flatnonzero(np.isin(hashes, np.concatenate(twice)))
    )
    order, sorted_ = sorted_words(hashes[some])
    same = sorted_[1:] == sorted_[:-1]
    return some[order[np.append(same, False) | np.append(False, same)]]


def _race_of_copies(race: U64, words: Sequence[U64], of_unit: NDArray[np.int64], salt: bytes) -> U64:
    """Give another hash to each further copy of a row, so that a row that occurs twice has two chances.

    Different rows of a unit may have one hash, if someone who knows the salt chose them. They are then
    numbered in the order of their points, so that the result does not depend on their places.

    Args:
        race: shape (n,), hash of the unit and the point of each row.
        words: the points, each of shape (n,).
        of_unit: shape (n,), index of the unit of each row.
        salt: 16 secret bytes.
    """
    order, ordered = sorted_words(race)
    same = ordered[1:] == ordered[:-1]
    if any((same & (part[order[1:]] != part[order[:-1]])).any() for part in (of_unit, *words)):
        order = np.lexsort((*words, of_unit, race))
        same = (race[order[1:]] == race[order[:-1]]) & (of_unit[order[1:]] == of_unit[order[:-1]])
    place = np.arange(len(race))
    further = np.append(False, same)
    copy = (place - np.maximum.accumulate(np.where(further, 0, place)))[further]
    raced = race.copy()
    raced[order[further]] = scramble(race[order[further]] + copy.astype(np.uint64), salt, _ROW)
    return raced


def races_of_copies(
    words: Sequence[U64], of_unit: NDArray[np.int64], copies: NDArray[np.int64], most: int, salt: bytes
) -> tuple[NDArray[np.int64], U64]:
    """Return the least hashes of the copies of each row: what `race_of` returns if each copy is a row.

    Args:
        words: shape (n,) each, see `race_of`; rows of a unit are all different.
        of_unit: shape (n,), index of the unit of each row.
        copies: shape (n,), how often each row occurs.
        most: hashes that are returned of each row, or as many as it has copies.
        salt: 16 secret bytes.

    Returns:
        Indices of rows, and a hash for each.
    """
    race = first_hashes(words, salt)
    order = np.lexsort((*words, of_unit, race))
    ordered, owner = race[order], of_unit[order]
    same = np.append(False, (ordered[1:] == ordered[:-1]) & (owner[1:] == owner[:-1]))
    before = np.cumsum(copies[order]) - copies[order]
    begins = np.empty(len(race), dtype=np.int64)
    begins[order] = before - np.maximum.accumulate(np.where(same, 0, before))
    spans = -(-copies // _COPIES)
    index = np.repeat(np.arange(len(race)), spans)
    done = _COPIES * (np.arange(len(index)) - np.repeat(np.cumsum(spans) - spans, spans))
    begin, size = begins[index] + done, np.minimum(copies[index] - done, _COPIES)
    batch = np.cumsum(size) // _MANY_COPIES
    found = []
    for part in np.split(np.arange(len(index)), np.flatnonzero(np.diff(batch)) + 1):
        rows = np.repeat(index[part], size[part])
        before = np.cumsum(size[part]) - size[part]
        number = np.arange(len(rows)) + np.repeat(begin[part] - before, size[part])
        raced, further = race[rows], number > 0
        raced[further] = scramble(raced[further] + number[further].astype(np.uint64), salt, _ROW)
        found.append(_least(rows, raced, most))
        if sum(len(some) for some, _ in found) > 4 * _MANY_COPIES:
            found = [_least(*_together(found), most)]
    return _least(*_together(found), most)


def _together(found: Sequence[tuple[NDArray[np.int64], U64]]) -> tuple[NDArray[np.int64], U64]:
    rows, race = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(race)


def _least(rows: NDArray[np.int64], race: U64, most: int) -> tuple[NDArray[np.int64], U64]:
    """Return at most so many of the least hashes of each row, with the indices of their rows."""
    order = sorted_within(rows, race, ())
    rows, race = rows[order], race[order]
    kept = places(rows) < most
    return rows[kept], race[kept]
