import numpy as np
from scipy import stats

from core import sampling
from core.sampling import hashed, poisson_sample, renamed, scramble, siphash

SALT = bytes(range(16))


def test_siphash_matches_the_reference_vector():
    # Aumasson and Bernstein's test vector: key 00..0f, message 00..07.
    message = np.frombuffer(bytes(range(8)), dtype="<u8").astype(np.uint64)
    key = np.frombuffer(SALT, dtype="<u8").astype(np.uint64)
    assert int(hashed(message, *key)[0]) == 0x93F5F5799A932462


def test_uses_are_independent_for_any_function_that_is_pseudorandom_under_one_key(monkeypatch):
    """One that ignores two bits of its key is such a function, if a little weaker.

    Its samples are alike where keys of uses differ by small numbers. Flake rate below 1e-6.
    """
    whole, forgotten = sampling._hash_chunk, np.uint64(3)
    monkeypatch.setattr(sampling, "_hash_chunk", lambda words, k0, k1: whole(words, k0, k1 & ~forgotten))
    ids, salt = np.arange(400_000, dtype=np.uint64), b"independent uses"
    both = poisson_sample(ids, 0.2, salt, 1) & poisson_sample(ids, 0.2, salt, 2)
    assert stats.binomtest(int(both.sum()), len(ids), 0.04).pvalue > 1e-6


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


def test_a_sample_is_chosen_by_a_pseudorandom_function():
    """`scramble` is none, though its samples look alike."""
    ids = np.arange(1000, dtype=np.uint64)
    kept = siphash(ids, SALT, 5) < np.uint64(2**62)
    assert np.array_equal(poisson_sample(ids, 0.25, SALT, 5), kept)


def test_another_salt_is_another_sample():
    ids = np.arange(1000, dtype=np.uint64)
    samples = [poisson_sample(ids, 0.5, bytes([i]) * 16, 1) for i in range(2)]
    assert not np.array_equal(*samples)


def test_rate_one_keeps_all():
    assert poisson_sample(np.arange(5, dtype=np.uint64), 1.0, SALT, 1).all()


def test_scrambling_is_a_bijection_that_is_keyed_and_does_not_depend_on_the_split():
    ids = np.r_[np.arange(40_000), np.arange(40_000) << 24, np.arange(1, 40_000) << 40].astype(np.uint64)
    scrambled = scramble(ids, SALT, 3)
    assert len(np.unique(scrambled)) == len(np.unique(ids))
    parts = [scramble(part, SALT, 3) for part in np.array_split(ids, 7)]
    assert np.array_equal(np.concatenate(parts), scrambled)
    for other in (scramble(ids, SALT, 4), scramble(ids, SALT[::-1], 3)):
        assert not (other == scrambled).any()


def test_scrambling_is_splitmix_between_two_secret_differences():
    before, after = (int(word) for word in siphash(np.arange(2, dtype=np.uint64), SALT, 3))
    words = [0, 1, before, 2**64 - 1, 0x0123456789ABCDEF]
    expected = []
    for word in words:
        z = word ^ before
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        expected.append(z ^ z >> 31 ^ after)
    assert scramble(np.array(words, dtype=np.uint64), SALT, 3).tolist() == expected


def test_scrambled_numbers_fill_shards_and_win_races_evenly():
    """Chi-square of 256 shards and of 8 racers, for ids of several patterns: flake rate 1e-6 each."""
    n = 200_000
    for shift in (0, 8, 33, 46):
        ids = np.arange(n, dtype=np.uint64) << np.uint64(shift)
        shards = np.bincount((scramble(ids, SALT, 3) >> np.uint64(56)).astype(int), minlength=256)
        assert stats.chisquare(shards).pvalue > 1e-6
        start = scramble(ids, SALT, 5)
        racers = np.stack([scramble(start ^ np.uint64(racer), SALT, 5) for racer in range(8)])
        assert stats.chisquare(np.bincount(racers.argmin(axis=0), minlength=8)).pvalue > 1e-6


def test_no_two_uses_share_a_word_of_a_key():
    keys = [sampling._key_of(SALT, tweak) for tweak in range(64)]
    assert len({int(word) for key in keys for word in key}) == 128


def test_names_of_a_run_change_samples_and_keep_identities_apart():
    """Of a Poisson sample at q = 0.1, another run shares the part q: within 6 standard deviations."""
    ids = np.append(np.arange(50_000, dtype=np.uint64), np.uint64(2**64 - 1))
    salt, names = bytes(range(16)), (bytes(range(16, 32)), bytes(range(32, 48)))
    assert np.array_equal(renamed(ids, b""), ids)
    samples = [poisson_sample(renamed(ids, each), 0.1, salt, 1) for each in (b"", *names)]
    assert len(np.unique(renamed(ids, names[0]))) == len(ids)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        shared = np.count_nonzero(samples[one] & samples[other])
        assert abs(shared - 500) < 6 * 500**0.5
