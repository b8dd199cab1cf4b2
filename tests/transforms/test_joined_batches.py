"""Batches whose columns have different dictionaries, which Arrow would not join for some rows alone."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from transforms.joined_batches import decoded, joined_batches
from transforms.open_source import open_source
from transforms.read_blocks import list_row_groups
from transforms.split_units import read_keyed


def indexed(indices: list[int | None], values: list[str | None], kind: pa.DataType | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, kind or pa.int32()), pa.array(values))


def test_dictionaries_that_differ_are_joined():
    many = [f"v{number}" for number in range(100)]
    columns = [
        indexed([0, None, 1], ["a", None]),
        indexed([0, 1, None], ["a", None]),
        indexed([1, 0], ["b", "a"]),
        indexed([], []).cast(pa.dictionary(pa.int32(), pa.string())),
        indexed([*range(100)], many, pa.int8()).cast(pa.dictionary(pa.int8(), pa.string())),
        indexed([*range(100)], [f"w{number}" for number in range(100)], pa.int8()),
    ]
    batches = [pa.record_batch({"t": each, "n": np.arange(len(each))}) for each in columns]
    joined = joined_batches(batches)
    assert joined.column("t").to_pylist() == [value for each in columns for value in each.to_pylist()]
    assert joined.column("n").to_pylist() == [place for each in columns for place in range(len(each))]
    assert joined_batches(batches[:2]).column("t").dictionary.to_pylist() == ["a", None]
    assert joined_batches(batches[:1]) is batches[0]
    growing = [indexed([0, size - 1], many[:size]) for size in (1, 5, 5, 9, 3, 9)]
    joined = joined_batches([pa.record_batch({"t": each}) for each in growing])
    assert joined.column("t").to_pylist() == [value for each in growing for value in each.to_pylist()]
    assert joined.column("t").dictionary.to_pylist() == many[:9]


def test_a_column_that_has_a_dictionary_in_some_batches_alone_is_joined():
    columns = [pa.array(["a", "b"]), indexed([1, None, 0], ["c", "d"])]
    for parts in (columns, columns[::-1]):
        joined = joined_batches([pa.record_batch({"t": each}) for each in parts])
        assert joined.column("t").to_pylist() == [value for each in parts for value in each.to_pylist()]


def test_rows_without_dictionaries_are_the_same_for_any():
    one, other = (pa.record_batch({"n": pa.array(["b", "a"]).dictionary_encode()}) for _ in range(2))
    other = joined_batches(
        [pa.record_batch({"n": indexed([0], ["b"])}), pa.record_batch({"n": indexed([1], ["c", "a"])})]
    )
    assert decoded(one).equals(decoded(other))


def test_one_row_with_a_long_key_is_no_error(tmp_path):
    """Where the dictionary of a column is full, batches of a row group have different dictionaries.

    A text that is too long for a key is a null, and Arrow joins no dictionaries with a null.
    """
    rows = 300_000
    keys = [f"key{number % 7000:07d}" for number in range(rows)]
    keys[-8000:] = [f"new{number:07d}" for number in range(8000)]
    for length, nulls in ((10, 0), (300, 1)):
        keys[rows // 2] = "z" * length
        table = pa.table({"u": np.arange(rows), "g": keys, "x": np.zeros(rows)})
        path = tmp_path / f"{length}.parquet"
        pq.write_table(table, path, dictionary_pagesize_limit=100_000)
        source = open_source(str(path), ["x"], "u")
        (descriptor,) = list_row_groups(source.files[0])
        read = pq.ParquetFile(path, read_dictionary=["g"]).iter_batches(1 << 14)
        assert len({len(batch.column("g").dictionary) for batch in read}) > 1  # or else this tests nothing
        ((batch, _),) = read_keyed(descriptor, ["x"], "u", bytes(16), rows, groups=["g"])
        assert len(batch) == rows
        assert sum(key is None for key in batch.column("g").to_pylist()) == nulls
