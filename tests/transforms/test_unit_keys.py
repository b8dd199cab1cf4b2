"""A unit's key is of 8 or 16 bytes, equal where the unit is, and of no use to whoever has not the salt."""

from functools import cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from core.sampling import siphash
from transforms.unit_keys import _KEYS, last_words, unit_ids, unit_keys

SALT = b"a salt of 16 byt"


@cache
def one_by_one(text: bytes) -> bytes:
    """Hash one text as the papers say: AES in CBC-MAC under a key for the number of blocks."""
    if len(text) >= 256:
        return blake2b(text, key=SALT, digest_size=16).digest()
    padded = text + bytes(-(len(text) + 1) % 16) + bytes([len(text)])
    words = len(padded) // 8
    key = siphash(np.array([words, words + 1], np.uint64), SALT, _KEYS).astype("<u8").tobytes()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    return encryptor.update(padded)[-16:]


KINDS = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_texts_of_every_length_are_hashed_as_one_by_one(kind: pa.DataType) -> None:
    rng = np.random.default_rng(0)
    texts = [rng.bytes(n) for n in (*range(270), *rng.integers(0, 300, 300))]
    units = pa.array(texts, pa.binary()).cast(kind)
    for part in (units, units.slice(13), units.slice(200, 100), units.slice(0, 0), units.slice(569)):
        expected = [one_by_one(text) for text in part.cast(pa.binary()).to_pylist()]
        assert unit_keys(part, SALT).to_pylist() == expected
        words = np.frombuffer(b"".join(expected), "<u8").reshape(-1, 2).T.tolist()
        assert [unit_ids(unit_keys(part, SALT)).tolist(), last_words(unit_keys(part, SALT)).tolist()] == words


def test_units_differ_and_do_not_depend_on_where_they_stand() -> None:
    names = pa.array([f"{'x' * (i % 30)}{i}" for i in range(5000)])
    keys = unit_keys(names, SALT)
    assert len(set(keys.to_pylist())) == len(set(unit_ids(keys).tolist())) == 5000
    assert unit_keys(names.slice(1234, 99), SALT).to_pylist() == keys.to_pylist()[1234:1333]
    assert unit_ids(keys.slice(1234, 99)).tolist() == unit_ids(keys)[1234:1333].tolist()
    assert len(set(unit_keys(pa.array(["", "\0", "a", "a\0", "a" + "\0" * 8]), SALT).to_pylist())) == 5
    assert len(unit_keys(names[:0], SALT)) == 0
    assert not set(keys.to_pylist()) & set(unit_keys(names, SALT[::-1]).to_pylist())


def test_a_long_text_is_a_unit_like_any_other_and_holds_up_nobody() -> None:
    """Word by word, one text of 8 MB would take minutes."""
    long = "x" * (8 << 20)
    names = pa.array(["a", long, "b", long + "y", long, "z" * 255, "z" * 256, "z" * 257])
    keys = unit_keys(names, SALT).to_pylist()
    assert keys[1] == keys[4]
    assert len(set(keys)) == 7
    assert [keys[0], keys[2]] == unit_keys(pa.array(["a", "b"]), SALT).to_pylist()
    assert unit_keys(names, SALT[::-1]).to_pylist()[1] != keys[1]


def test_nulls_stay_nulls() -> None:
    texts = pa.array(["a", None, "b", None, "a"])
    with_null = pa.DictionaryArray.from_arrays([0, 1, None, 0], pa.array(["a", None]))
    assert [key is None for key in unit_keys(texts, SALT).to_pylist()] == [0, 1, 0, 1, 0]
    assert [key is None for key in unit_keys(texts.slice(1, 3), SALT).to_pylist()] == [1, 0, 1]
    assert [key is None for key in unit_keys(with_null, SALT).to_pylist()] == [0, 1, 1, 0]
    assert unit_keys(pa.array([1, None]), SALT).to_pylist() == [1, None]
    assert unit_keys(pa.array([None], pa.string()), SALT).to_pylist() == [None]


def test_a_text_whose_bytes_are_no_text_is_a_unit() -> None:
    """A row with one must not end a run: whether there is one depends on the rows."""
    offsets, data = pa.py_buffer(np.array([0, 2, 3], np.int32)), pa.py_buffer(b"\xff\xfea")
    units = pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])
    assert unit_keys(units, SALT).to_pylist() == [one_by_one(b"\xff\xfe"), one_by_one(b"a")]


def test_integers_are_their_own_keys() -> None:
    assert unit_keys(pa.array([2**64 - 1, 5], pa.uint64()), SALT).to_pylist() == [-1, 5]
    assert unit_ids(unit_keys(pa.array([-1, 5], pa.int8()), SALT)).tolist() == [2**64 - 1, 5]


def test_a_date_is_one_unit_whatever_time_of_the_day_its_milliseconds_have() -> None:
    """They should have none. What else reads such dates rounds them down, too."""
    day = 86_400_000
    parts = [0, 1, day - 1, day, None, -1, -day, -day - 1, -(2**63), 2**63 - 1]
    dates = pa.array(parts, pa.int64()).view(pa.date64())
    expected = [None if part is None else part // day for part in parts]
    assert expected[:3] == [0, 0, 0] and expected[5:8] == [-1, -1, -2]
    for units in (dates, dates.dictionary_encode()):
        assert unit_keys(units, SALT).to_pylist() == expected
        assert unit_keys(units.slice(3, 4), SALT).to_pylist() == expected[3:7]


def test_long_decimals_that_differ_in_their_last_digit_are_two_units() -> None:
    """A float64 holds half of the digits, and a value is one unit in whatever width a file has it."""
    parts = [f"{sign}{10**35 + last}.{last}5" for sign in ("", "-") for last in range(5)]
    wide = pa.array(parts).cast(pa.decimal128(38, 2))
    keys = unit_keys(wide, SALT).to_pylist()
    assert len({*keys}) == len(parts)
    assert unit_keys(wide.cast(pa.decimal256(60, 2)), SALT).to_pylist() == keys
