"""Hash messages of a fixed number of 16-byte blocks under a secret key, by AES."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.sampling import U64, siphash

_CHUNK = 1 << 15
"""Messages that are hashed at a time: few for the cache of the processor, and many for each call of numpy."""


def keyed_blocks(messages: U64, salt: bytes, tweak: int) -> NDArray[np.uint64]:
    """Hash each message to 128 bits by AES in CBC-MAC.

    Messages of k blocks have a key of their own, which SipHash makes of the salt, the tweak and k. All
    messages under one key are thus of one length, and for those CBC-MAC is a pseudorandom function if AES is
    (Bellare, Kilian and Rogaway 2000). Messages of one block are only encrypted, so different ones have
    different hashes.

    Args:
        messages: shape (n, 2 k), uint64.
        salt: 16 secret bytes.
        tweak: a public number that makes the hashes of different uses independent.

    Returns:
        Shape (n, 2), uint64.
    """
    cipher = _cipher(salt, tweak, messages.shape[1])
    blocks = np.ascontiguousarray(messages, dtype="<u8").view("V16")
    hashes = np.empty((len(messages) + 1, 2), dtype="<u8")  # the cipher asks for 15 bytes more
    for at in range(0, len(messages), _CHUNK):
        part = blocks[at : at + _CHUNK]
        out = hashes[at : at + len(part) + 1]
        encryptor, bytes_, state = cipher.encryptor(), out.data.cast("B"), out[:-1].reshape(-1)
        for place in range(part.shape[1]):
            words = np.ascontiguousarray(part[:, place]).view("<u8")
            encryptor.update_into((state ^ words if place else words).data.cast("B"), bytes_)
    return hashes[:-1]


@lru_cache(maxsize=64)
def _cipher(salt: bytes, tweak: int, width: int) -> Any:
    """Return AES under 16 secret bytes, others for each width of messages."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = siphash(np.arange(width, width + 2, dtype=np.uint64), salt, tweak).astype("<u8").tobytes()
    return Cipher(algorithms.AES(key), modes.ECB())
