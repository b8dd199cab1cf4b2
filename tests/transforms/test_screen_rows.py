import os
import traceback
from datetime import datetime
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

from core.balls import Balls
from core.domain import Grid
from core.errors import error_in
from tests.transforms.tables import UNIT_SQUARE, write, write_points
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import InputError, open_source
from transforms.read_batches import _is_sound, read_batches
from transforms.read_blocks import ReadBlocks, Reader, list_row_groups
from transforms.screen_rows import (
    INSIDE,
    OUTSIDE,
    OutputError,
    Screen,
    ScreenRows,
    file_name,
    screen_row_group,
)

BALL = Balls(np.array([[512, 512]]), np.array([150]))
LINE = Grid((0.0,), (100.0,), 0.5)


def screen(path: Path, output: Path, columns: tuple[str, ...] = ("x", "y"), grid: Grid = UNIT_SQUARE) -> None:
    """Screen by a ball about the middle of the grid: the twin of the transform."""
    source = open_source(str(path), columns)
    middle = np.array([grid.bounding_center])
    screening = Screen(
        Reader.of(source, grid), BALL if grid is UNIT_SQUARE else Balls(middle, np.array([10]))
    )
    for file in source.files:
        for descriptor in list_row_groups(file):
            assert screen_row_group(descriptor, screening, str(output)) == ()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def rows(folder: Path) -> pa.Table:
    """Read all files in order; a column of a file without rows may be without a type."""
    files = sorted(folder.rglob("*.parquet"))
    return pa.concat_tables([pq.ParquetFile(path).read() for path in files], promote_options="permissive")


def test_every_row_is_on_its_side_once_with_all_columns(tmp_path: Path) -> None:
    path = write_points(tmp_path / "rows", [300, 0, 2000], 3)
    screen(path, tmp_path / "out")
    before = rows(path)
    inside, outside = rows(tmp_path / "out" / INSIDE), rows(tmp_path / "out" / OUTSIDE)
    assert inside.schema == outside.schema == before.schema
    x, y = (before[name].to_numpy().astype(float) for name in ("x", "y"))
    steps = np.rint(np.clip(np.stack([x, y]), 0, 1) * 1024) - 512
    held = (steps**2).sum(axis=0) <= 150**2  # NaN is not
    assert 100 < held.sum() < 2200
    assert str(inside.to_pylist()) == str(before.filter(held).to_pylist())  # as text NaN equals itself
    assert str(outside.to_pylist()) == str(before.filter(~held).to_pylist())


def test_ids_of_columns_and_what_must_be_there_stay(tmp_path: Path) -> None:
    """Tables such as those of Iceberg know columns by their ids."""
    fields = [("x", pa.float64(), False), ("t", pa.string(), False), ("u", pa.string(), True)]
    schema = pa.schema(
        [pa.field(*each, {"PARQUET:field_id": str(number)}) for number, each in enumerate(fields, start=1)]
    )
    pq.write_table(pa.table([[1.0, 50.0], ["a", "b"], [None, "c"]], schema=schema), tmp_path / "rows.parquet")
    screen(tmp_path / "rows.parquet", tmp_path / "out", ("x",), LINE)
    for path in (tmp_path / "out").rglob("*.parquet"):
        assert pq.read_schema(path).equals(schema, check_metadata=True)


def test_names_follow_from_file_and_row_group_alone(tmp_path: Path) -> None:
    path = write_points(tmp_path / "rows", [300, 0], 3)
    screen(path, tmp_path / "out")
    names = [
        "day=0/part-00000.parquet",
        "day=0/part-00001.parquet",
        "day=0/part-00002.parquet",
        "day=1/part-00000.parquet",
    ]
    assert list(contents(tmp_path / "out")) == [
        f"{side}/{name}" for side in (INSIDE, OUTSIDE) for name in names
    ]
    for place in (tmp_path / "out").rglob("*"):
        assert place.stat().st_mode & 0o077 == 0, f"others may see {place}"


def test_other_columns_pass_through_whatever_their_type(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": pa.array([50, None, 99], pa.int16()),
            "list": [[1, 2], None, []],
            "nested": [{"a": "ü", "b": None}, None, {"a": "", "b": 2}],
            "code": pa.array(["p", "q", "p"]).dictionary_encode(),
            "when": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
            "price": pa.array([1, None, 3], pa.decimal128(20, 2)),
            "local": pa.array([1, 2, None], pa.timestamp("ns", "Europe/Paris")),
            "took": pa.array([1, 2, None], pa.duration("s")),
            "long": pa.array(["a", "b", None], pa.large_string()),
            "few": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2)),
        }
    ).replace_schema_metadata({"source": "somewhere"})
    (tmp_path / "rows").mkdir()
    pq.write_table(table, tmp_path / "rows" / "a.parquet")
    screen(tmp_path / "rows", tmp_path / "out", ("x",), LINE)
    before = rows(tmp_path / "rows")
    for side, kept in ((INSIDE, before.slice(0, 1)), (OUTSIDE, before.slice(1))):
        found = rows(tmp_path / "out" / side)
        assert found.schema.equals(before.schema, check_metadata=True)
        assert found.to_pylist() == kept.to_pylist()


