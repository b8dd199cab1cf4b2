"""Poisson sampling that a repeated step repeats: a keyed hash of each record's identity."""

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

_CHUNK = 1 << 14  # the hash state of a chunk stays in the processor's cache


def siphash(words: U64, salt: bytes, tweak: int) -> U64:
    """SipHash-2-4 of 64-bit words under a 128-bit key (Aumasson and Bernstein 2012), vectorized.

    Args:
        words: shape (n,), uint64; each is hashed as one 8-byte message.
        salt: 16 secret bytes.
        tweak: a public number that makes the hashes of different uses independent.

    Returns:
        Shape (n,), uint64.
    """
    key = np.frombuffer(salt, dtype="<u8").astype(np.uint64)
    tweaked = np.uint64(key[1]) ^ np.uint64(tweak)
    out = np.empty_like(words)
    for start in range(0, len(words), _CHUNK):
        part = words[start : start + _CHUNK]
        out[start : start + _CHUNK] = _hash_chunk(part, np.uint64(key[0]), tweaked)
    return out


def _hash_chunk(words: U64, k0: np.uint64, k1: np.uint64) -> U64:
    full = np.full(len(words), k0, dtype=np.uint64)
    v0, v2 = full ^ np.uint64(0x736F6D6570736575), full ^ np.uint64(0x6C7967656E657261)
    full[:] = k1
    v1, v3 = full ^ np.uint64(0x646F72616E646F6D), full ^ np.uint64(0x7465646279746573)
    for message in (words, np.uint64(8 << 56)):
        v3 ^= message
        for _ in range(2):
            _sip_round(v0, v1, v2, v3)
        v0 ^= message
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        _sip_round(v0, v1, v2, v3)
    v0 ^= v1
    v0 ^= v2
    v0 ^= v3
    return v0


def _rotate(v: U64, bits: int) -> None:
    high = v >> np.uint64(64 - bits)
    v <<= np.uint64(bits)
    v |= high


def _sip_round(v0: U64, v1: U64, v2: U64, v3: U64) -> None:
    for a, b, bits in ((v0, v1, 13), (v2, v3, 16)):
        a += b
        _rotate(b, bits)
        b ^= a
    _rotate(v0, 32)
    for a, b, bits in ((v0, v3, 21), (v2, v1, 17)):
        a += b
        _rotate(b, bits)
        b ^= a
    _rotate(v2, 32)


def poisson_sample(ids: U64, rate: float, salt: bytes, tweak: int) -> NDArray[np.bool_]:
    """Say which records are in a Poisson sample of public `rate`.

    Every record is kept independently with probability `rate`, by the keyed hash of its identity:
    the same under any split, order or repetition. Hashing the content instead would keep or drop
    equal records together, and amplification by sampling would not hold.

    Args:
        ids: shape (n,), uint64 identities, distinct per record.
        rate: in (0, 1].
        salt: 16 secret bytes of the run.
        tweak: distinguishes the rounds of a run, which must sample independently.

    Returns:
        Shape (n,), bool.
    """
    if rate >= 1:
        return np.ones(len(ids), dtype=np.bool_)
    return siphash(ids, salt, tweak) < np.uint64(int(rate * 2.0**64))
