"""Batches are cut where their texts take many bytes, and no row is another one for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from tests.transforms.tables import write
from transforms import cut_batches as cutting
from transforms.cut_batches import cut_batch
from transforms.group_keys import GroupKeys
from transforms.join_table import open_join
from transforms.list_files import File
from transforms.parse_expression import parse_expression
from transforms.preparation import Preparation
from transforms.read_blocks import Descriptor, Reader, read_blocks
from transforms.read_prepared import read_prepared
from transforms.split_units import Splitting, read_split

TEXTS = ["a" * 9, None, "", "b" * 30, "c" * 31, "d" * 5, "a" * 9, "e" * 90, "é" * 15, "f" * 29]
KINDS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "LONGEST", 30)
    monkeypatch.setattr(cutting, "TOGETHER", 40)


def given(kind: pa.DataType, index: pa.DataType | None, texts: list[Any] = TEXTS) -> pa.Array:
    """Return texts, perhaps as a dictionary with a null, a value that no row has, and one twice."""
    plain = pa.array(texts, pa.string()).cast(pa.large_binary())
    if index is None:
        return plain.cast(pa.large_string()).cast(kind) if kind != pa.large_binary() else plain
    values = [*texts, "z" * 20, "a" * 9]
    places = pa.array([len(values) - 1 if place == 6 else place for place in range(len(texts))], index)
    return pa.DictionaryArray.from_arrays(places, given(kind, None, values))


def listed(column: pa.Array) -> list[Any]:
    decoded = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return list(decoded.cast(pa.large_binary()).to_pylist())


@pytest.mark.parametrize("index", [None, pa.int8(), pa.uint16(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("start", [0, 1])
def test_texts_stay_but_long_ones_and_take_few_bytes(kind: Any, index: Any, start: int) -> None:
    column = given(kind, index).slice(start)
    batch = pa.RecordBatch.from_arrays([pa.array(range(len(column))), column], names=["x", "t"])
    parts = list(cut_batch(batch))
    assert [x for part in parts for x in part["x"].to_pylist()] == list(range(len(column)))
    found = [text for part in parts for text in listed(part["t"])]
    assert found == [
        None if text is None or len(text.encode()) > 30 else text.encode() for text in TEXTS[start:]
    ]
    assert len(parts) > 1
    for part in parts:
        own = part["t"]
        part.validate(full=True)
        assert sum(len(text or b"") for text in listed(own)) <= 40
        if index is not None:
            assert own.type.index_type == index
            assert len(own.dictionary) <= len(part)
        assert not any("view" in str(each) for each in (own.type, getattr(own.type, "value_type", "")))


class Marked(pa.ExtensionType):
    """A type as programs make them, which has no hash."""

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.int64()], ids=str)
def test_texts_may_have_a_type_of_a_program(kind: pa.DataType) -> None:
    stored = pa.array([1, 2]) if kind == pa.int64() else given(kind, None)
    column = pa.ExtensionArray.from_storage(Marked(kind, "marked"), stored)
    parts = list(cut_batch(pa.RecordBatch.from_arrays([column], names=["t"])))
    assert all(part["t"].type == column.type for part in parts)
    if kind != pa.int64():
        found = [text for part in parts for text in listed(part["t"].storage)]
        assert found == [None if text is None or len(text.encode()) > 30 else text.encode() for text in TEXTS]


def test_texts_of_any_length_stay_where_they_are_written_again() -> None:
    for kind in KINDS:
        batch = pa.RecordBatch.from_arrays([given(kind, None)], names=["t"])
        found = [text for part in cut_batch(batch, every=True) for text in listed(part["t"])]
        assert found == [None if text is None else text.encode() for text in TEXTS]


def test_short_texts_and_no_rows_are_as_they_were() -> None:
    short = pa.RecordBatch.from_arrays([pa.array(["a", None]), pa.array([1, 2])], names=["t", "x"])
    (part,) = cut_batch(short)
    assert part.equals(short)
    empty = pa.RecordBatch.from_arrays([given(pa.string_view(), None).slice(0, 0)], names=["t"])
    (part,) = cut_batch(empty, beside=50)
    assert part["t"].type == pa.large_string() and len(part) == 0


@pytest.mark.parametrize("texts", [["a", "b"], TEXTS])
def test_what_a_schema_says_of_columns_stays(texts: list[Any]) -> None:
    kinds = (pa.string(), None in texts, {"id": "1"}), (pa.binary(), True, {"id": "2"})
    fields = [pa.field("t", *each) for each in kinds]
    schema = pa.schema(fields, {"of": "all"})
    batch = pa.RecordBatch.from_arrays([given(field.type, None, texts) for field in fields], schema=schema)
    for part in cut_batch(batch, every=True):
        assert part.schema.equals(schema, check_metadata=True)


def test_texts_of_a_joined_table_and_of_the_job_count(tmp_path: Path) -> None:
    """They are decoded beside other columns, once for each row that has them."""
    rows = write(tmp_path / "rows.parquet", k=[1, 2, 3, 1], t=["a", "b", "c", "d"])
    table = write(tmp_path / "table.parquet", k=[1, 2], long=["j" * 19, "i"], number=[1, 2])
    join = open_join(str(table), "k", ("long", "number"))
    file = File(str(rows), "rows.parquet")

    def sizes(**made: Any) -> list[int]:
        preparation = Preparation(join=join, **made)
        return [len(batch) for batch, _ in read_prepared(preparation, file, 0, ["number"], 100)]

    where = parse_expression("t != long")
    assert sizes(where=where) == [2, 2]
    assert sizes(where=parse_expression("number > 1")) == [4]
    assert sizes(derive=(("z", parse_expression(f"if(k > 1, '{'y' * 35}', t)")),)) == [1] * 4
    assert sizes(derive=(("z", parse_expression("long")),), where=parse_expression("z == t")) == [2, 2]


def test_blocks_and_what_is_split_do_not_follow_from_sizes(tmp_path: Path) -> None:
    """A row has one identity, and pieces of rows are of one number, however long its text is."""
    long = write(tmp_path / "long.parquet", x=np.arange(10.0), t=["g" * 25] * 9 + ["h"])
    short = write(tmp_path / "short.parquet", x=np.arange(10.0), t=["g"] * 9 + ["h"])
    keys = GroupKeys(("t",), (None,))
    grid = Grid((0.0,), (10.0,), 1.0)
    found = []
    for path in (long, short):
        descriptor = Descriptor(File(str(path), "rows"), 0, 0)
        blocks = list(read_blocks(Reader(("x",), grid, groups=keys), descriptor))
        ids = np.concatenate([block.ids for block in blocks])
        splitting = Splitting(("x",), None, 4, bytes(16), keys=keys)
        split = [
            (rows["x"].to_pylist(), own.to_pylist(), row)
            for rows, own, _, row in read_split(splitting, descriptor)
        ]
        found.append((ids.tolist(), split))
        assert (len(blocks) > 1) == (path == long) and len(split) == 1
    assert found[0] == found[1]
