"""Poisson sampling by a keyed hash of each record's identity: a repeated step keeps the same records."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

_CHUNK, _SCRAMBLED = 1 << 14, 1 << 13  # the hash states of a chunk stay in the processor's cache

_SPLIT_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Shifts and factors of SplitMix64."""


def siphash(words: U64, salt: bytes, tweak: int) -> U64:
    """Hash 64-bit words by SipHash-2-4 under a 128-bit key (Aumasson and Bernstein 2012), vectorized.

    Args:
        words: shape (n,), uint64; each is hashed as one 8-byte message.
        salt: 16 secret bytes.
        tweak: a public number below 2^63 that makes the hashes of different uses independent.

    Returns:
        Shape (n,), uint64.
    """
    return hashed(words, *_key_of(salt, tweak))


@lru_cache(maxsize=1 << 12)
def _key_of(salt: bytes, tweak: int) -> tuple[np.uint64, np.uint64]:
    """Return the key of a use: hashes under the salt of two words that no other use has.

    So if SipHash is a pseudorandom function under one key, hashes of different uses are as those of
    independent random functions. Keys that differ by a known difference would need more than that.
    """
    first, second = np.frombuffer(salt, dtype="<u8").astype(np.uint64)
    key = hashed(np.array([2 * tweak, 2 * tweak + 1], dtype=np.uint64), first, second)
    return key[0], key[1]


def hashed(words: U64, first: np.uint64, second: np.uint64) -> U64:
    """Return the hashes of words, shape (n,), under a key of two words; see `siphash`."""
    out = np.empty_like(words)
    for start in range(0, len(words), _CHUNK):
        out[start : start + _CHUNK] = _hash_chunk(words[start : start + _CHUNK], first, second)
    return out


def renamed(ids: U64, names: bytes) -> U64:
    """Return other identities for a run that has the salt of an earlier one, so that its samples are its own.

    They are a x + b modulo 2^64 for a secret odd a and a secret b. So they differ where identities do. Two
    given identities become one under the names of two runs with probability 2^-64, over b. Where they do not,
    their hashes under one salt are independent.

    Args:
        ids: shape (n,).
        names: 16 secret bytes of a run, or none, which leave identities as they are.

    Returns:
        Shape (n,).
    """
    if not names:
        return ids
    first, second = np.frombuffer(names, dtype="<u8").astype(np.uint64)
    named: U64 = ids * (first | np.uint64(1)) + second
    return named


def scramble(words: U64, salt: bytes, tweak: int) -> U64:
    """Permute 64-bit words by a keyed bijection, in a sixteenth of the time of `siphash`; vectorized.

    Multiplications and shifts in the manner of SplitMix64 (Steele, Lea and Flood 2014), after a secret
    difference. Nobody without the salt can aim at a result, but the result is no pseudorandom function. So it
    may choose among the groups of a unit or among copies of a row, which are private for every choice.
    It may not choose a sample, whose privacy rests on independent records.

    Args:
        words: shape (n,), uint64.
        salt: 16 secret bytes.
        tweak: a public number that makes the results of different uses independent.

    Returns:
        Shape (n,), uint64; different for different words.
    """
    before, after = _differences(salt, tweak)
    out = np.empty(len(words), dtype=np.uint64)
    shifted = np.empty(min(len(words), _SCRAMBLED), dtype=np.uint64)
    for start in range(0, len(words), _SCRAMBLED):
        part = out[start : start + _SCRAMBLED]
        rest = shifted[: len(part)]
        np.bitwise_xor(words[start : start + _SCRAMBLED], before, out=part)
        for shift, factor in _SPLIT_MIX:
            np.right_shift(part, np.uint64(shift), out=rest)
            part ^= rest
            part *= np.uint64(factor)
        np.right_shift(part, np.uint64(31), out=rest)
        part ^= rest
        part ^= after
    return out


@lru_cache(maxsize=64)
def _differences(salt: bytes, tweak: int) -> tuple[np.uint64, np.uint64]:
    """Return the secret differences of `scramble`, which is often called for few words."""
    before, after = siphash(np.arange(2, dtype=np.uint64), salt, tweak)
    return before, after


def _hash_chunk(words: U64, k0: np.uint64, k1: np.uint64) -> U64:
    state = _start(len(words), k0, k1)
    for message in (words, np.uint64(8 << 56)):
        _absorb(state, message)
    _, _, v2, _ = state
    v2 ^= np.uint64(0xFF)
    return _finish(state)


def _start(n: int, k0: np.uint64, k1: np.uint64) -> tuple[U64, U64, U64, U64]:
    full = np.full(n, k0, dtype=np.uint64)
    v0, v2 = full ^ np.uint64(0x736F6D6570736575), full ^ np.uint64(0x6C7967656E657261)
    full[:] = k1
    v1, v3 = full ^ np.uint64(0x646F72616E646F6D), full ^ np.uint64(0x7465646279746573)
    return v0, v1, v2, v3


def _absorb(state: tuple[U64, U64, U64, U64], message: U64 | np.uint64) -> None:
    v0, _, _, v3 = state
    v3 ^= message
    for _ in range(2):
        _sip_round(*state)
    v0 ^= message


def _finish(state: tuple[U64, U64, U64, U64]) -> U64:
    for _ in range(4):
        _sip_round(*state)
    v0, v1, v2, v3 = state
    out: U64 = v0 ^ v1 ^ v2 ^ v3
    return out


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
    """Return which records are in a Poisson sample of public `rate`.

    Every record is kept independently with probability `rate`. The keyed hash of its identity decides, so the
    sample is the same under any split, order or repetition. A hash of the content would keep or drop equal
    records together, and amplification by sampling would not hold.

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
