"""Whatever rows are given as, they are stored as they are, or refused in one sentence."""

import importlib
import os
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal.data
from pipelines.errors import JobError
from shoal.data import place_data
from tests.shoal.test_calls import Stream
from transforms import cut_batches

INTERVALS = pa.array([None, None], pa.month_day_nano_interval())
"""Of a type that Parquet does not have."""
CATEGORIES = pa.dictionary(pa.int8(), pa.string())


def stored(data: Any, folder: Path, **job: Any) -> pa.Table:
    return pq.read_table(place_data(data, str(folder / "data"), job))


def test_a_column_that_cannot_be_stored_is_refused_if_it_is_named(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "odd": INTERVALS})
    assert stored(table, tmp_path, columns=["a", "oddity"]).to_pydict() == {"a": [1, 2], "odd": [None, None]}
    for job in ({"columns": ["odd"]}, {"input": {"where": "a > 1 and odd == 2"}}):
        with pytest.raises(JobError, match="data has a column 'odd' that Parquet cannot store"):
            stored(table, tmp_path, **job)


def test_categories_with_views_of_text_are_stored(tmp_path: Path) -> None:
    """As polars gives them."""
    views = pa.array(["x", "y"], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint32()), views)
    table = stored(Stream(pa.table({"a": column})), tmp_path, input={"unit": "a"})
    assert table.column("a").to_pylist() == ["x", "y"]


def test_several_files_are_one_folder(tmp_path: Path) -> None:
    """In their order; links to files are followed, and names do not matter."""
    for name, value in (("b", 1), ("a", 2)):
        pq.write_table(pa.table({"x": [value]}), tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / "b")
    (tmp_path / "place").mkdir()
    files = [str(tmp_path / "link"), tmp_path / "a"]
    assert stored(files, tmp_path / "place").column("x").to_pylist() == [1, 2]


def test_files_keep_the_endings_that_say_their_formats(tmp_path: Path) -> None:
    names = ["a.csv", "b.CSV.gz", "c.parquet", "d", "e.jsonl"]
    for name in names:
        (tmp_path / name).touch()
    place = place_data([str(tmp_path / name) for name in names], str(tmp_path / "data"), {})
    assert sorted(os.listdir(place)) == [
        "data[0].csv",
        "data[1].csv.gz",
        "data[2].parquet",
        "data[3].parquet",
        "data[4].jsonl",
    ]


def test_files_whose_names_differ_by_their_endings_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "a.csv.gz"):
        (tmp_path / name).touch()
    files = [tmp_path / "a.csv", tmp_path / "a.csv.gz"]
    with pytest.raises(JobError, match=r"'a\.csv' and 'a\.csv\.gz', which may be the same rows twice"):
        place_data(files, str(tmp_path / "data"), {})


def test_many_files_keep_their_order(tmp_path: Path) -> None:
    for number in range(11):
        pq.write_table(pa.table({"x": [number]}), tmp_path / str(number))
    (tmp_path / "place").mkdir()
    files = [tmp_path / str(number) for number in range(11)]
    assert stored(files, tmp_path / "place").column("x").to_pylist() == list(range(11))


def test_files_that_cannot_be_linked_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    test_several_files_are_one_folder(tmp_path)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (7, "data is a builtins.int: give a table of pandas, polars or pyarrow, a path, or a list"),
        ({"x": [1]}, "data is a builtins.dict"),
        (pa.array([1]), "data is a pyarrow.lib.Int64Array"),
        (pa.table({"x": [1]}).to_reader(), "data is a pyarrow.lib.RecordBatchReader"),
        ([], "data is an empty list"),
        ([1], r"data\[0\] is 1: give the path of a local file"),
        (["gs://bucket/x.parquet"], r"data\[0\] is 'gs://bucket/x.parquet': give the path of a local"),
        (["nowhere.parquet"], r"data\[0\] is 'nowhere.parquet', which is not a file"),
        ([__file__, os.path.relpath(__file__)], r"data\[1\] is .*, the same file as data\[0\]"),
    ],
)
def test_other_data_is_refused(data: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=told):
        stored(data, tmp_path)