_BYTES = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array([b"k", b"\xff"]))
_FEW = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
_SECONDS = pa.array([0, 2**62, 1], pa.int64()).view(pa.timestamp("s"))
ODD = {
    "a vector that is missing": _FEW,
    "an extension of it": pa.ExtensionArray.from_storage(pa.opaque(_FEW.type, "t", "v"), _FEW),
    "a category that is not UTF-8": pa.DictionaryArray.from_arrays(
        _BYTES.indices, _BYTES.dictionary.view(pa.string())
    ),
    "a category in an extension": pa.ExtensionArray.from_storage(pa.opaque(_BYTES.type, "t", "v"), _BYTES),
    "a text of views": pa.array(["k", "k" * 300, None], pa.string_view()),
    "bytes of views": pa.array([b"k", b"k" * 300, None], pa.binary_view()),
    "text that is not UTF-8": pa.array([b"k", b"\xff", None]).view(pa.string()),
    "a record that is missing": pa.array([{"a": 1}, None, {"a": None}]),
    "a map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "a half": pa.array([1.0, 2.0, None], pa.float16()),
}


@pytest.mark.parametrize("name", ODD)
def test_no_value_of_another_column_ends_a_screening(tmp_path: Path, name: str) -> None:
    """Arrow itself cannot read some of these files as the types that they say."""
    column = ODD[name]
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.table({"x": [50.0, 99.0, 50.0], "odd": column}), tmp_path / "rows" / "a.parquet")
    screen(tmp_path / "rows", tmp_path / "out", ("x",), LINE)
    for side, kept in ((INSIDE, [0, 2]), (OUTSIDE, [1])):
        (path,) = (tmp_path / "out" / side).rglob("*.parquet")
        content = path.read_bytes().replace(b"ARROW:schema", b"arrow:schema")
        found = pq.read_table(pa.BufferReader(content)).column("odd")
        before = (tmp_path / "rows" / "a.parquet").read_bytes().replace(b"ARROW:schema", b"arrow:schema")
        assert found.equals(pq.read_table(pa.BufferReader(before)).column("odd").take(kept))


@pytest.mark.parametrize("inside", [False, True])
def test_a_long_text_is_in_memory_once(tmp_path: Path, inside: bool) -> None:
    """A file has it once in a dictionary, however many rows have it, or however often one row."""
    text, many = "y" * 100_000, 2_000
    lists = pa.array([[text] * many if inside else [text]] + [[text]] * 1_999)
    column = lists if inside else lists.flatten()
    (tmp_path / "rows").mkdir()
    table = pa.table({"x": [50.0] * 2_000, "odd": column})
    pq.write_table(table, tmp_path / "rows" / "a.parquet", dictionary_pagesize_limit=1 << 24)
    del table, column, lists
    before = pa.default_memory_pool().max_memory()
    screen(tmp_path / "rows", tmp_path / "out", ("x",), LINE)
    assert pa.default_memory_pool().max_memory() == before  # as writing the table took 200 MB or more
    found = pq.read_table(next((tmp_path / "out" / INSIDE).rglob("*.parquet")), read_dictionary=["odd"])
    assert found.num_rows == 2_000


@pytest.mark.parametrize("inside", [False, True])
def test_texts_that_differ_are_not_held_together(tmp_path: Path, inside: bool) -> None:
    """A dictionary that became too large for its writer grows with the rows where Arrow keeps it."""
    texts = pa.array([f"{number:0200d}" for number in range(300_000)])
    column = pa.ListArray.from_arrays(np.arange(len(texts) + 1, dtype=np.int32), texts) if inside else texts
    (tmp_path / "rows").mkdir()
    path = tmp_path / "rows" / "a.parquet"
    pq.write_table(pa.table({"x": np.full(len(texts), 50.0), "odd": column}), path)
    source = open_source(str(tmp_path / "rows"), ("x",))
    batches = list(read_batches(source.files[0], 0, ("x",), 1 << 16, every=True))
    assert sum(map(len, batches)) == len(texts)
    assert not any("dictionary" in str(batch.schema.field("odd").type) for batch in batches)


