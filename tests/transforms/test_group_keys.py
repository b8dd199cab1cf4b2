"""Key columns become groups: the same key in every batch, no error that rows could cause."""

import datetime
import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.grouping import Grouping
from core.labels import Labels
from transforms import public_keys
from transforms.group_keys import GroupKeys, _joined, without_long
from transforms.join_table import open_join
from transforms.key_labels import LONGEST, label_of, product_of
from transforms.list_files import InputError
from transforms.open_source import open_source
from transforms.public_keys import read_keys


def keys_of(batch, columns, truncate=None, labels=None):
    """Return the key of each row as a list, or None."""
    cut = tuple((truncate or {}).get(column) for column in columns)
    groups, found = GroupKeys(tuple(columns), cut, None if labels is None else Labels(labels)).read(batch)
    assert groups.dtype == np.int64 and len(groups) == batch.num_rows
    return [None if group < 0 else json.loads(found[group]) for group in groups]


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.text(max_size=5), st.sampled_from(["a", "b", 'quote"', "\\", "\0"])),
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2)),
        st.one_of(st.none(), st.booleans()),
    ),
    max_size=30,
)


@given(ROWS, st.booleans(), st.randoms(use_true_random=False))
def test_keys_are_the_values_of_the_row(rows, encoded, shuffle):
    """Under any order of rows and columns, with dictionaries and without."""
    texts, numbers, flags = ([row[i] for row in rows] for i in range(3))
    text = pa.array(texts, pa.string())
    batch = pa.record_batch(
        {
            "t": text.dictionary_encode() if encoded else text,
            "n": pa.array(numbers, pa.int64()),
            "f": pa.array(flags, pa.bool_()),
        }
    )
    columns = ["t", "n", "f"]
    shuffle.shuffle(columns)
    place = ["tnf".index(column) for column in columns]
    wanted = [None if None in row else [row[i] for i in place] for row in rows]
    assert keys_of(batch, columns) == wanted
    if len(rows) > 1:
        assert keys_of(batch.slice(1), columns) == wanted[1:]
    public = tuple(sorted({label_of(key) for key in wanted[::2] if key is not None}))
    listed = [key if key is not None and label_of(key) in public else None for key in wanted]
    assert keys_of(batch, columns, labels=public) == listed


def test_odd_texts_and_longer_keys():
    """Bytes that are not UTF-8, texts that JSON escapes, and keys longer than every public one."""
    texts = [b"a", b"\xff", b"\xfe", b'"', b"\x1f", b"\x7f", "\u00fc".encode(), b"a" * 9, None]
    column = pa.array(texts, pa.binary()).view(pa.string())
    read = [None if text is None else [text.decode("utf-8", "replace")] for text in texts]
    for rows in (range(len(texts)), [0, 5, 6, 7, 8], [0, 7]):
        batch = pa.record_batch({"t": column.take(pa.array(rows))})
        wanted = [read[row] for row in rows]
        assert keys_of(batch, ["t"]) == wanted
        for public in (('["b"]', '["a"]'), ('["\ufffd"]', '["\\""]'), ('["\u00fc"]',)):
            listed = [key if key is not None and label_of(key) in public else None for key in wanted]
            assert keys_of(batch, ["t"], labels=public) == listed


def test_a_key_is_json_whatever_sign_it_is():
    """Also where no other key of the batch has one that JSON escapes."""
    for code in (*range(256), 0x2028, 0xFEFF, 0x1F600):
        assert keys_of(pa.record_batch({"t": [f"a{chr(code)}"]}), ["t"]) == [[f"a{chr(code)}"]]


@pytest.mark.parametrize("path", ["https://b/keys.parquet", "nowhere://b/keys.parquet"])
def test_a_place_that_no_file_can_have_is_told_of_the_field_that_names_it(path):
    for read, field in (
        (lambda: read_keys(path, ["t"], [None]), "group_by.keys"),
        (lambda: open_join(path, "t", None), "input.join.path"),
    ):
        with pytest.raises(InputError, match=rf"^{field}\b(?!.*input\.path)"):
            read()


SECONDS = st.integers(-(10**10), 10**10)