def test_a_frame_of_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.5, None], "who": ["a", "b"], "odd": [1j, 2j]}).set_index("who")
    table = stored(frame, tmp_path, columns=["x"], unit="who")
    assert table.to_pydict() == {"x": [1.5, None], "odd": [None, None], "who": ["a", "b"]}
    with pytest.raises(JobError, match="data has a column 'odd'"):
        stored(frame, tmp_path, columns=["odd"])


OBJECTS = [7, 3.5, 2**70, "a", "\ud800", b"b", Decimal("1E+80"), date(2020, 1, 2), None, {}, [1, 2]]
TEXTS = ["7", "3.5", str(2**70), "a", None, "b'b'", "1E+80", "2020-01-02", None, "{}", "[1, 2]"]


def test_an_object_of_pandas_is_a_text_whatever_the_others_are(tmp_path: Path) -> None:
    """So neither the type nor an error follows from values."""
    pandas = pytest.importorskip("pandas")
    np = pytest.importorskip("numpy")
    objects = [*OBJECTS, float("nan"), pandas.NA, pandas.NaT, np.int64(5), Silent(), 10**5000]
    texts = [*TEXTS, None, None, None, "5", None, None]
    alone = zip(([each] for each in objects), ([each] for each in texts), strict=True)
    for number, (values, expected) in enumerate([(objects, texts), *alone]):
        (tmp_path / str(number)).mkdir()
        frame = pandas.DataFrame({"u": pandas.Series(values, dtype=object)})
        table = stored(frame, tmp_path / str(number), input={"unit": "u"})
        assert table.schema.field("u").type == pa.large_string()
        assert table.column("u").to_pylist() == expected


@pytest.mark.parametrize("values", [["a", 7, 3.5], [1, 2], ["a", "\ud800"]])
def test_categories_of_objects_are_texts(tmp_path: Path, values: list[Any]) -> None:
    pandas = pytest.importorskip("pandas")
    kind = pandas.CategoricalDtype(pandas.Index(values, dtype=object))
    frame = pandas.DataFrame({"u": pandas.Categorical.from_codes([0, 1, 1], dtype=kind)})
    table = stored(frame, tmp_path, input={"unit": "u"})
    assert table.schema.field("u").type == pa.large_string()
    texts = [None if each == "\ud800" else str(each) for each in values]
    assert table.column("u").to_pylist() == [texts[0], texts[1], texts[1]]


def test_an_axis_of_objects_is_refused_by_its_dtype(tmp_path: Path) -> None:
    """Of no rows, too; a column that the job does not name is not read."""
    pandas = pytest.importorskip("pandas")
    for values in ([1, 2], [1, "SECRET"], []):
        frame = pandas.DataFrame({"x": pandas.Series(values, dtype=object)})
        for job in ({"input": {"columns": ["x"]}}, {"questions": {"q": {"columns": ["x"]}}}):
            with pytest.raises(JobError, match="'x' of Python objects, which are read as text: convert"):
                stored(frame, tmp_path, **job)
        assert stored(frame, tmp_path, input={"columns": ["y"]}).column("x").null_count == len(values)


class Silent:
    """An object that has no text."""

    def __str__(self) -> str:
        raise KeyError("SECRET")


