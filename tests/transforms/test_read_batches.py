"""What is in memory at once is bounded by bytes, not by rows; and used columns alone are decoded."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.transforms.tables import write
from transforms.list_files import File, InputError
from transforms.read_batches import count_rows, read_batches

MEASURE = """
import resource, sys
from core.domain import Grid
from transforms.bound_units import Bounding, bound_in_memory
from transforms.evaluate_subsamples import split_rows
from transforms.open_source import open_source
from transforms.read_blocks import list_row_groups
from transforms.split_units import Splitting

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

source = open_source(sys.argv[1], ["x"], "u")
before = peak()
bounding = Bounding.of(source, Grid((0.0,), (1.0,), 0.25), "one", bytes(16))
units = sum(len(block.ids) for block in bound_in_memory(source, bounding))
splitting = Splitting(("x",), "u", 20, bytes(16))
parts = [part for d in list_row_groups(source.files[0]) for part in split_rows(splitting, d)]
print(units, peak() - before)
"""
WAYS = {
    "plain": ({"use_dictionary": False}, 130, 130),
    "a dictionary, then plain": ({}, 130, 130),
    "a dictionary": ({"dictionary_pagesize_limit": 1 << 30}, 10, 3000),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_long_texts_as_units_take_a_bounded_number_of_bytes(tmp_path: Path, way: str) -> None:
    """130 texts of 3 MB, or 3,000 rows of 10 of them: 1.4 GB and 18 GB, were all of them held at once."""
    options, texts, rows = WAYS[way]
    schema = pa.schema([("u", pa.string()), ("x", pa.float64())])
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, schema, compression="zstd", write_batch_size=1, **options) as writer:
        group = pa.chunked_array([pa.array([f"{i:03}" + "x" * (3 << 20)]) for i in range(texts)])
        if rows > texts:
            one = group.combine_chunks()
            group = pa.chunked_array([one] * (rows // texts))
        writer.write_table(pa.table({"u": group, "x": np.zeros(rows)}, schema), row_group_size=rows)
    assert count_rows(File(str(path), "a")) == [rows]
    said = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True, timeout=300
    )
    units, megabytes = map(int, said.stdout.split())
    assert units == texts
    assert megabytes < 300


def batches(path: Path, used: list[str], most: int = 1000, **more: object) -> list[pa.RecordBatch]:
    return list(read_batches(File(str(path), path.name), 0, used, most, **more))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.binary(3)], ids=str)
def test_a_unit_is_the_same_however_it_is_written(tmp_path: Path, kind: pa.DataType) -> None:
    """The first rows are null, and the dictionary is full before the last: Arrow is asked for both ways."""
    units = pa.array([None, None, *(f"{i % 300:03}" for i in range(3000))]).cast(kind)
    for number, options in enumerate(
        ({}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 300}, {"data_page_version": "2.0"})
    ):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"u": units, "x": np.arange(3002.0)}), path, **options)
        for most in (7, 1000, 10_000):
            read = batches(path, ["x"], most, unit="u")
            assert [len(batch) for batch in read[:-1]] == [most] * (len(read) - 1)
            assert pa.concat_arrays([b["u"].cast(kind) for b in read]).equals(units)
            assert np.concatenate([b["x"].to_numpy() for b in read]).tolist() == list(range(3002))


def test_no_other_column_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=[1.0], y=["text"], u=["me"])
    assert [b.schema.names for b in batches(path, ["x"])] == [["x"]]
    assert [set(b.schema.names) for b in batches(path, ["x"], unit="u")] == [{"x", "u"}]
    assert [b.schema.names for b in batches(path, ["x"], every=True)] == [["x", "y", "u"]]


def test_a_file_that_changed_since_it_was_listed_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=["1"], y=[1])
    with pytest.raises(InputError, match=r"^input\.columns: x is string in a\.parquet; used columns must be"):
        batches(path, ["x"])
    with pytest.raises(InputError, match=r"^input\.columns: z is missing from a\.parquet"):
        batches(path, ["z"])
    with pytest.raises(InputError, match=r"^input\.path: a\.parquet can no longer be read, or is damaged\.$"):
        list(read_batches(File(str(path), "a.parquet"), 3, ["y"], 10))
    path.unlink()
    with pytest.raises(InputError, match=r"can no longer be read"):
        batches(path, ["y"])