@given(st.lists(st.one_of(st.none(), SECONDS), max_size=20), st.sampled_from(["s", "ms", "us"]))
def test_times_are_cut_in_utc(seconds, unit):
    factor = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    ticks = [None if s is None else s * factor + factor - 1 for s in seconds]
    column = pa.array(ticks, pa.timestamp(unit, "Europe/Berlin"))
    batch = pa.record_batch({"t": column})
    start = datetime.datetime(1970, 1, 1)
    for cut, form in (("day", "%Y-%m-%d"), ("hour", "%Y-%m-%dT%H"), ("month", "%Y-%m")):
        wanted = [
            None if s is None else [(start + datetime.timedelta(seconds=s)).strftime(form)] for s in seconds
        ]
        assert keys_of(batch, ["t"], {"t": cut}) == wanted
    found = keys_of(batch, ["t"], {"t": "week"})
    for s, key in zip(seconds, found, strict=True):
        if s is not None:
            day = (start + datetime.timedelta(seconds=s)).date()
            assert key == [(day - datetime.timedelta(days=day.weekday())).isoformat()]


def test_dates_and_extreme_times_are_no_error():
    days = pa.array([0, 1, None, -(2**31), 2**31 - 1], pa.int32()).view(pa.date32())
    batch = pa.record_batch({"d": days})
    assert keys_of(batch, ["d"])[:3] == [["1970-01-01"], ["1970-01-02"], None]
    ends = pa.array([-(2**63), 2**63 - 1, 0], pa.int64())
    for unit in ("s", "ms", "us", "ns"):
        batch = pa.record_batch({"t": ends.view(pa.timestamp(unit))})
        for cut in ("hour", "day", "month"):
            found = keys_of(batch, ["t"], {"t": cut})
            assert found[2][0].startswith("1970-01")  # of others see test_keys_of_time


def test_odd_texts_are_no_error():
    broken = pa.Array.from_buffers(pa.string(), 2, [None, *pa.array([b"\xff\xfe", b"a"]).buffers()[1:]])
    assert keys_of(pa.record_batch({"t": broken}), ["t"]) == [["\ufffd\ufffd"], ["a"]]
    long = pa.record_batch({"t": pa.array(["x" * LONGEST, "x" * (LONGEST - 4)])})
    assert keys_of(long, ["t"]) == [None, ["x" * (LONGEST - 4)]]
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", "a", None]))
    assert keys_of(pa.record_batch({"t": twice}), ["t"]) == [["a"], ["a"], None, None]
    nothing = pa.record_batch({"t": pa.array([None, None], pa.string()), "n": pa.array([1, 2])})
    assert keys_of(nothing, ["t", "n"]) == keys_of(nothing, ["n", "t"]) == [None, None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("public", [None, Labels(['["a"]'])])
def test_without_long_texts_keys_are_the_same(kind, public):
    """Also where a text is as long as a label may be, and for texts that are not UTF-8."""
    texts = ["a", None, *("x" * (LONGEST + more) for more in range(-6, 3)), "\ufffd" * 85, "\n" * 200]
    keys = GroupKeys(("t",), (None,), public)
    broken = pa.array([b"\xe2\x82" * 128, b"\xff" * 84, b"\xf0\x9f\x98" * 84])
    broken = pa.Array.from_buffers(pa.string(), 3, broken.buffers())
    for column in (pa.array(texts).cast(kind), pa.array(texts).dictionary_encode(), broken):
        found = [keys.read(pa.record_batch({"t": each})) for each in (column, without_long(column))]
        known = [[None if i < 0 else labels[i] for i in groups] for groups, labels in found]
        assert known[0] == known[1]


def test_a_long_text_of_a_dictionary_is_not_repeated_for_each_value_of_another_column(monkeypatch):
    """Here a text of 1 MB for a thousand numbers."""
    sizes = []

    def joined(*parts):
        sizes.append(sum(part.nbytes for part in parts if isinstance(part, pa.Array)))
        return _joined(*parts)

    monkeypatch.setattr("transforms.group_keys._joined", joined)
    names = pa.DictionaryArray.from_arrays(pa.array([0] * 1000 + [1]), pa.array(["x" * 1_000_000, "a"]))
    batch = pa.record_batch({"t": names, "n": pa.array(np.arange(1001))})
    groups, labels = GroupKeys(("t", "n"), (None, None)).read(batch)
    assert [labels[group] for group in groups if group >= 0] == [label_of(["a", 1000]).encode()]
    assert sizes and max(sizes) < 1_000_000


KINDS = [
    ("f", pa.array([1.0]), None, "f is double in rows.parquet; keys are text"),
    ("t", pa.array([1], pa.timestamp("s")), None, "give group_by.truncate"),
    ("n", pa.array([1]), "day", "group_by.truncate is for timestamps"),
    ("l", pa.array([[1]]), None, "keys are text"),
    ("missing", None, None, "missing is missing from rows.parquet"),
]


@pytest.mark.parametrize(("name", "column", "cut", "says"), KINDS)
def test_wrong_key_columns_are_one_sentence(tmp_path, name, column, cut, says):
    columns = {"x": pa.array([1.0])} | ({} if column is None else {name: column})
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=says) as caught:
        open_source(str(tmp_path / "rows.parquet"), ["x"], groups=GroupKeys((name,), (cut,)))
    assert str(caught.value).startswith("group_by.columns: ") and str(caught.value).endswith(".")


