"""What is in memory at once is bounded by bytes, not by rows; and used columns alone are decoded."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import transforms.open_source
import transforms.read_batches
from tests.transforms.tables import write
from transforms.list_files import File, InputError
from transforms.open_source import open_source
from transforms.read_batches import count_rows, first_rows, read_batches

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


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_file_that_is_written_again_ends_a_run(tmp_path: Path, when: str) -> None:
    """Passes of one round must read the same rows; see `core.focus`."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.arange(10.0)}), path)
    (file,) = open_source(str(path), ["x"]).files
    assert sum(batch.num_rows for batch in read_batches(file, 0, ["x"], 4)) == 10
    reading = read_batches(file, 0, ["x"], 4)
    if when == "while":
        next(reading)
    pq.write_table(pa.table({"x": np.arange(10.0)}), path)
    with pytest.raises(InputError, match=r"^input\.path: a\.parquet was written again during the run"):
        list(reading)
    path.unlink()
    with pytest.raises(InputError, match=r"^input\.path: a\.parquet was removed during the run"):
        list(read_batches(file, 0, ["x"], 4))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_is_replaced_by_one_without_pieces_ends_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """No piece of it is read, so only the listing of its pieces can find out."""
    path, rows = tmp_path / f"a.{ending}", pa.table({"x": np.arange(10.0)})
    opening = pq.ParquetWriter if ending == "parquet" else pa.ipc.new_file
    with opening(path, rows.schema) as writer:
        writer.write_table(rows)
    (file,) = open_source(str(path), ["x"]).files
    assert first_rows(file) == [0]
    with opening(path, rows.schema):
        pass
    (empty,) = open_source(str(path), ["x"]).files
    assert first_rows(empty) == []
    with pytest.raises(InputError, match=rf"^input\.path: a\.{ending} was written again during the run"):
        first_rows(file)
    versions = iter([empty.version, "another, since it was opened"])
    monkeypatch.setattr(transforms.read_batches, "version_of", lambda file: next(versions))
    with pytest.raises(InputError, match=rf"^input\.path: a\.{ending} was written again during the run"):
        first_rows(empty)


def written(path: Path) -> File:
    """Write ten rows as Parquet or Arrow, and return the file as it is opened."""
    rows = pa.table({"x": np.arange(10.0)})
    with (pq.ParquetWriter if path.suffix == ".parquet" else pa.ipc.new_file)(path, rows.schema) as writer:
        writer.write_table(rows)
    (file,) = open_source(str(path), ["x"]).files
    return file


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_is_replaced_by_a_pipe_ends_a_run(tmp_path: Path, ending: str) -> None:
    """To open a pipe is to wait for somebody who writes to it."""
    file = written(tmp_path / f"a.{ending}")
    os.unlink(file.path)
    os.mkfifo(file.path)
    for read in (lambda: first_rows(file), lambda: list(read_batches(file, 0, ["x"], 4))):
        with pytest.raises(InputError, match=rf"^input\.path: a\.{ending} was written again during the run"):
            read()


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_batches_that_are_cut_have_each_row_once(tmp_path: Path, ending: str) -> None:
    file = written(tmp_path / f"a.{ending}")
    found = [batch.column("x").to_pylist() for batch in read_batches(file, 0, ["x"], 4)]
    assert found == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0]]


@pytest.mark.parametrize("module", [transforms.open_source, transforms.read_batches])
def test_storage_that_fails_to_tell_a_version_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.arange(10.0)}), path)
    (file,) = open_source(str(path), ["x"]).files

    def fail(file: File) -> str:
        raise OSError("row 4711")

    monkeypatch.setattr(module, "version_of", fail)
    with pytest.raises(InputError, match=r"^input\.path: a\.parquet can(not| no longer) be") as error:
        open_source(str(path), ["x"])
        list(read_batches(file, 0, ["x"], 4))
    assert "4711" not in str(error.value)


def test_storage_that_fails_to_tell_a_version_of_a_file_without_pieces_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, pa.schema([("x", pa.float64())])):
        pass
    (file,) = open_source(str(path), ["x"]).files

    def fail(file: File) -> str:
        raise OSError("row 4711")

    monkeypatch.setattr(transforms.read_batches, "version_of", fail)
    with pytest.raises(InputError, match=r"^input\.path: a\.parquet can no longer be") as error:
        first_rows(file)
    assert "4711" not in str(error.value)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.binary(3)], ids=str)
def test_a_unit_is_the_same_however_it_is_written(tmp_path: Path, kind: pa.DataType) -> None:
    """The first rows are null, and the dictionary is full before the last: Arrow is asked for both ways."""
    units = pa.array([None, None, *(f"{i % 300:03}" for i in range(3000))]).cast(kind)
    for number, options in enumerate(
        (
            {},
            {"use_dictionary": False},
            {"dictionary_pagesize_limit": 300},
            {"data_page_version": "2.0"},
            {"use_dictionary": False, "column_encoding": {"u": "DELTA_BYTE_ARRAY"}},
            {"use_dictionary": False, "column_encoding": {"u": "DELTA_LENGTH_BYTE_ARRAY"}},
        )
    ):
        if kind == pa.binary(3) and "LENGTH" in str(options):
            continue  # not an encoding of values of one length
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"u": units, "x": np.arange(3002.0)}), path, **options)
        for most in (7, 1000, 10_000):
            read = batches(path, ["x"], most, unit="u")
            assert [len(batch) for batch in read[:-1]] == [most] * (len(read) - 1)
            assert pa.concat_arrays([b["u"].cast(kind) for b in read]).equals(units)
            assert np.concatenate([b["x"].to_numpy() for b in read]).tolist() == list(range(3002))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN", None])
