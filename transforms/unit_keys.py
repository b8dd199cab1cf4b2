"""Replace units by keys of 8 or 16 bytes."""

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import siphash_128

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
    different ones have different keys. Text, bytes and decimals are hashed by SipHash-2-4 with a result of
    128 bits, and long ones by keyed BLAKE2b. To anyone without the salt, including the author of the data,
    both look random.

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
    held = np.zeros(len(data) // 8 + 2, dtype="<u8")
    held.view(np.uint8)[: len(data)] = data
    for count in range(1, _LONG // 8 + 1):
        every = np.flatnonzero(words == count)
        for at in range(0, len(every), _CHUNK):
            rows = every[at : at + _CHUNK]
            keys[rows] = siphash_128(_messages(held, starts[rows], lengths[rows], count), salt, _KEYS)
    return keys


def _messages(held: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64], words: int) -> U64:
    """Return texts of fewer than 8 `words` bytes as input words of SipHash, shape (n, words)."""
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
