"""Replace units by keys of 8 or 16 bytes."""

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import siphash

U64 = NDArray[np.uint64]

_KEYS = 0x756E69746B6579
"""Tweak of the hash of keys. No sampling of records uses it."""

_LONG = 256
"""Texts of at least this many bytes are hashed one by one; shorter ones are hashed together."""

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
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    data = np.frombuffer(data_ or b"", dtype=np.uint8)
    keys = np.empty((len(texts), 2), dtype="<u8")
    words = (np.minimum(lengths, _LONG) // 8 + 1).astype(np.uint8)
    long = np.flatnonzero(lengths >= _LONG)
    for i in long:
        text: Any = data[starts[i] : starts[i] + lengths[i]]
        keys[i] = np.frombuffer(blake2b(text, key=salt, digest_size=16).digest(), dtype="<u8")
    if len(long) == len(texts):
        return keys
    factors = hash_factors(salt)
    held = np.zeros(len(data) // 8 + 2, dtype="<u8")
    held.view(np.uint8)[: len(data)] = data
    for count in range(1, _LONG // 8 + 1):
        every = np.flatnonzero(words == count)
        for at in range(0, len(every), _CHUNK):
            rows = every[at : at + _CHUNK]
            keys[rows] = hash_words(_messages(held, starts[rows], lengths[rows], count), factors)
    return keys


def hash_factors(salt: bytes) -> U64:
    """Return the secret numbers of `hash_words` for texts of up to `_LONG` bytes, shape (4, 1 + 2 words)."""
    count = 1 + 2 * (_LONG // 8)
    return siphash(np.arange(4 * count, dtype=np.uint64), salt, _KEYS).reshape(4, count)


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
    sums = [np.full(len(messages), first, dtype=np.uint64) for first in factors[:, 0]]
    product = np.empty(len(messages), dtype=np.uint64)
    for word in range(messages.shape[1]):
        halves = messages[:, word] & np.uint64(0xFFFFFFFF), messages[:, word] >> np.uint64(32)
        for number, half in enumerate(halves, start=1 + 2 * word):
            for total, factor in zip(sums, factors[:, number], strict=True):
                np.multiply(half, factor, out=product)
                total += product
    for i in range(2):
        out[:, i] = sums[2 * i] >> np.uint64(32) | sums[2 * i + 1] & np.uint64(0xFFFFFFFF00000000)
    return out


def _messages(held: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64], words: int) -> U64:
    """Return texts of fewer than 8 `words` bytes as words, shape (n, words); the last byte is the length."""
    first, shift = starts >> 3, (starts & 7).astype(np.uint64) << np.uint64(3)
    out = np.empty((len(starts), words), dtype=np.uint64, order="F")
    low = held[first]
    for word in range(words):
        high = (
            held[first + word + 1] if word + 1 < words else held[np.minimum(first + word + 1, len(held) - 1)]
        )
        # by 56 - shift and then by 8, since a shift by 64 does nothing
        out[:, word] = low >> shift | high << (np.uint64(56) - shift) << np.uint64(8)
        low = high
    left = (lengths & 7).astype(np.uint64) << np.uint64(3)
    out[:, -1] &= (np.uint64(1) << left) - np.uint64(1)
    out[:, -1] |= lengths.astype(np.uint64) << np.uint64(56)
    return out