def test_a_dictionary_of_any_encoding_is_read(tmp_path: Path, encoding: str | None) -> None:
    """Arrow alone cannot read what it can write here: a column that its own schema says is a dictionary."""
    path = tmp_path / "a.parquet"
    units = pa.array([None, "a", "b", "", "a"])
    when = pa.array([5, None, 3, -2, 0], pa.timestamp("ns"))
    table = pa.table({"u": units.dictionary_encode(), "x": np.arange(5.0), "t": when})
    given = {} if encoding is None else {"use_dictionary": False, "column_encoding": {"u": encoding}}
    pq.write_table(table, path, **given)
    read = batches(path, ["x"], 2, unit="u", order="t")
    assert pa.concat_arrays([batch["u"].cast(pa.string()) for batch in read]).equals(units)
    assert pa.concat_arrays([batch["t"] for batch in read]).equals(when)


def test_a_dictionary_of_numbers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    units = pa.array([7, None, 9, 7])
    pq.write_table(pa.table({"u": units.dictionary_encode(), "x": np.arange(4.0)}), path)
    read = batches(path, ["x"], unit="u")
    assert pa.concat_arrays([batch["u"] for batch in read]).equals(units)


def test_an_encoding_that_arrow_cannot_read_is_not_called_damaged_only(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [0.0, 1.0]}), path)

    def cannot(*_: object, **__: object) -> None:
        raise OSError("Not yet implemented: this encoding")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq.ParquetFile, "iter_batches", cannot)
        with pytest.raises(
            InputError, match=r"a\.parquet has an encoding or a compression that Arrow cannot"
        ):
            batches(path, ["x"])


def test_decimals_as_bytes_with_a_dictionary_are_units(tmp_path: Path) -> None:
    """A decimal of any size may be stored as bytes; Arrow writes 16 bytes, so the footer is changed."""
    path = tmp_path / "a.parquet"
    values = pa.array([i % 7 for i in range(50)], pa.int64())
    texts = pa.array([i.to_bytes(1, "big") for i in values.to_pylist()], pa.binary())
    pq.write_table(pa.table({"u": texts, "x": np.arange(50.0)}), path, store_schema=False)
    _call_bytes_decimals(path)
    assert pq.read_schema(path).field("u").type == pa.decimal128(4, 0)
    read = batches(path, ["x"], unit="u")
    assert pa.concat_arrays([b["u"] for b in read]).cast(pa.int64()).equals(values)


def _call_bytes_decimals(path: Path) -> None:
    """Give the column `u` the converted type DECIMAL of precision 4, scale 0, in the footer (Thrift)."""
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    # an element of the schema: type BYTE_ARRAY (field 1), repetition (3), name (4), end
    plain = b"\x15\x0c\x25\x02\x18\x01u\x00"
    assert footer.count(plain) == 1
    # further fields: converted_type DECIMAL (6), scale 0 (7), precision 4 (8)
    footer = footer.replace(plain, plain[:-1] + b"\x25\x0a\x15\x00\x15\x08\x00")
    path.write_bytes(data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("units", [range(9), [f"{i:03}" for i in range(9)]], ids=["integers", "text"])
@pytest.mark.parametrize("first", [True, False])
def test_a_unit_may_be_named_as_a_field_of_a_struct(tmp_path: Path, units: list[object], first: bool) -> None:
    path = tmp_path / "a.parquet"
    struct = pa.array([{"v": str(i) if isinstance(units[0], int) else i} for i in range(9)])
    columns = {"u": struct, "u.v": pa.array(list(units)), "x": np.arange(9.0)}
    pq.write_table(pa.table(columns if first else dict(reversed(columns.items()))), path)
    read = batches(path, ["x"], unit="u.v")
    assert [value for b in read for value in b["u.v"].to_pylist()] == list(units)


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


def test_a_row_group_with_fewer_rows_than_its_footer_says_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a pass would read other rows than the pass before, and nobody would know."""
    path = write(tmp_path / "rows.parquet", 30, x=list(range(30)))
    whole = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *a, **k: list(whole(*a, **k))[:-1])
    with pytest.raises(InputError, match=r"rows\.parquet can no longer be read, or is damaged\.$"):
        batches(path, ["x"], 10)


@pytest.mark.parametrize("unit", ["n", "u", None])
def test_footers_are_gone_with_their_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str | None
) -> None:
    """Of 2,000 row groups, 2 GB of footers stayed until Python collected cycles."""
    path = write(tmp_path / "a.parquet", 2, x=[1.0] * 9, n=list(range(9)), u=list("abcdefghi"))
    footers: list[weakref.ref[pq.FileMetaData]] = []

    def read(opened: pa.NativeFile) -> pq.FileMetaData:
        footer = pq.ParquetFile(opened).metadata
        footers.append(weakref.ref(footer))
        return footer

    monkeypatch.setattr(pq, "read_metadata", read)
    gc.disable()
    try:
        for row_group in range(5):
            file = File(str(path), path.name)
            assert list(read_batches(file, row_group, ["x"], 10, unit, every=unit is None))
    finally:
        gc.enable()
    assert len(footers) >= 5
    assert all(footer() is None for footer in footers)