def test_a_time_that_parquet_cannot_store_is_null(tmp_path: Path) -> None:
    whole, clock = pa.timestamp("s", "UTC"), pa.time32("s")
    table = pa.table(
        {
            "t": pa.array([0, 2**63 - 1, -(2**63), None, (2**63 - 1) // 1000], pa.int64()).view(whole),
            "c": pa.array([0, 86_400, -1, None, 86_399], pa.int32()).view(clock),
        }
    )
    found = stored(table, tmp_path, columns=["t", "c"])
    assert found.column("t").cast(pa.int64()).to_pylist() == [0, None, None, None, 2**63 - 1 - 807]
    assert found.column("c").cast(pa.int32()).to_pylist() == [0, None, None, None, 86_399_000]


def test_no_error_has_another_in_its_traceback(tmp_path: Path) -> None:
    """That of Arrow may quote a value."""
    tables: list[Any] = [pa.table({"x": INTERVALS})]
    with suppress(ImportError):
        tables.append(importlib.import_module("pandas").DataFrame({"x": [1j]}))
    for table in tables:
        with pytest.raises(JobError) as refused:
            stored(table, tmp_path, columns=["x"])
        assert refused.value.__context__ is None


def test_a_frame_of_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1.5, None], "who": ["a", "b"]})
    frame = frame.with_columns(kind=polars.col("who").cast(polars.Categorical))
    expected = {"x": [1.5, None], "who": ["a", "b"], "kind": ["a", "b"]}
    assert stored(frame, tmp_path, columns=["x", "who", "kind"]).to_pydict() == expected


@pytest.mark.parametrize("values", [["a", "b", "a"], ["a", None, "b"], [None, None, None]])
def test_a_dictionary_may_hold_a_null(tmp_path: Path, values: list[str | None]) -> None:
    """Parquet stores none that does, and whether one does depends on rows."""
    column = pa.array(values, pa.string()).dictionary_encode(null_encoding="encode")
    sliced = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    bytes_ = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.binary_view()))
    table = stored(
        pa.table({"whole": column, "parts": sliced, "bytes": bytes_}), tmp_path, unit="whole parts bytes"
    )
    assert table.column("whole").to_pylist() == table.column("parts").to_pylist() == values
    assert table.column("bytes").to_pylist() == [each and each.encode() for each in values]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.string_view(), CATEGORIES], ids=str)
def test_long_texts_are_stored_in_small_pages_or_as_nulls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType
) -> None:
    """Arrow puts 1,024 rows into a page before it looks at its size, and fails if that has no 31 bits."""
    for module in (shoal.data, cut_batches):
        monkeypatch.setattr(module, "LONGEST", 20)
    monkeypatch.setattr(shoal.data, "_PAGE", 95)
    written, asked = pq.write_table, list[int]()

    def write(table: pa.Table, *where: Any, write_batch_size: int, **more: Any) -> None:
        asked.append(write_batch_size)
        written(table, *where, write_batch_size=write_batch_size, **more)

    monkeypatch.setattr(pq, "write_table", write)
    texts = ["a" * 20, None, "b" * 21, "c"]
    column = pa.chunked_array([pa.array(texts[:2], kind), pa.array(texts[2:], kind)])
    table = stored(pa.table({"a": column, "x": [1, 2, 3, 4]}), tmp_path, columns=["x", "a"])
    assert table.column("a").cast(pa.large_string()).to_pylist() == ["a" * 20, None, None, "c"]
    assert asked[-1] == 95 // 20


@pytest.mark.parametrize("kind", [pa.string(), pa.binary_view()], ids=str)
def test_long_texts_of_dictionaries_are_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType
) -> None:
    """Arrow writes one dictionary for each row group. Plain texts of another one may end the process."""
    monkeypatch.setattr(shoal.data, "_PAGE", 40)
    monkeypatch.setattr(shoal.data, "_ROW_GROUP", 4)
    written, seen = pq.write_table, list[pa.Table]()

    def write(table: pa.Table, *where: Any, **more: Any) -> None:
        seen.append(table)
        written(table, *where, **more)

    monkeypatch.setattr(pq, "write_table", write)
    values = pa.array([b"a" * 11, b"b", b"a" * 11, b"d"], pa.binary()).cast(pa.large_binary())
    if kind == pa.string():
        values = values.cast(pa.large_string())
    values = pa.array(values.to_pylist(), kind)
    given = [[0, None, 3], [2, 1, 0], [], [None] * 4, [1]]
    chunks = [pa.DictionaryArray.from_arrays(pa.array(each, pa.int8()), values.slice(0)) for each in given]
    other = pa.DictionaryArray.from_arrays(pa.array([1], pa.int8()), values.slice(2))
    column = pa.chunked_array([*chunks, other])
    table = stored(pa.table({"a": column, "x": range(len(column))}), tmp_path, columns=["x", "a"])
    expected = [b"a" * 11, None, b"d", b"a" * 11, b"b", b"a" * 11, *[None] * 4, b"b", b"d"]
    assert table.column("a").cast(pa.large_binary()).to_pylist() == expected
    assert [(len(each), len(each.dictionary)) for each in seen[-1].column("a").chunks] == [(4, 2)] * 3


