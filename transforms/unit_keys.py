"""Replace units by keys of 8 or 16 bytes."""

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import siphash

U64 = NDArray[np.uint64]
Ints = NDArray[np.int64]

_KEYS = 0x756E69746B6579
"""Tweak of the hash of keys. No sampling of records uses it."""

_LONG = 256
"""Texts of at least this many bytes are hashed one by one; shorter ones are hashed together."""

_LOW = np.uint64(0xFFFFFFFF)

_CHUNK = 1 << 13
"""Texts that are hashed at a time, few enough for the cache of the processor."""


def unit_keys(units: pa.Array, salt: bytes) -> pa.Array:
    """Return the key of each unit: the unit itself as int64, or 128 bits of a keyed hash.

    Equal units of the same kind have equal keys. Integers, booleans, dates and times are their own keys, so
    different ones have different keys. Text, bytes and decimals are hashed under the salt by `hash_words`,
    and long ones by keyed BLAKE2b. Without the salt, nobody can choose a text that has the key of another.

    A given unit has the same key as one of n others with probability n / 2^128. Any two of n units have the
    same key with probability below n^2 / 2^129, which is 1.5e-21 for a billion units. Two units with the same
    key are treated as one unit. Removing one of them then changes their common record instead of removing it.
    `replace_one` hides this change in any case. Under `add_or_remove_one` the change amounts to one record
    less and one more, so the privacy loss at most doubles. For subsamples, a collision has no effect on
    privacy: one unit still affects one subsample.

    Args:
        units: shape (n,), of a type that `transforms.open_source.unit_kind` knows.
        salt: 16 secret bytes.

    Returns:
        Shape (n,), int64 or binary(16); null where the unit is null.
    """
    if isinstance(units, pa.ExtensionArray):
        units = units.storage
    if pa.types.is_dictionary(units.type):
        return unit_keys(units.dictionary, salt).take(units.indices)
    kind = units.type
    if pa.types.is_unsigned_integer(kind):
        return pc.cast(units, pa.uint64()).view(pa.int64())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        units = pc.cast(units, pa.int32())
    if pa.types.is_integer(units.type) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        return pc.cast(units, pa.int64())
    if pa.types.is_decimal(kind):
        units = pc.cast(pc.cast(units, pa.decimal256(76, kind.scale)), pa.string())
    small = pa.types.is_string(units.type) or pa.types.is_binary(units.type)
    texts = pc.cast(units, pa.binary() if small else pa.large_binary())
    held = pc.is_valid(texts).to_numpy(zero_copy_only=False) if texts.null_count else None
    keys = pa.py_buffer(_hash_texts(texts, np.int32 if small else np.int64, salt))
    bits = None if held is None else pa.py_buffer(np.packbits(held, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(16), len(texts), [bits, keys])


def unit_ids(keys: pa.Array) -> U64:
    """Return a number for each key: all of its 64 bits, or 64 of its 128 bits.

    Args:
        keys: shape (n,), of `unit_keys`, without nulls.

    Returns:
        Shape (n,), uint64.
    """
    if pa.types.is_integer(keys.type):
        return np.asarray(keys.to_numpy(zero_copy_only=False), dtype=np.int64).view(np.uint64)
    return _words(keys)[:, 0].astype(np.uint64)


def last_words(keys: pa.Array) -> U64:
    """Return the 64 bits of each key of 128 bits that `unit_ids` leaves out, shape (n,)."""
    return _words(keys)[:, 1].astype(np.uint64)


def _words(keys: pa.Array) -> NDArray[Any]:
    """Return keys of 128 bits as words, shape (n, 2)."""
    words = np.frombuffer(keys.buffers()[1], dtype="<u8").reshape(-1, 2)
    return words[keys.offset : keys.offset + len(keys)]


def _hash_texts(texts: pa.Array, width: Any, salt: bytes) -> NDArray[Any]:
    """Return 128 bits for each text, shape (n, 2). Texts of the same number of words are hashed together."""
    _, offsets_, data_ = texts.buffers()
    offsets = np.frombuffer(offsets_ or b"\0" * 8, dtype=width)[texts.offset :][: len(texts) + 1]
    data, factors = np.frombuffer(data_ or b"", dtype=np.uint8), hash_factors(salt)
    keys = np.empty((len(texts), 2), dtype="<u8")
    for at in range(0, len(texts), _CHUNK):
        ends = offsets[at : at + _CHUNK + 1].astype(np.int64)
        own = np.append(data[ends[0] : ends[-1]], np.zeros(8, dtype=np.uint8))
        starts, lengths = ends[:-1] - ends[0], np.diff(ends)
        _hash_chunk(own, starts, lengths, factors, salt, keys[at : at + _CHUNK])
    return keys


def _hash_chunk(data: Any, starts: Ints, lengths: Ints, factors: U64, salt: bytes, keys: U64) -> None:
    """Write 128 bits for each text to `keys`, shape (n, 2); 8 bytes follow the texts in `data`."""
    held = np.ndarray(len(data) - 7, "<u8", data.data, strides=(1,))  # the 8 bytes from each byte on
    words = lengths // 8 + 1
    least, most = int(words.min()), int(words.max())
    if least == most <= _LONG // 8:
        keys[:] = hash_words(_messages(held, starts, lengths, most), factors)
        return
    for count in range(least, min(most, _LONG // 8) + 1):
        rows = np.flatnonzero(words == count)
        if len(rows):
            keys[rows] = hash_words(_messages(held, starts[rows], lengths[rows], count), factors)
    for i in np.flatnonzero(lengths >= _LONG):
        text = data[starts[i] : starts[i] + lengths[i]]
        keys[i] = np.frombuffer(blake2b(text, key=salt, digest_size=16).digest(), dtype="<u8")


@lru_cache(maxsize=8)
def hash_factors(salt: bytes) -> U64:
    """Return the secret numbers of `hash_words` for texts of up to `_LONG` bytes, shape (4, 1 + 2 words)."""
    count = 1 + 2 * (_LONG // 8)
    factors = siphash(np.arange(4 * count, dtype=np.uint64), salt, _KEYS).reshape(4, count)
    factors.flags.writeable = False  # all callers share it
    return factors


def hash_words(messages: U64, factors: U64) -> NDArray[Any]:
    """Hash messages to 128 bits: four multilinear hashes of 32 bits each (Lemire and Kaser 2014).

    For the halves m_1, m_2, ... of the words, below 2^32, hash j is (f_j0 + f_j1 m_1 + f_j2 m_2 + ...)
    mod 2^64, divided by 2^32. If the factors are independent and uniform, two different messages have the
    same hash j with probability 2^-32, and all four with probability 2^-128. A shorter message counts as
    one that goes on with zeros, so different texts must remain different then: the last word of `_messages`
    holds the length.

    Args:
        messages: shape (n, w), uint64; fastest in Fortran order.
        factors: shape (4, at least 1 + 2 w), uint64; see `hash_factors`.

    Returns:
        Shape (n, 2), uint64.
    """
    out = np.empty((len(messages), 2), dtype="<u8")
    halves = [part for word in messages.T for part in (word & _LOW, word >> np.uint64(32))]
    total, product = np.empty((2, len(messages)), dtype=np.uint64)
    for number, (first, *others) in enumerate(factors):
        np.multiply(halves[0], others[0], out=total)
        total += first
        for half, factor in zip(halves[1:], others[1:], strict=False):
            np.multiply(half, factor, out=product)
            total += product
        if number % 2:
            total &= ~_LOW
            out[:, number // 2] |= total
        else:
            np.right_shift(total, np.uint64(32), out=out[:, number // 2])
    return out


def _messages(held: NDArray[Any], starts: Ints, lengths: Ints, words: int) -> U64:
    """Return texts of fewer than 8 `words` bytes as words, shape (n, words); the last byte is the length.

    Args:
        held: the 8 bytes from each byte of the data on.
        starts: shape (n,), first byte of each text.
        lengths: shape (n,), bytes.
        words: see above.
    """
    out = np.empty((len(starts), words), dtype=np.uint64, order="F")
    for word in range(words):
        out[:, word] = held[starts + 8 * word]
    left = (lengths & 7).astype(np.uint64) << np.uint64(3)
    out[:, -1] &= (np.uint64(1) << left) - np.uint64(1)
    out[:, -1] |= lengths.astype(np.uint64) << np.uint64(56)
    return out
