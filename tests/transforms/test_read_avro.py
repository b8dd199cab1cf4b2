"""Avro files whose rows hold what their types do not allow, or more than fits: no other row changes."""

import io
import json
import tracemalloc
from decimal import Context
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from transforms import read_avro as read_avro_module
from transforms.list_files import File
from transforms.read_avro import read_avro, read_avro_schema

COLOR = {"type": "enum", "name": "Color", "symbols": ["red", "blue"]}
MANY = 10**7
CONTEXT = Context(prec=60)


def encoded(*parts: int | float | str) -> bytes:
    """Return the bytes of values, one after the other, as Avro stores them."""
    out = io.BytesIO()
    for part in parts:
        kind = {int: "long", float: "double", str: "string"}[type(part)]
        fastavro.schemaless_writer(out, fastavro.parse_schema({"type": kind}), part)
    return out.getvalue()


def write(path: Path, fields: dict[str, Any], rows: list[bytes]) -> File:
    """Write a container of rows that are stored already."""
    schema = {
        "type": "record",
        "name": "row",
        "fields": [{"name": n, "type": t} for n, t in fields.items()],
    }
    head = encoded(2, "avro.schema", json.dumps(schema), "avro.codec", "null", 0)
    body, sync = b"".join(rows), b"s" * 16
    path.write_bytes(b"Obj\x01" + head + sync + encoded(len(rows), len(body)) + body + sync)
    return File(str(path), path.name)


def read(file: File, *columns: str) -> pa.Table:
    with pa.OSFile(file.path) as opened:
        return pa.Table.from_batches(read_avro(file, opened, 0, columns))


@pytest.mark.parametrize("kind", [COLOR, [COLOR, "null"]])
def test_a_number_that_is_no_symbol_is_null(tmp_path: Path, kind: Any) -> None:
    place = [0] if isinstance(kind, list) else []  # in the union
    rows = [encoded(*place, number, 1.5) for number in (0, 1, 2, -1, 2**40)]
    file = write(tmp_path / "a.avro", {"color": kind, "x": "double"}, rows)
    assert read(file, "color", "x").column("color").to_pylist() == ["red", "blue", None, None, None]
    assert read(file, "x").to_pydict() == {"x": [1.5] * 5}
    assert read(file).num_rows == 5


def test_batches_are_of_bounded_bytes_and_a_row_beyond_them_is_one_of_nulls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more than 2^31 bytes Arrow makes no plain array, so one row more would have ended a run."""
    monkeypatch.setattr(read_avro_module, "_BYTES", 1000)
    monkeypatch.setattr(read_avro_module, "_LONGEST", 2000)
    texts = ["x" * size for size in (400, 500, 300, 1990, 1, 2100, 2)]
    file = write(tmp_path / "a.avro", {"t": "string", "x": "double"}, [encoded(t, 1.5) for t in texts])
    with pa.OSFile(file.path) as opened:
        batches = list(read_avro(file, opened, 0, ["t", "x"]))
    assert [batch.num_rows for batch in batches] == [3, 1, 2, 1]
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"t": None, "x": None} if len(t) == 2100 else {"t": t, "x": 1.5} for t in texts
    ]


def test_batches_are_of_bounded_bytes_where_a_short_number_stands_for_a_long_symbol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_avro_module, "_BYTES", 1000)
    long = COLOR | {"symbols": ["r" * 400, "b"]}
    file = write(tmp_path / "a.avro", {"c": [long, "null"], "x": "double"}, [encoded(0, 0, 1.5)] * 5)
    for column, batches in (("c", [["r" * 400] * 3, ["r" * 400] * 2]), ("x", [[1.5] * 5])):
        with pa.OSFile(file.path) as opened:
            read_ = list(read_avro(file, opened, 0, [column]))
        assert [batch.column(0).to_pylist() for batch in read_] == batches


def test_a_type_may_be_that_of_another_column(tmp_path: Path) -> None:
    """By its name, whether the column that has it in full is read or not."""
    word = {"type": "fixed", "name": "Word", "size": 2}
    fields = {
        "a": COLOR,
        "b": ["null", "Color"],
        "c": word,
        "d": "Word",
        "e": {"type": "map", "values": "Color"},
    }
    rows = [encoded(1, 1, 0) + b"abcd" + encoded(0), encoded(0, 0) + b"efgh" + encoded(1, "k", 7, 0)]
    file = write(tmp_path / "a.avro", fields, rows)
    assert read(file, "b", "d").to_pydict() == {"b": ["red", None], "d": [b"cd", b"gh"]}
    assert read(file, "d", "c", "a").to_pydict() == {
        "d": [b"cd", b"gh"],
        "c": [b"ab", b"ef"],
        "a": ["blue", "red"],
    }


@pytest.mark.parametrize("name", ["map", "array", "record", "fixed", "enum", "items"])
def test_an_enum_may_have_the_name_of_a_kind_of_type(tmp_path: Path, name: str) -> None:
    fields = {
        "e": COLOR | {"name": name},
        "m": {"type": "map", "values": "long"},
        "a": {"type": "array", "items": "long"},
        "f": {"type": "fixed", "name": "Word", "size": 2},
        "r": {"type": "record", "name": "Pair", "fields": [{"name": "q", "type": name}]},
        "x": "long",
    }
    rows = [encoded(1, 1, "k", 7, 0, 1, 8, 0) + b"ab" + encoded(0, 60)]
    file = write(tmp_path / "a.avro", fields, rows)
    assert read(file, "e", "f", "x").to_pydict() == {"e": ["blue"], "f": [b"ab"], "x": [60]}
    with pa.OSFile(file.path) as opened:
        assert read_avro_schema(file, opened).names == list(fields)


def test_a_column_that_is_not_read_takes_no_memory(tmp_path: Path) -> None:
    """A list of many nulls takes a few bytes of a file, and one of Python's objects for each in memory."""
    rows = [encoded(1, 0, 1.0), encoded(MANY, 0, 2.0)]
    file = write(tmp_path / "a.avro", {"nulls": {"type": "array", "items": "null"}, "x": "double"}, rows)
    tracemalloc.start()
    assert read(file, "x").to_pydict() == {"x": [1.0, 2.0]}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MANY


