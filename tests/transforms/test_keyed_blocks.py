"""Messages are hashed by AES in CBC-MAC, under keys that follow from the salt, the tweak and the length."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from core.sampling import siphash
from transforms import keyed_blocks as module
from transforms.keyed_blocks import keyed_blocks

SALT = b"a salt of 16 byt"


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_every_message_is_hashed_as_by_itself(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 7)
    messages = np.random.default_rng(0).integers(0, 2**64, (20, 2 * blocks), dtype=np.uint64)
    key = siphash(np.arange(2 * blocks, 2 * blocks + 2, dtype=np.uint64), SALT, 3).astype("<u8").tobytes()
    for form in (messages, np.asfortranarray(messages), np.repeat(messages, 2, axis=0)[::2]):
        found = keyed_blocks(form, SALT, 3)
        assert found.shape == (20, 2)
        for message, each in zip(messages, found, strict=True):
            encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
            assert encryptor.update(message.astype("<u8").tobytes())[-16:] == each.tobytes()
    assert keyed_blocks(messages[:0], SALT, 3).shape == (0, 2)


def test_another_salt_tweak_or_length_gives_other_hashes() -> None:
    messages = np.arange(2000, dtype=np.uint64).reshape(-1, 2)
    longer = np.hstack([messages, np.zeros_like(messages)])
    hashes = keyed_blocks(messages, SALT, 3)
    assert len(np.unique(hashes)) == hashes.size
    others = (
        keyed_blocks(messages, SALT[::-1], 3),
        keyed_blocks(messages, SALT, 4),
        keyed_blocks(longer, SALT, 3),
    )
    assert not any(np.isin(other, hashes).any() for other in others)
