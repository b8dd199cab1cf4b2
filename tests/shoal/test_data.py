"""Whatever rows are given as, they are stored as they are, or refused in one sentence."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import JobError
from shoal.data import place_data
from tests.shoal.test_calls import Stream

INTERVALS = pa.array([None, None], pa.month_day_nano_interval())
"""Of a type that Parquet does not have."""


def stored(data: Any, folder: Path, **job: Any) -> pa.Table:
    return pq.read_table(place_data(data, str(folder / "data"), job))


def test_a_column_that_cannot_be_stored_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "odd": INTERVALS})
    assert stored(table, tmp_path, columns=["a", "oddity"]).column_names == ["a"]
    for job in ({"columns": ["odd"]}, {"input": {"where": "a > 1 and odd == 2"}}):
        with pytest.raises(JobError, match="data has a column 'odd' that Parquet cannot store"):
            stored(table, tmp_path, **job)


def test_categories_with_views_of_text_are_stored(tmp_path: Path) -> None:
    """As polars gives them."""
    views = pa.array(["x", "y"], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint32()), views)
    table = stored(Stream(pa.table({"a": column})), tmp_path)
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
    names = ["a.csv", "b.csv.gz", "c.parquet", "d", "e.jsonl"]
    for name in names:
        (tmp_path / name).touch()
    place = place_data([str(tmp_path / name) for name in names], str(tmp_path / "data"), {})
    assert sorted(name[6:] for name in os.listdir(place)) == [
        ".csv",
        ".csv.gz",
        ".jsonl",
        ".parquet",
        ".parquet",
    ]


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
    frame = pandas.DataFrame({"x": [1.5, None], "who": ["a", "b"], "odd": [1, "x"]}).set_index("who")
    table = stored(frame, tmp_path, columns=["x"])
    assert table.to_pydict() == {"x": [1.5, None], "who": ["a", "b"]}
    with pytest.raises(JobError, match="data has a column 'odd'"):
        stored(frame, tmp_path, columns=["odd"])


def test_a_frame_of_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1.5, None], "who": ["a", "b"]})
    frame = frame.with_columns(kind=polars.col("who").cast(polars.Categorical))
    expected = {"x": [1.5, None], "who": ["a", "b"], "kind": ["a", "b"]}
    assert stored(frame, tmp_path).to_pydict() == expected
