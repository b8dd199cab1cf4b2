import numpy as np
from scipy import stats

from core.sampling import poisson_sample, siphash, siphash_128

SALT = bytes(range(16))


def test_siphash_matches_the_reference_vector():
    # Aumasson and Bernstein's test vector: key 00..0f, message 00..07.
    message = np.frombuffer(bytes(range(8)), dtype="<u8").astype(np.uint64)
    assert int(siphash(message, SALT, 0)[0]) == 0x93F5F5799A932462


def test_siphash_128_matches_the_reference_vectors():
    # vectors.h of the reference implementation: key 00..0f, messages empty and 00.
    for word, expected in (
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1 << 56, "da87c1d86b99af44347659119b22fc45"),
    ):
        out = siphash_128(np.array([[word]], dtype=np.uint64), SALT, 0)
        assert out.astype("<u8").tobytes().hex() == expected


def test_siphash_128_does_not_depend_on_the_split():
    messages = np.arange(60_000, dtype=np.uint64).reshape(20_000, 3)
    parts = [siphash_128(part, SALT, 3) for part in np.array_split(messages, 7)]
    assert np.array_equal(np.concatenate(parts), siphash_128(messages, SALT, 3))
    assert len(np.unique(np.concatenate(parts))) == 40_000


def test_hash_does_not_depend_on_the_split():
    ids = np.arange(50_000, dtype=np.uint64)
    parts = [siphash(part, SALT, 3) for part in np.array_split(ids, 7)]
    assert np.array_equal(np.concatenate(parts), siphash(ids, SALT, 3))


def test_rate_is_kept_and_rounds_are_independent():
    """Flake rate 1e-6 (two-sided binomial tail); a rate off by 0.01 fails with power above 0.999."""
    ids, rate = np.arange(400_000, dtype=np.uint64), 0.2
    salt = b"0123456789abcdef"
    first, second = (poisson_sample(ids, rate, salt, tweak) for tweak in (1, 2))
    for kept, expected in ((first, rate), (second, rate), (first & second, rate**2)):
        assert stats.binomtest(int(kept.sum()), len(ids), expected).pvalue > 1e-6


def test_another_salt_is_another_sample():
    ids = np.arange(1000, dtype=np.uint64)
    samples = [poisson_sample(ids, 0.5, bytes([i]) * 16, 1) for i in range(2)]
    assert not np.array_equal(*samples)


def test_rate_one_keeps_all():
    assert poisson_sample(np.arange(5, dtype=np.uint64), 1.0, SALT, 1).all()