FITS = [
    (pa.array(["a"]), None, ["a"], [1, True]),
    (pa.array([1], pa.int8()), None, [-128, 127], [128, "1", True, 2**70]),
    (pa.array([1], pa.uint64()), None, [0, 2**64 - 1], [-1]),
    (pa.array([True]), None, [True, False], [1, "true"]),
    (pa.array(["a"]).dictionary_encode(), None, ["a"], [1]),
    (pa.array([0], pa.date32()), None, ["2026-01-31"], ["2026-01-32", "2026-1-31", "NaT", "", "2026-01", 3]),
    (pa.array([0], pa.date32()), "month", ["2026-01"], ["2026-13", "2026-01-01"]),
    (pa.array([0], pa.timestamp("s")), "hour", ["2026-01-31T23"], ["2026-01-31T24", "2026-01-31 23", "now"]),
]


@pytest.mark.parametrize(("column", "cut", "right", "wrong"), FITS)
def test_public_keys_are_of_the_kind_of_their_column(tmp_path, column, cut, right, wrong):
    """Otherwise their groups would be empty, and nobody would be told."""
    pq.write_table(pa.table({"x": [1.0], "k": column}), tmp_path / "rows.parquet")

    def opened(*keys):
        labels = Labels(label_of([key]) for key in keys)
        open_source(str(tmp_path), ["x"], groups=GroupKeys(("k",), (cut,), labels))

    opened(*right)
    for key in wrong:
        with pytest.raises(InputError, match=r"^group_by\.keys has .* for k, which is .*\.$"):
            opened(*right, key)


def test_a_key_column_has_one_type_in_all_files(tmp_path):
    for number, value in enumerate((1, "a")):
        pq.write_table(pa.table({"x": [1.0], "k": [value]}), tmp_path / f"{number}.parquet")
    with pytest.raises(InputError, match=r"k is string in 1\.parquet but int64 in 0\.parquet"):
        open_source(str(tmp_path), ["x"], groups=GroupKeys(("k",), (None,)))


def test_public_keys_of_a_file(tmp_path):
    path = str(tmp_path / "keys.parquet")
    pq.write_table(pa.table({"d": pa.array([0, 40], pa.date32()), "c": ["a", "b"], "other": [1, 2]}), path)
    assert read_keys(path, ["c", "d"], [None, "month"]) == ['["a","1970-01"]', '["b","1970-02"]']
    pq.write_table(pa.table({"c": ["a", None]}), path)
    with pytest.raises(InputError, match="a row with a null"):
        read_keys(path, ["c"], [None])
    (tmp_path / "keys.parquet").write_text("no Parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_keys(path, ["c"], [None])
    with pytest.raises(InputError, match=r"^group_by\.keys ftp://b/k has a scheme that is not supported"):
        read_keys("ftp://b/k", ["c"], [None])
    with pytest.raises(InputError, match=r"^group_by\.keys: privat does not exist; give a Parquet file"):
        read_keys(str(tmp_path / "privat"), ["c"], [None])


def test_a_file_of_too_many_keys_is_not_read(tmp_path, monkeypatch):
    path = str(tmp_path / "keys.parquet")
    pq.write_table(pa.table({"c": ["a", "b", None]}), path)
    monkeypatch.setattr(public_keys, "MOST_KEYS", 2)
    with pytest.raises(InputError, match=r"keys\.parquet has 3 rows; .* at most 2"):
        read_keys(path, ["c"], [None])


def test_combinations():
    assert product_of([["a", "b"], [1, 2]], 4) == ['["a",1]', '["a",2]', '["b",1]', '["b",2]']
    with pytest.raises(ValueError, match="10,000 combinations: there may be at most 99"):
        product_of([range(100), range(100)], 99)


@pytest.mark.parametrize("labels", [None, Labels(()), Labels(['["a\\nb"]', '["c"]']), Labels(['["x"]'])])
def test_pickles_share_their_labels(labels):
    """Steps of a run are pickled several times each, and a process reads all of them."""
    grouping = Grouping(("city",), labels, (None,))
    keys = GroupKeys(("city",), (None,), labels)
    one, other, first, second = (
        pickle.loads(pickle.dumps(each)) for each in (grouping, grouping, keys, keys)
    )
    assert one == other == grouping and first == keys
    assert one.labels is other.labels is first.labels and first is second
    assert labels is None or one.labels == labels