SECONDS = pa.array([2**62, 0], pa.int64()).view(pa.timestamp("s"))
CODED = pa.array(["a", None]).dictionary_encode(null_encoding="encode")
NEGATIVE = pa.array([Decimal("1E+5"), None], pa.decimal128(5, -5))
ODD = {
    "seconds in a list": pa.array([[2**62], []], pa.list_(SECONDS.type)),
    "seconds in an extension": pa.ExtensionArray.from_storage(pa.opaque(SECONDS.type, "t", "v"), SECONDS),
    "a dictionary in an extension": pa.ExtensionArray.from_storage(pa.opaque(CODED.type, "t", "v"), CODED),
    "a dictionary in a record": pa.StructArray.from_arrays([CODED], names=["code"]),
    "a decimal of negative scale": NEGATIVE,
}


@pytest.mark.parametrize("name", ODD)
def test_whether_a_column_is_refused_follows_from_its_type_and_the_job(tmp_path: Path, name: str) -> None:
    """Parquet stores some values of these types, but not all."""
    column = ODD[name]
    for number, values in enumerate((column, pa.nulls(2, column.type), column.slice(0, 0))):
        table = pa.table({"x": [1, 2][: len(values)], "odd": values})
        (tmp_path / str(number)).mkdir()
        unused = stored(table, tmp_path / str(number), columns=["x"])
        assert unused.column("odd").null_count == len(values) and unused.column_names == ["x", "odd"]
        with pytest.raises(JobError, match="data has a column 'odd' that Parquet cannot store"):
            stored(table, tmp_path, unit="odd")


def test_an_index_of_objects_has_the_type_of_objects(tmp_path: Path) -> None:
    """Pandas chooses another type for a column of it where all values have one."""
    pandas = pytest.importorskip("pandas")
    times = [pandas.Timestamp("2020-01-01T12:00")] * 2
    for values in (times, [times[0], "unknown"], []):
        index = pandas.Index(values, dtype=object, name="when")
        frame = pandas.DataFrame({"x": range(len(values))}, index=index)
        table = stored(frame, tmp_path, columns=["x"], unit="when")
        assert table.schema.field("when").type == pa.large_string()
        assert table.column("when").to_pylist() == [str(value) for value in values]


def test_a_dictionary_of_arrow_in_pandas_may_hold_a_null(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"code": pandas.Series(pandas.arrays.ArrowExtensionArray(CODED))})
    assert stored(frame, tmp_path, unit="code").column("code").to_pylist() == ["a", None]


def test_a_name_of_an_expression_may_be_normalized(tmp_path: Path) -> None:
    """As Python does it: an e and an accent are the name of a column with the letter of both."""
    table = stored(pa.table({"r\u00e9gion": [1]}), tmp_path, where="re\u0301gion == 1")
    assert table.to_pydict() == {"r\u00e9gion": [1]}


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device: SECRET")

    monkeypatch.setattr("shoal.data.pq.write_table", full)
    monkeypatch.setattr("shoal.data._is_storable", lambda _: True)
    told = r"data cannot be stored in .*, whose disk is full or failed"
    with pytest.raises(JobError, match=told) as refused:
        stored(pa.table({"x": [1]}), tmp_path, columns=["x"])
    assert refused.value.__context__ is None
