"""Make of each unit a key of 8 or 16 bytes, however long its text is."""

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.sampling import siphash_128

U64 = NDArray[np.uint64]

_KEYS = 0x756E69746B6579
"""Tweak of the hash that makes keys, which no sampling of records uses."""

_LONG = 256
"""Bytes from which on a text is hashed by itself: word by word, a single one would hold up all."""

_CHUNK = 1 << 13
"""Texts hashed at a time: what they take stays in the processor's cache."""


def unit_keys(units: pa.Array, salt: bytes) -> pa.Array:
    """Return the key of each unit: int64 where that is the unit itself, otherwise 128 bits of a keyed hash.

    Equal units of one kind have equal keys. Integers, booleans, dates and times are their own keys, so
    unequal ones have unequal keys. Text, bytes and decimals get SipHash-2-4 with 128 bits of result, long
    ones keyed BLAKE2b: to whoever doesn't have the salt, and so to whoever made the data, both look random.

    A given unit shares its key with one of n others with probability n / 2^128, and any two of n units do
    with less than n^2 / 2^129: among a billion, 1.5e-21. Two units of one key are taken for one. To take one
    of them away then changes the record that they share instead of removing it: that is what `replace_one`
    hides anyway, and under `add_or_remove_one` it is one record less and one more, so at most twice the loss.
    Whether blocks of a sample share units makes no difference to what hides one of them.

    Args:
        units: shape (n,), of a type that `transforms.open_source.unit_kind` knows.
        salt: 16 secret bytes.

    Returns:
        Shape (n,), int64 or binary(16), null where the unit is.
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
    """Return a number for each key: all of its 64 bits, or half of its 128.

    Args:
        keys: shape (n,), of `unit_keys`, without nulls.

    Returns:
        Shape (n,), uint64.
    """
    if pa.types.is_integer(keys.type):
        return np.asarray(keys.to_numpy(zero_copy_only=False), dtype=np.int64).view(np.uint64)
    words = np.frombuffer(keys.buffers()[1], dtype="<u8").reshape(-1, 2)
    return words[keys.offset : keys.offset + len(keys), 0].astype(np.uint64)


def _hash_texts(texts: pa.Array, width: Any, salt: bytes) -> NDArray[Any]:
    """Return 128 bits for each text, shape (n, 2): texts of as many words go together, long ones alone."""
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
    """Return texts of fewer than 8 `words` bytes as SipHash takes them, shape (n, words)."""
    first, shift = starts >> 3, (starts & 7).astype(np.uint64) << np.uint64(3)
    out = np.empty((len(starts), words), dtype=np.uint64, order="F")
    low = held[first]
    for word in range(words):
        high = (
            held[first + word + 1] if word + 1 < words else held[np.minimum(first + word + 1, len(held) - 1)]
        )
        # by 56 - shift and then 8 more, since a shift by 64 is none
        out[:, word] = low >> shift | high << (np.uint64(56) - shift) << np.uint64(8)
        low = high
    left = (lengths & 7).astype(np.uint64) << np.uint64(3)
    out[:, -1] &= (np.uint64(1) << left) - np.uint64(1)
    out[:, -1] |= lengths.astype(np.uint64) << np.uint64(56)
    return out