MEANINGS = {
    ("int", "date"): (pa.date32(), "1970-01-03"),
    ("int", "time-millis"): (pa.time32("ms"), "00:00:00.002000"),
    ("long", "time-micros"): (pa.time64("us"), "00:00:00.000002"),
    ("long", "timestamp-millis"): (pa.timestamp("ms", "UTC"), "1970-01-01T00:00:00.002000+00:00"),
    ("long", "timestamp-micros"): (pa.timestamp("us", "UTC"), "1970-01-01T00:00:00.000002+00:00"),
    ("long", "timestamp-nanos"): (pa.timestamp("ns", "UTC"), "1970-01-01T00:00:00.000000002+00:00"),
    ("long", "local-timestamp-millis"): (pa.timestamp("ms"), "1970-01-01T00:00:00.002000"),
    ("long", "local-timestamp-micros"): (pa.timestamp("us"), "1970-01-01T00:00:00.000002"),
    ("long", "local-timestamp-nanos"): (pa.timestamp("ns"), "1970-01-01T00:00:00.000000002"),
    ("long", "of another program"): (pa.int64(), "2"),
}


@pytest.mark.parametrize(("stored", "meaning"), MEANINGS)
def test_what_is_stored_has_the_meaning_that_avro_gives_it(tmp_path: Path, stored: str, meaning: str) -> None:
    """With the right unit and zone: the stored number is 2 everywhere."""
    kind, said = MEANINGS[stored, meaning]
    file = write(tmp_path / "a.avro", {"x": {"type": stored, "logicalType": meaning}}, [encoded(2)])
    with pa.OSFile(file.path) as opened:
        assert read_avro_schema(file, opened).field("x").type == kind
    (column,) = read(file, "x").columns
    assert column.type == kind
    told = column[0].as_py()
    assert (told.isoformat() if hasattr(told, "isoformat") else str(told)) == said


@pytest.mark.parametrize("digits", [1, 4, 38])
def test_a_decimal_has_at_most_the_digits_of_its_type(tmp_path: Path, digits: int) -> None:
    most = 10**digits - 1
    kind = {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": digits // 2}
    stored = [each.to_bytes(17, "big", signed=True) for each in (most, -most, most + 1, -most - 1, 0)]
    rows = [encoded(len(each)) + each for each in stored]
    found = read(write(tmp_path / "a.avro", {"x": kind}, rows), "x").column("x")
    assert found.type == pa.decimal128(digits, digits // 2)
    shown = [None if each is None else int(each.scaleb(digits // 2, CONTEXT)) for each in found.to_pylist()]
    assert shown == [most, -most, None, None, 0]


def test_what_is_of_several_types_or_has_too_many_digits_has_a_type_that_no_column_may_have(
    tmp_path: Path,
) -> None:
    long = {"type": "bytes", "logicalType": "decimal", "precision": 39}
    fields = {"several": ["null", "long", "string"], "long": long, "one": ["null", "long"]}
    file = write(tmp_path / "a.avro", fields, [encoded(0, 0) + encoded(0)])
    with pa.OSFile(file.path) as opened:
        kinds = dict(zip(fields, read_avro_schema(file, opened).types, strict=True))
    assert kinds == {"several": pa.struct([]), "long": pa.struct([]), "one": pa.int64()}


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 6, 7])
def test_each_row_is_read_once_however_many_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr("transforms.read_avro._ROWS", 3)
    file = write(tmp_path / "a.avro", {"x": "long"}, [encoded(number) for number in range(rows)])
    with pa.OSFile(file.path) as opened:
        batches = list(read_avro(file, opened, 0, ["x"]))
    assert [number for batch in batches for number in batch.column("x").to_pylist()] == list(range(rows))
    assert all(0 < len(batch) <= 3 for batch in batches)
    with pa.OSFile(file.path) as opened:
        assert sum(map(len, read_avro(file, opened, 0, []))) == rows