@pytest.mark.parametrize("index", [7, 1, -1])
def test_a_damaged_index_inside_of_a_list_is_no_row(index: int) -> None:
    codes = pa.array([0, index], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["a"]), safe=False)
    whole = pa.array([0, 1, 2], pa.int32())
    assert not _is_sound(column) and not _is_sound(pa.ListArray.from_arrays(whole, column))
    record = pa.StructArray.from_arrays([column], names=["a"])
    assert not _is_sound(record) and not _is_sound(pa.ListArray.from_arrays(whole, record))
    sound = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int32()), pa.array(["a"]))
    assert _is_sound(pa.ListArray.from_arrays(whole, pa.StructArray.from_arrays([sound], names=["a"])))
    assert _is_sound(pa.MapArray.from_arrays(whole, pa.array(["k", "l"]), sound))
    assert not _is_sound(pa.MapArray.from_arrays(whole, pa.array(["k", "l"]), column))


@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf])
def test_a_row_that_is_no_record_is_outside_and_one_beyond_the_domain_is_clamped(
    tmp_path: Path, bad: float | None
) -> None:
    write(tmp_path / "rows" / "a.parquet", x=[50.0, bad, 1e300, 45.0, -3.0])
    source = open_source(str(tmp_path / "rows"), ["x"])
    (descriptor,) = list_row_groups(source.files[0])
    at_the_end = Balls(np.array([[200], [100]]), np.array([0, 4]))
    screen_row_group(descriptor, Screen(Reader.of(source, LINE), at_the_end), str(tmp_path / "out"))
    assert rows(tmp_path / "out" / INSIDE)["x"].to_pylist() == [50.0, 1e300]
    outside = rows(tmp_path / "out" / OUTSIDE)["x"].to_pylist()
    assert outside[1:] == [45.0, -3.0]
    assert outside[0] is bad or np.isnan(outside[0]) or outside[0] == bad


def test_what_is_written_can_be_the_input_of_a_job(tmp_path: Path) -> None:
    path = write_points(tmp_path / "rows", [300, 5], 3)
    screen(path, tmp_path / "out")
    source = open_source(str(tmp_path / "out" / OUTSIDE), ["x", "y"])
    assert len(source.files) == 6


def test_a_step_that_runs_again_leaves_the_same_files_and_no_drafts(tmp_path: Path) -> None:
    path = write_points(tmp_path / "rows", [300, 0, 500], 3)
    screen(path, tmp_path / "once")
    for _ in range(2):
        screen(path, tmp_path / "twice")
    assert contents(tmp_path / "twice") == contents(tmp_path / "once")


def test_a_step_that_ended_while_it_wrote_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_points(tmp_path / "rows", [300], 1)
    screen(path, tmp_path / "whole")

    def end(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(os, "link", end)
        with pytest.raises(KeyboardInterrupt):
            screen(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {}
    screen(path, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_the_transform_writes_what_its_twin_writes(tmp_path: Path) -> None:
    path = write_points(tmp_path / "rows", [300, 0, 500], 3)
    screen(path, tmp_path / "twin")
    source = open_source(str(path), ["x", "y"])
    rows_ = ScreenRows(Screen(Reader.of(source, UNIT_SQUARE), BALL), str(tmp_path / "out"))
    options = PipelineOptions(["--direct_runner_bundle_repeat=2"])
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        assert_that(pipeline | ReadBlocks(source) | rows_, equal_to([]))
    assert contents(tmp_path / "out") == contents(tmp_path / "twin")


def test_a_damaged_row_group_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=np.random.default_rng(0).random(1000))
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        screen(path, tmp_path / "out", ("x",), LINE)
    sentence = "input.path: a.parquet can no longer be read, or is damaged."
    assert str(caught.value) == sentence
    assert error_in("".join(traceback.format_exception(caught.value))) == (1, sentence)
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    path = write_points(tmp_path / "rows", [30], 1)
    (tmp_path / "out").write_text("taken")
    with pytest.raises(OutputError, match=r"part-00000\.parquet cannot be written \(.+\)\."):
        screen(path, tmp_path / "out")


def test_a_name_that_is_not_parquet_is_kept_whole(tmp_path: Path) -> None:
    write(tmp_path / "rows" / "a.pq", x=[1.0])
    (descriptor,) = list_row_groups(open_source(str(tmp_path / "rows" / "a.pq"), ["x"]).files[0])
    assert file_name(descriptor) == "a.pq-00000.parquet"


@pytest.mark.parametrize("store_schema", [True, False])
def test_timestamps_of_any_year_keep_their_values(tmp_path: Path, store_schema: bool) -> None:
    """Spark writes INT96, which Arrow reads as nanoseconds by default: only of the years 1677 to 2262."""
    years = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2026, 1, 2, 3, 4, 5, 6)]
    table = pa.table({"x": [0.5] * 3, "y": [0.5] * 3, "t": pa.array(years, pa.timestamp("us"))})
    (tmp_path / "rows").mkdir()
    path = tmp_path / "rows" / "a.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, store_schema=store_schema)
    screen(tmp_path / "rows", tmp_path / "out")
    assert rows(tmp_path / "out" / INSIDE)["t"].to_pylist() == years
