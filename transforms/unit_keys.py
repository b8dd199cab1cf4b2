"""Replace units by keys of 8 or 16 bytes."""

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from transforms.keyed_blocks import keyed_blocks

U64 = NDArray[np.uint64]
Ints = NDArray[np.int64]

_KEYS = 0x756E69746B6579
"""Tweak of the hash of keys. No sampling of records uses it."""

_LONG = 256
"""Texts of at least this many bytes are hashed one by one; shorter ones are hashed together."""

_HELD = np.tril(np.full((16, 16), 255, dtype=np.uint8), -1).view("<u8").T.astype(np.uint64)
"""The bits of both words of a last block that belong to a text, by its number of bytes: shape (2, 16)."""

_KEY = "V16"
"""A key of 128 bits as one element of numpy, which is faster to move than two."""

_DAY = 86_400_000
"""Milliseconds of a day, in which Arrow's date64 counts."""

_CHUNK = 1 << 15
"""Texts that are hashed at a time: few for the cache of the processor, and many for each call of numpy."""


def unit_keys(units: pa.Array, salt: bytes) -> pa.Array:
    """Return the key of each unit: the unit itself as int64, or 128 bits of a keyed hash.

    Equal units of the same kind have equal keys. Integers, booleans, dates and times are their own keys, so
    different ones have different keys. Text, bytes and decimals are hashed under the salt by `keyed_blocks`,
    and long ones by keyed BLAKE2b. Without the salt, nobody can choose a text that has the key of another.

    Different texts of fewer than 16 bytes have different keys among themselves. Otherwise a given unit has
    the same key as one of n others with probability about n / 2^128, if AES is a random permutation and
    BLAKE2b a random function. Any two of n units of k blocks each have the same key with probability below
    2 k^2 n^2 / 2^128, which is 6e-21 k^2 for a billion units. Two units with the same
    key are treated as one unit. Removing one of them then changes their common record instead of removing it.
    `replace_one` hides this change in any case. Under `add_or_remove_one` the change amounts to one record
    less and one more, so the privacy loss at most doubles. For subsamples, a collision has no effect on
    privacy: one unit still affects one subsample.

    Args:
        units: shape (n,), of a type that `transforms.open_source.unit_kind` knows.
        salt: 16 secret bytes.

    Returns:
        Shape (n,), int64 or binary(16), or a dictionary of binary(16) for one of units; null where the unit
        is null. A key may be in the dictionary several times.
    """
    if isinstance(units, pa.ExtensionArray):
        units = units.storage
    if pa.types.is_dictionary(units.type):
        keys = unit_keys(units.dictionary, salt)
        if pa.types.is_integer(keys.type) or keys.null_count:
            return keys.take(units.indices)
        return pa.DictionaryArray.from_arrays(units.indices, keys)  # 16 bytes of each key are moved once
    kind = units.type
    if pa.types.is_unsigned_integer(kind):
        return pc.cast(units, pa.uint64()).view(pa.int64())
    if pa.types.is_date64(kind):
        return _days(units)
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


def _days(dates: pa.Array) -> pa.Array:
    """Return each date64 as its day, rounded down: a time of the day should not be there."""
    missing = dates.is_null().to_numpy(zero_copy_only=False)
    parts = pc.fill_null(dates.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return pa.array(parts // _DAY, mask=missing)


def unit_ids(keys: pa.Array) -> U64:
    """Return a number for each key: all of its 64 bits, or 64 of its 128 bits.

    Args:
        keys: shape (n,), of `unit_keys`, without nulls.

    Returns:
        Shape (n,), uint64.
    """
    if pa.types.is_integer(keys.type):
        return np.asarray(keys.to_numpy(zero_copy_only=False), dtype=np.int64).view(np.uint64)
    return _words(keys, 0)


def last_words(keys: pa.Array) -> U64:
    """Return the 64 bits of each key of 128 bits that `unit_ids` leaves out, shape (n,)."""
    return _words(keys, 1)


def _words(keys: pa.Array, place: int) -> U64:
    """Return the first or the second word of keys of 128 bits, shape (n,)."""
    if pa.types.is_dictionary(keys.type):
        return np.take(_words(keys.dictionary, place), keys.indices.to_numpy(), mode="clip")
    words = np.frombuffer(keys.buffers()[1], dtype="<u8").reshape(-1, 2)
    return words[keys.offset : keys.offset + len(keys), place].astype(np.uint64)


def _hash_texts(texts: pa.Array, width: Any, salt: bytes) -> NDArray[Any]:
    """Return 128 bits for each text, shape (n, 2). Texts of the same number of blocks are hashed together."""
    _, offsets_, data_ = texts.buffers()
    offsets = np.frombuffer(offsets_ or b"\0" * 8, dtype=width)[texts.offset :][: len(texts) + 1]
    data, keys = np.frombuffer(data_ or b"", dtype=np.uint8), np.empty((len(texts), 2), dtype="<u8")
    for at in range(0, len(texts), _CHUNK):
        ends = offsets[at : at + _CHUNK + 1].astype(np.int64)
        own = np.append(data[ends[0] : ends[-1]], np.zeros(_LONG, dtype=np.uint8))
        starts, lengths = ends[:-1] - ends[0], np.diff(ends)
        _hash_chunk(own, starts, lengths, salt, keys[at : at + _CHUNK])
    return keys


def _hash_chunk(data: Any, starts: Ints, lengths: Ints, salt: bytes, keys: U64) -> None:
    """Write 128 bits for each text to `keys`, shape (n, 2); `_LONG` bytes follow the texts in `data`."""
    blocks = (lengths >> 4) + 1
    least, most = int(blocks.min()), int(blocks.max())
    if least == most <= _LONG >> 4:
        keys[:] = keyed_blocks(_messages(data, starts, lengths, most), salt, _KEYS)
        return
    for count in range(least, min(most, _LONG >> 4) + 1):
        rows = np.flatnonzero(blocks == count)
        if len(rows):
            hashed = keyed_blocks(_messages(data, starts[rows], lengths[rows], count), salt, _KEYS)
            keys.view(_KEY)[rows] = hashed.view(_KEY)
    for i in np.flatnonzero(lengths >= _LONG):
        text = data[starts[i] : starts[i] + lengths[i]]
        keys[i] = np.frombuffer(blake2b(text, key=salt, digest_size=16).digest(), dtype="<u8")


def _messages(data: Any, starts: Ints, lengths: Ints, blocks: int) -> U64:
    """Return texts as words, shape (n, 2 blocks), with zeros after them; the last byte is the length.

    Args:
        data: the texts and what follows them.
        starts: shape (n,), first byte of each text.
        lengths: shape (n,), bytes, of which those of the last block are fewer than 16.
        blocks: number of blocks of 16 bytes.
    """
    held = np.ndarray(len(data) - 16 * blocks + 1, f"V{16 * blocks}", data.data, strides=(1,))
    out = held[starts].view("<u8").reshape(len(starts), 2 * blocks)
    left = lengths & 15
    out[:, -2] &= np.take(_HELD[0], left, mode="clip")
    out[:, -1] &= np.take(_HELD[1], left, mode="clip")
    out[:, -1] |= lengths.astype(np.uint64) << np.uint64(56)
    return out
