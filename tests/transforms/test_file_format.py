"""The same rows are the same records, whatever the format of their files."""

import dataclasses
import gzip
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.domain import Grid
from core.labels import Labels
from core.times import Times
from tests.transforms.formats import WRITERS
from tests.transforms.tables import write
from transforms import read_lines
from transforms.bound_units import Bounding, bound_in_memory
from transforms.column_types import exact_axes, give_types, used_types
from transforms.group_keys import GroupKeys
from transforms.list_files import File, InputError
from transforms.open_source import open_files, open_source
from transforms.parse_expression import parse_expression
from transforms.parse_texts import DATE, INTEGER, NUMBER, TEXT, TRUTH, parse_texts
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_avro import read_avro
from transforms.read_batches import read_batches
from transforms.read_blocks import list_row_groups, read_in_memory
from transforms.read_csv import split_lines
from transforms.read_lines import MARK
from transforms.split_units import Splitting, gather, split_rows

SALT = bytes(range(16))
DAYS, HOURS = (
    Times.of(["2013-01-01"], ["2014-01-01"], "1 day"),
    Times.of(["2013-01-01T00:00Z"], ["2014-01-01T00:00Z"], "1 hour"),
)
LINE, WIDE = Grid((-3.0,), (3.0,), 2.0**-10), Grid((1 - 2**61,), (2**61,), 1)


def of_times(times: Times) -> Grid:
    return Grid((0,), (times.extent(0),), 1, times=times)


def rows(n: int = 301) -> pa.Table:
    """Return made-up rows: every column has nulls, extreme values and, if it is text, difficult ones."""
    rng = np.random.default_rng(7)
    start = datetime(2013, 1, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=float(s)) for s in rng.uniform(-1e6, 4e7, n)]
    names = ["a", "", " b", 'c"', "d,e", "é", "NA", "1"]
    made = {
        "x": [None if i % 11 == 0 else float(v) for i, v in enumerate(rng.normal(0, 2, n))],
        "k": [None if i % 13 == 0 else int(v) for i, v in enumerate(rng.integers(-(2**62), 2**62, n))],
        "n": [None if i % 7 == 0 else int(v) for i, v in enumerate(rng.integers(-1, 4, n))],
        "ok": [None if i % 5 == 0 else bool(v) for i, v in enumerate(rng.integers(0, 2, n))],
        "name": [None if i % 17 == 0 else names[v] for i, v in enumerate(rng.integers(0, len(names), n))],
        "day": [None if i % 19 == 0 else each.date() for i, each in enumerate(times)],
        "time": [None if i % 23 == 0 else each for i, each in enumerate(times)],
    }
    stamp = pa.timestamp("us", "UTC")
    return pa.table({k: pa.array(v, {"day": pa.date32(), "time": stamp}.get(k)) for k, v in made.items()})


PREPARED = Preparation(
    parse_expression("ok and name != 'a' and time > '2013-02-03T04:05'"),
    (("z", parse_expression("x * 2 + n")),),
)
TYPED = {"ok": "boolean", "name": "text", "time": "timestamp", "n": "integer"}
CASES: Mapping[str, tuple[Grid, dict[str, Any]]] = {
    "numbers": (LINE, {"columns": ["x"]}),
    "two axes": (Grid((-3.0, -1.0), (3.0, 3.0), 0.25), {"columns": ["x", "n"]}),
    "wide integers": (WIDE, {"columns": ["k"]}),
    "wide numbers": (Grid((-(10**15),), (10**15,), 1), {"columns": ["x"]}),
    "dates": (of_times(DAYS), {"columns": ["day"], "times": DAYS}),
    "times": (of_times(HOURS), {"columns": ["time"], "times": HOURS}),
    "truth": (LINE, {"columns": ["ok"], "types": {"ok": "boolean"}}),
    "units of text": (LINE, {"columns": ["x"], "unit": "name"}),
    "units of integers": (LINE, {"columns": ["x"], "unit": "n", "types": {"n": "integer"}}),
    "units of dates": (LINE, {"columns": ["x"], "unit": "day", "types": {"day": "date"}}),
    "the last row": (
        LINE,
        {"columns": ["x"], "unit": "name", "order": "time", "types": {"time": "timestamp"}},
    ),
    "keys": (LINE, {"columns": ["x"], "groups": GroupKeys(("name",), (None,))}),
    "listed keys": (
        LINE,
        {"columns": ["x"], "groups": GroupKeys(("n", "ok"), (None, None), Labels(["[1,true]", "[2,false]"]))},
    ),
    "cut times": (LINE, {"columns": ["x"], "groups": GroupKeys(("time",), ("month",))}),
    "expressions": (
        Grid((-9.0, -3.0), (9.0, 3.0), 0.125),
        {"columns": ["z", "x"], "preparation": PREPARED, "types": TYPED},
    ),
    "counts": (LINE, {"columns": ["x"], "count": "n"}),
}


def records(path: Path, grid: Grid, asked: dict[str, Any]) -> list[Any]:
    """Return points and identities, or of units their keys, and groups, in one order."""
    types = asked.get("types") if path.suffixes[0] in (".csv", ".jsonl", ".ndjson") else None
    exact = exact_axes(asked["columns"], grid)
    source = open_source(str(path), **{**asked, "types": types}, exact=exact)
    if source.unit is None:
        blocks = list(read_in_memory(source, grid))
    else:
        keep = "last" if source.order else "one"
        blocks = list(bound_in_memory(source, Bounding.of(source, grid, keep, SALT)))
    found: list[Any] = []
    for block in blocks:
        labels = [None] * len(block.ids) if block.groups is None else block.labels[block.groups].tolist()
        found += zip(block.points.tolist(), block.ids.tolist(), labels, strict=True)
    return sorted(found)


@pytest.mark.parametrize("case", CASES)
def test_the_same_rows_are_the_same_records_in_every_format(tmp_path: Path, case: str) -> None:
    found = {}
    for ending, writer in WRITERS.items():
        path = tmp_path / f"a{ending}"
        writer(rows(), path)
        found[ending] = records(path, *CASES[case])
    assert len(found[".parquet"]) >= 5
    assert all(each == found[".parquet"] for each in found.values()), {k: len(v) for k, v in found.items()}


@pytest.mark.parametrize("unit", [None, "name"])
def test_a_function_gets_the_same_rows_in_every_format(tmp_path: Path, unit: str | None) -> None:
    splitting = Splitting(("x",), unit, 5, SALT)
    found = {}
    for ending, writer in WRITERS.items():
        writer(rows(), tmp_path / f"a{ending}")
        source = open_source(str(tmp_path / f"a{ending}"), ["x"], unit)
        parts = [part for each in list_row_groups(source.files[0]) for part in split_rows(splitting, each)]
        mine = (
            [dataclasses.replace(shard, file="") for at, shard in parts if at == part] for part in range(5)
        )
        found[ending] = [list(gather(splitting, part, own)) for part, own in enumerate(mine)]
    assert all(each == found[".parquet"] for each in found.values())


@pytest.mark.parametrize("ending", WRITERS)
def test_folders_give_columns(tmp_path: Path, ending: str) -> None:
    """A column of folders is like one of the files, and may be the only one."""
    table = rows()
    for day in ("2013-03-01", "2013-03-02", "__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / f"day={day}" / "kind=a%2Fb"
        folder.mkdir(parents=True)
        WRITERS[ending](table.drop_columns("day"), folder / f"part{ending}")
    source = open_source(
        str(tmp_path),
        ["day"],
        times=DAYS,
        preparation=Preparation(parse_expression("kind == 'a/b'")),
        types={"kind": "text"},
    )
    points = np.concatenate([block.points for block in read_in_memory(source, of_times(DAYS))])
    assert np.unique(points, return_counts=True)[1].tolist() == [len(table)] * 2
    assert sorted(np.unique(points).tolist()) == [59, 60]
    both = open_source(str(tmp_path), ["x"], unit="name", groups=GroupKeys(("day",), (None,)))
    bounded = bound_in_memory(both, Bounding.of(both, LINE, "one", SALT))
    assert sum(len(block.ids) for block in bounded) > 0


def refusal(path: Path, *columns: str, **more: Any) -> str:
    with pytest.raises(InputError) as error:
        open_source(str(path), columns or ["x"], **more)
    assert re.match(r"input|group_by", str(error.value)) and str(error.value).endswith(".")
    return str(error.value)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("day == '2013-03-01'", True),
        ("day == '2013-04-01' or x > 0", True),  # not about folders alone
        ("day in ['2013-03-01'] and x > 1000", True),  # a row decides
        ("day == '2013-03-01' and kind == 'c' and x > 0", False),  # no folder fulfils both
        ("1 == 1 and x > 0", True),  # without a column
        ("x > 0 and (x < 9 and day > '2013-03-02')", False),
        ("not (day <= '2013-03-02')", False),
        ("is_null(day) and kind == 'a'", True),
        ("is_null(day) and kind != 'a'", False),
        ("x > 1000", True),
    ],
)
def test_a_condition_that_no_folder_fulfils_is_refused(tmp_path: Path, where: str, kept: bool) -> None:
    """A null makes a condition no more true for a folder than for a row."""
    for day, kind in (("2013-03-01", "a"), ("2013-03-02", "c"), ("__HIVE_DEFAULT_PARTITION__", "a")):
        write(tmp_path / f"day={day}" / f"kind={kind}" / "a.parquet", x=[1.0, 2.0])
    given = {"preparation": Preparation(parse_expression(where)), "types": {"day": "date", "kind": "text"}}
    given["types"] = {name: kind for name, kind in given["types"].items() if name in where}
    if kept:
        assert len(open_source(str(tmp_path), ["x"], **given).files) == 3
    else:
        assert "input.where: no folder below input.path" in refusal(tmp_path, **given)


def test_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a" / "day=1" / "a.parquet", x=[1.0])
    write(tmp_path / "a" / "b.parquet", x=[1.0])
    said = refusal(tmp_path / "a")
    assert "of b.parquet give the columns none, but those of day=1/a.parquet give day; all files" in said
    write(tmp_path / "b" / "x=1" / "a.parquet", x=[1.0])
    assert "has the column x, which its folders give, too" in refusal(tmp_path / "b")
    write(tmp_path / "c" / "d=1" / "d=2" / "a.parquet", x=[1.0])
    assert "give one column twice" in refusal(tmp_path / "c")
    write(tmp_path / "d" / "who=1" / "a.parquet", x=[1.0])
    assert "is a column of folders, whose names are public" in refusal(tmp_path / "d", unit="who")
    where = Preparation(parse_expression("who > 1"))
    assert "who has no type in who=1/a.parquet" in refusal(tmp_path / "d", preparation=where)
    assert "who has no type in who=1/a.parquet" in refusal(tmp_path / "d", order="who")


def test_files_of_several_formats_are_refused(tmp_path: Path) -> None:
    """They might be the same rows twice."""
    for ending in (".parquet", ".csv"):
        WRITERS[ending](rows(), tmp_path / f"a{ending}")
    said = refusal(tmp_path)
    assert "has files of CSV, such as a.csv, and of Parquet, such as a.parquet: give files of one" in said
    assert len(open_source(str(tmp_path / "*.csv"), ["x"]).files) == 1


@pytest.mark.parametrize("ending", WRITERS)
def test_endings_count_in_any_case(tmp_path: Path, ending: str) -> None:
    """A file that a folder left out without a word would be missing in every count."""
    WRITERS[ending](rows(), tmp_path / f"a{ending}")
    (tmp_path / f"a{ending}").rename(tmp_path / f"A{ending.upper()}")
    WRITERS[ending](rows(), tmp_path / f"b{ending}")
    source = open_source(str(tmp_path), ["x"])
    assert [file.name for file in source.files] == [f"A{ending.upper()}", f"b{ending}"]
    points = np.concatenate([block.points for block in read_in_memory(source, LINE)])
    half = len(points) // 2
    assert half and np.array_equal(points[:half], points[half:])


SECRET = "4711"
BAD = {
    "no header": (
        "a.csv",
        f"{SECRET},1\n2,3\n".encode(),
        "x is missing from a.csv; give a column that its first line names",
    ),
    "semicolons": (
        "a.csv",
        f"x;y\n{SECRET};2\n".encode(),
        "x is missing from a.csv; its first line has one name: commas separate names, not semicolons or",
    ),
    "an empty header": ("a.csv", f"\n{SECRET}".encode(), "a.csv has no header"),
    "an empty name": ("a.csv", f"x,,y\n{SECRET}".encode(), "a.csv has no header"),
    "lines of carriage returns": (
        "a.csv",
        f"x,y\r{SECRET},2\r".encode(),
        "a.csv has a carriage return within",
    ),
    "an open quote": ("a.csv", f'x,"y\n{SECRET}"'.encode(), "a.csv has no header"),
    "nothing": ("a.csv", b"", "a.csv is not CSV: it is empty"),
    "not UTF-8": ("a.csv", b"x,\xff\n", "a.csv has no header"),
    "twice": ("a.csv", b"x,x\n", "x occurs more than once in a.csv"),
    "not zipped": ("a.csv.gz", f"x\n{SECRET}".encode(), "a.csv.gz is not CSV, or is truncated or damaged"),
    "not zipped JSON": ("a.jsonl.gz", b"{}", "a.jsonl.gz is not JSON lines, or is truncated or damaged"),
    "no ending": (
        "a.tsv",
        f"x\n{SECRET}".encode(),
        "a.tsv is not Parquet, for which it is taken, because its name has no ending of .csv, .csv.gz",
    ),
    "not Arrow": ("a.arrow", f"x\n{SECRET}".encode(), "a.arrow is not Arrow IPC, or is truncated or damaged"),
    "not Avro": ("a.avro", f"x\n{SECRET}".encode(), "a.avro is not Avro, or is truncated or damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str) -> None:
    file, content, expected = BAD[name]
    (tmp_path / file).write_bytes(content)
    said = refusal(tmp_path / file)
    assert expected in said
    assert SECRET not in said


def test_types_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for ending in (".parquet", ".csv", ".jsonl"):
        WRITERS[ending](rows(), tmp_path / f"a{ending}")
    csv, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    assert "x is double in a.parquet; give types to" in refusal(tmp_path / "a.parquet", types={"x": "number"})
    assert "w is missing from a.csv" in refusal(csv, types={"w": "number"})
    assert "x is string in a.csv; used columns must be" in refusal(csv, types={"x": "text"})
    assert "domain has dates" in refusal(csv, "day", times=DAYS, types={"day": "timestamp"})
    assert "name is double" in refusal(csv, unit="name", types={"name": "number"})
    for path in (csv, lines):
        where = Preparation(parse_expression("n > 1"))
        allowed = "give it one in input.types: integer, number, text, boolean, date or timestamp"
        assert f"n has no type in {path.name} or in the job; {allowed}" in refusal(path, preparation=where)
        assert allowed in refusal(path, unit="name", order="time")
        assert f"n has no type in {path.name} or in the job" in refusal(path, "n", unit="n")
        assert open_source(str(path), ["x"], preparation=where, types={"n": "integer"}).columns == ("x",)
        opened, uses = open_files(str(path)), [used_types(["x"], "n"), used_types(["n"])]
        with pytest.raises(
            InputError, match=r"n has no type in .*, and is used as string and as double; give"
        ):
            give_types(opened, None, AS_THEY_ARE, uses)
        _, schemas, _ = give_types(opened, {"n": "integer"}, AS_THEY_ARE, uses)
        assert schemas[0].field("n").type == INTEGER
    where = Preparation(parse_expression("w > 1"))
    assert "input.where: w is missing from a.csv; give" in refusal(csv, preparation=where)
    where = Preparation(derive=(("z", parse_expression("times + 1")),))
    assert "input.derive.z: times is missing from a.csv; give" in refusal(csv, preparation=where)
    assert "input.order: w is missing" in refusal(csv, unit="name", order="w")


FOUND = "give a column that its first line names (`shoal init` lists them)"


@pytest.mark.parametrize(
    ("names", "field", "name", "near"),
    [
        ({"columns": ["amout"]}, "input.columns", "amout", "amount"),
        ({"unit": "customers"}, "input.unit", "customers", "customer"),
        ({"count": "CITY"}, "input.count", "CITY", "City"),
        ({"groups": GroupKeys(("city",), (None,))}, "group_by.columns", "city", "City"),
        ({"types": {"amounts": "number"}}, "input.types", "amounts", None),
        ({"columns": ["Stan"]}, "input.columns", "Stan", "State"),
    ],
)
def test_a_missing_column_is_told(
    tmp_path: Path, names: Any, field: str, name: str, near: str | None
) -> None:
    """With the nearest one and all others. Of CSV none is named: the first line may be a row."""
    table = pa.table({"amount": [1.0], "customer": ["a"], "City": ["b"], "State": ["c"]})
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    pq.write_table(table, tmp_path / "a.parquet")
    given = {"columns": ["amount"], **names}
    said = refusal(tmp_path / "a.csv", *given.pop("columns"), **given)
    assert said == f"{field}: {name} is missing from a.csv; {FOUND}."
    if near is not None:
        given = {"columns": ["amount"], **names}
        said = refusal(tmp_path / "a.parquet", *given.pop("columns"), **given)
        listed = "its columns are amount, customer, City, State."
        assert said == f"{field}: {name} is missing from a.parquet (did you mean {near}?); {listed}"


@pytest.mark.parametrize("ending", WRITERS)
def test_a_file_of_any_format_may_not_be_written_during_a_run(tmp_path: Path, ending: str) -> None:
    WRITERS[ending](rows(), path := tmp_path / f"a{ending}")
    (file,) = open_source(str(path), ["x"]).files
    reading = read_batches(file, 0, ["x"], 10)
    next(reading)
    WRITERS[ending](rows(), path)
    with pytest.raises(InputError, match="was written again during the run"):
        list(reading)


@pytest.mark.parametrize("ending", [".csv.gz", ".ndjson.gz", ".feather", ".avro"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, ending: str) -> None:
    """Whatever bytes are changed: a sentence without them, or other values."""
    WRITERS[ending](rows(60), path := tmp_path / f"a{ending}")
    content, rng = path.read_bytes(), np.random.default_rng(1)
    for _ in range(40):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), 3):
            damaged[at] = rng.integers(0, 256)
        path.write_bytes(damaged[: int(rng.integers(1, 2 * len(content)))])
        try:
            source = open_source(str(path), ["x"], unit="name")
            for number in range(source.row_groups):
                list(read_batches(source.files[0], number, ["x"], 50, "name"))
        except InputError as error:
            assert re.search(r"\.$", str(error))


_LATE = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 900, 3], np.int32)), pa.py_buffer(b"abc")]
)
DAMAGED = {
    "a text that ends after all texts": _LATE,
    "a category of such a text": pa.DictionaryArray.from_arrays(pa.array([0, 0]), _LATE, safe=False),
    "a category that is not there": pa.DictionaryArray.from_arrays(
        pa.array([0, 7]), pa.array(["a"]), safe=False
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_nothing_is_read_from_beyond_a_damaged_column_of_arrow(tmp_path: Path, name: str) -> None:
    """What lies there in memory may be of anyone."""
    batch = pa.RecordBatch.from_arrays([pa.array([1.0, 2.0]), DAMAGED[name]], names=["x", "who"])
    with pa.ipc.new_file(tmp_path / "a.arrow", batch.schema) as writer:
        writer.write_batch(batch)
    source = open_source(str(tmp_path / "a.arrow"), ["x"], unit="who")
    with pytest.raises(InputError, match=r"a\.arrow can no longer be read, or is damaged"):
        list(read_batches(source.files[0], 0, ["x"], 50, "who"))


def columns_of(path: Path, types: dict[str, pa.DataType], most: int = 3) -> list[list[Any]]:
    file = File(str(path), path.name, types=tuple(types.items()))
    batches = list(read_batches(file, 0, list(types), most))
    return [[value for batch in batches for value in batch.column(name).to_pylist()] for name in types]


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_lines, "_BLOCK", 7)
    monkeypatch.setattr(read_lines, "MOST_LINE", 12)


PIECES = st.lists(
    st.sampled_from(
        [b'"', b",", b"a", b"1", b" ", b"\r", b"\xff", "é".encode(), b'"a"', b'""', b"#", b"\\", b"\0"]
    ),
    max_size=12,
)


def fields_of(line: bytes) -> list[bytes | None] | None:
    """Return the fields of a record of two fields, row by row, character by character; None if it is none."""
    fields: list[bytes | None] = []
    at = 0
    while True:
        if line[at : at + 1] == b'"':
            at, value = at + 1, b""
            while True:
                end = line.find(b'"', at)
                if end < 0:
                    return None
                value, at = value + line[at:end], end + 1
                if line[at : at + 1] != b'"':
                    break
                value, at = value + b'"', at + 1
            fields.append(value)
        else:
            end = line.find(b",", at)
            value, at = (line[at:], len(line)) if end < 0 else (line[at:end], end)
            if b'"' in value:
                return None
            fields.append(value or None)
        if at == len(line):
            return fields if len(fields) == 2 else None
        if line[at : at + 1] != b",":
            return None
        at += 1


def text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES.map(b"".join), max_size=6), st.booleans())
@example([b'"', b"a,1", b'1,"'], True)
@example([b"aaaaaaaaaa,111", b"1,2"], True)
@example([b"aaaaaaaaaaaaaaaaaa,111", b"aaaaaaaaaa,1", b"aaaaaaaaaaa,1"], False)
@example([b"a,1", b"aaaaaaaaaa,1", b"a,1\r", b'"a","1"\r', b"\r", b"b,2\r"], True)
def test_a_line_of_csv_that_is_no_record_leaves_out_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[bytes], ends: bool
) -> None:
    small(monkeypatch)
    path = tmp_path / "a.csv"
    path.write_bytes(b"p,q\r\n" + b"\n".join(lines) + b"\n" * ends)
    expected = []
    for line in lines:
        long = len(line) > 12
        line = line.removesuffix(b"\r")
        if line or long:
            found = None if long else fields_of(line)
            expected.append((None, None) if found is None else tuple(map(text, found)))
    assert list(zip(*columns_of(path, {"p": TEXT, "q": TEXT}), strict=True)) == expected


JSON_LINES = {
    b'{"x": 1, "t": "a"}': (1.0, "a"),
    b'{"x": "2.5", "t": 3}': (2.5, "3"),
    b'{"t": true}': (None, "true"),
    b'{"x": 1': (None, None),
    b"[1, 2]": (None, None),
    b"7": (None, None),
    b'{"x": NaN, "t": "b"}': (None, "b"),
    b'{"x": [1], "t": {"u": 1}}': (None, None),
    b'{"x": 1e999, "t": "\\ud800"}': (None, None),
    b'{"x": 1, "t": "\xff"}': (None, None),
    b"[" * 5000: (None, None),
    b'{"x": 8, "t": ' + b"[" * 99 + b"]" * 99 + b"}": (8.0, None),
    b'{"x": 8, "t": ' + b"[" * 100 + b"]" * 100 + b"}": (None, None),
    b'{"x": 8, "a": [' + b"{}, " * 200 + rb'{}], "t": "\\\"' + b"[" * 200 + b'"}': (8.0, '\\"' + "[" * 200),
    b'{"x": 8, "a": "\\\\", "t": ' + b"[" * 100 + b"]" * 100 + b"}": (None, None),
    MARK + b'{"x": 7, "t": "a"}': (7.0, "a"),
    MARK * 2 + b'{"x": 7, "t": "a"}': (None, None),
    b'{"x": ' + b"1" * 5000 + b"}": (None, None),
    b'{"x": 4, "t": "\\u0000"}  ': (4.0, "\0"),
    b'{"a": {"x": 9}, "x": 5}{"x": 6}': (None, None),
    b'"': (None, None),
}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([*JSON_LINES, b"", b" \t", MARK]), max_size=8))
@example(list(JSON_LINES))
def test_a_line_of_json_that_is_no_object_leaves_out_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[bytes]
) -> None:
    monkeypatch.setattr(read_lines, "_BLOCK", 9)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    expected = [JSON_LINES[line] for line in lines if line.removeprefix(MARK).strip()]
    assert list(zip(*columns_of(path, {"x": NUMBER, "t": TEXT}), strict=True)) == expected


CHARACTERS = st.text("0123456789+-.eExXnaif_ \t,T:Z१", max_size=12)
WRITTEN = st.one_of(
    CHARACTERS,
    st.floats().map(repr),
    st.integers(-(2**65), 2**65).map(str),
    st.datetimes().map(datetime.isoformat),
    st.dates().map(date.isoformat),
    st.sampled_from(
        ["true", " FALSE\t", "0x1F", "1e999", "2013-02-29", "2012-02-29T24:00", "nan", "1.000", "0" * 30]
    ),
).map(str.encode)


def as_number(written: str) -> float | None:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", written):
        return None
    return float(written) if math.isfinite(float(written)) else None


def as_integer(written: str) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]+(\.0*)?", written):
        return None
    value = int(written.partition(".")[0])
    return value if -(2**63) <= value < 2**63 else None


def as_date(written: str) -> date | None:
    try:
        return date.fromisoformat(written) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", written) else None
    except ValueError:
        return None


def as_time(written: str) -> datetime | None:
    clock = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?([Zz]|[+-][0-9]{2}:?[0-9]{2})?"
    form = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([Tt ]{clock})?"
    try:
        found = datetime.fromisoformat(written.upper()) if re.fullmatch(form, written) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


REFERENCES = {
    INTEGER: as_integer,
    NUMBER: as_number,
    DATE: as_date,
    pa.timestamp("us"): as_time,
    TRUTH: lambda written: {"true": True, "1": True, "false": False, "0": False}.get(written.lower()),
}


@pytest.mark.parametrize("kind", REFERENCES, ids=str)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(WRITTEN, st.none(), st.just(b"\xff1")), max_size=12))
@example([b"0x1F", b"7"])
@example([b"inf", None, b"-nan"])
def test_a_text_is_read_whatever_the_others_are(kind: pa.DataType, written: list[bytes | None]) -> None:
    found = parse_texts(pa.array(written, pa.binary()), kind).to_pylist()
    known = [text(each) for each in written]
    assert found == [None if each is None else REFERENCES[kind](each.strip(" \t")) for each in known]


def test_what_is_read_at_once_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of 5 MB, in 5 kB."""
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"x\n1\n" + b"1" * 5_000_000 + b"\n2\n"))
    monkeypatch.setattr(read_lines, "_BLOCK", 1 << 16)
    monkeypatch.setattr(read_lines, "MOST_LINE", 1 << 18)

    def blocks() -> Iterator[bytes]:
        with pa.OSFile(str(path)) as opened:
            yield from read_lines.line_blocks(File(str(path), "a"), opened)

    assert max(map(len, blocks())) < 1 << 19
    assert columns_of(path, {"x": NUMBER}) == [[1.0, None, 2.0]]


def test_blanks_about_names_of_columns_are_no_part_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b" p ,q\t\r\n a,1\n")
    assert columns_of(tmp_path / "a.csv", {"p": TEXT, "q": NUMBER}) == [[" a"], [1.0]]


def test_rows_of_batches_that_differ_in_size_have_identities_of_their_own(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.arrow", np.arange(10.0)
    with pa.ipc.new_file(path, pa.schema([("x", pa.float64())])) as writer:
        for first, last in ((0, 2), (2, 2), (2, 7), (7, 8), (8, 10)):
            writer.write_batch(pa.record_batch({"x": rows[first:last]}))
    blocks = list(read_in_memory(open_source(str(path), ["x"]), Grid((0.0,), (9.0,), 1.0)))
    assert np.concatenate([block.ids for block in blocks]).tolist() == list(range(10))
    assert np.concatenate([block.points for block in blocks]).ravel().tolist() == list(range(10))


def test_lines_are_split_where_they_are(tmp_path: Path) -> None:
    found = split_lines(b'1,"a,b"\n2,"\n\n3,"""",\n4,""\n', 2, [1])[0].to_pylist()
    assert found == [b"a,b", None, None, b""]


KINDS = {
    "a float16": (pa.array(np.array([1, 2], np.float16)), True, False, False),
    "a decimal": (pa.array([Decimal(1), None], pa.decimal64(9, 1)), True, True, False),
    "a view": (pa.array([b"a", None], pa.binary_view()), False, True, False),
    "a view of text": (pa.array(["a", None], pa.string_view()), False, True, True),
    "a dictionary": (pa.array(["a", None]).dictionary_encode(), False, True, True),
    "a duration": (pa.array([1, None], pa.duration("s")), False, True, False),
    "an interval": (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), False, False, False),
    "a list": (pa.array([[1], None]), False, False, False),
    "nulls": (pa.nulls(2), False, False, False),
    "runs": (pa.RunEndEncodedArray.from_arrays([2], [5]), False, False, False),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_type_that_only_arrow_has_is_read_or_refused(tmp_path: Path, name: str) -> None:
    column, *expected = KINDS[name]
    WRITERS[".feather"](pa.table({"c": column, "x": [1.0, 2.0]}), path := tmp_path / "a.arrow")
    asked: list[dict[str, Any]] = [
        {"columns": ["c"]},
        {"columns": ["x"], "unit": "c"},
        {"columns": ["x"], "groups": GroupKeys(("c",), (None,))},
    ]
    for each, served in zip(asked, expected, strict=True):
        if served:
            assert len(records(path, LINE, each)) in (1, 2)
        else:
            assert "c is " in refusal(path, *each.pop("columns"), **each)


def test_texts_of_arrow_that_are_not_utf_8_are_no_damage(tmp_path: Path) -> None:
    """Whether a text is UTF-8 depends on its row, which must not decide whether a run ends."""
    units = pa.array([b"\xff", b"a", b"a"], pa.binary())
    for number, kind in enumerate((pa.string(), pa.large_string())):
        stored = units.cast({pa.string(): pa.binary()}.get(kind, pa.large_binary())).view(kind)
        WRITERS[".feather"](
            pa.table({"u": stored, "x": [1.0, 2.0, 3.0]}), path := tmp_path / f"{number}.arrow"
        )
        assert len(records(path, LINE, {"columns": ["x"], "unit": "u"})) == 2


def of_decimals(kind: pa.DataType, *values: int) -> pa.Array:
    stored = b"".join(value.to_bytes(kind.byte_width, "little", signed=True) for value in values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(stored)])


def of_ticks(kind: pa.DataType, *values: int) -> pa.Array:
    return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


DAY = 86_400_000
UNFIT = {
    **{
        f"decimals of {bits} bits, scale {scale}": of_decimals(
            made(5, scale), 99_999, -99_999, 100_000, -100_000, -(2 ** (bits - 1))
        )
        for bits, made in (
            (32, pa.decimal32),
            (64, pa.decimal64),
            (128, pa.decimal128),
            (256, pa.decimal256),
        )
        for scale in (2, 5, 0, -3)
    },
    "dates": of_ticks(pa.date64(), -DAY, DAY, DAY + 1, -1, 2**63 - 1),
    "seconds": of_ticks(pa.time32("s"), 0, 86_399, 86_400, -1, 2**31 - 1),
    "milliseconds": of_ticks(pa.time32("ms"), 0, DAY - 1, DAY, -1, -(2**31)),
    "microseconds": of_ticks(pa.time64("us"), 0, DAY * 1_000 - 1, DAY * 1_000, -1, 2**63 - 1),
    "nanoseconds": of_ticks(pa.time64("ns"), 0, DAY * 10**6 - 1, DAY * 10**6, -1, -(2**63)),
    "dates of a dictionary": pa.DictionaryArray.from_arrays(
        [0, 1, 2, 2, 2], of_ticks(pa.date64(), 0, DAY, 5)
    ),
}
"""Columns of Arrow: two values that the type allows, and three that it does not."""


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_of_arrow_that_its_type_does_not_allow_is_null(tmp_path: Path, name: str) -> None:
    """One such row changes no other and ends no run. A null stays null, also behind such a value."""
    column = pa.chunked_array([UNFIT[name], pa.nulls(1, UNFIT[name].type)]).combine_chunks()
    WRITERS[".feather"](pa.table({"c": column, "x": [1.0] * 6}), path := tmp_path / "a.arrow")
    (found,) = (batch.column("c") for batch in read_batches(File(str(path), "a"), 0, ["c"], 9))
    assert found.is_valid().to_pylist() == [True] * 2 + [False] * 4
    assert found.slice(0, 2).to_pylist() == column.slice(0, 2).to_pylist()
    assert len(records(path, LINE, {"columns": ["x"], "unit": "c"})) == 2


def test_values_of_avro_that_python_does_not_have_are_no_error(tmp_path: Path) -> None:
    """A day beyond the year 9999, a decimal of too many digits, text that is not UTF-8."""
    told = [
        ("d", {"type": "int", "logicalType": "date"}),
        ("m", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}),
        ("t", "string"),
        ("e", {"type": "enum", "name": "kind", "symbols": ["p", "q"]}),
        ("n", {"type": "array", "items": "long"}),
    ]
    fields = [{"name": name, "type": kind} for name, kind in told]
    schema = json.dumps({"type": "record", "name": "row", "fields": fields}).encode()
    row = {"d": 2**31 - 1, "m": b"\x7f" * 9, "t": b"\xff", "e": 0, "n": b""}
    rows = (row, {"d": 3, "m": b"\xfb", "t": b"a", "e": 1, "n": b""})
    kinds = {"d": "int", "m": "bytes", "t": "bytes", "e": "int", "n": "bytes"}
    stored, mark = io.BytesIO(), bytes(range(16))
    bare = {"type": "record", "name": "row", "fields": [{"name": n, "type": k} for n, k in kinds.items()]}
    for each in rows:
        fastavro.schemaless_writer(stored, bare, each)
    (tmp_path / "a.avro").write_bytes(
        b"Obj\x01\x02\x16avro.schema"
        + long(len(schema))
        + schema
        + b"\0"
        + mark
        + long(len(rows))
        + long(len(stored.getvalue()))
        + stored.getvalue()
        + mark
    )
    names = ["d", "m", "t", "e"]
    (source,) = open_source(str(tmp_path), ["m"], unit="d").files
    (batch,) = read_batches(source, 0, ["m"], 9, others=names)
    assert batch["d"].cast(pa.int32()).to_pylist() == [2**31 - 1, 3]
    assert batch["m"].to_pylist() == [None, Decimal("-0.5")]
    assert batch["t"].view(pa.binary()).to_pylist() == [b"\xff", b"a"]
    assert batch["e"].to_pylist() == ["p", "q"]
    assert "n is list" in refusal(tmp_path, "n")


def holding(kind: Any, name: str = "L") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "n", "type": kind}]}


ITSELF = {
    "in a union": ["null", holding(["null", "L"])],
    "in an array": holding({"type": "array", "items": "L"}),
    "in a map": {"type": "array", "items": holding({"type": "map", "values": "L"})},
    "in another": holding({"type": "map", "values": holding(["null", "L"], "M")}),
    "the row": ["null", "row"],
}
"""Types by where they contain themselves."""


@pytest.mark.parametrize("name", ITSELF)
def test_a_type_of_avro_that_contains_itself_is_refused(tmp_path: Path, name: str) -> None:
    """Also if no job uses it. Every row is read as a whole, and a deep one would end the process."""
    fields = [{"name": "x", "type": "double"}, {"name": "l", "type": ITSELF[name]}]
    with (tmp_path / "a.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, [])
    assert "a.avro has a type that contains itself" in refusal(tmp_path, "x")


def test_a_type_of_avro_may_occur_twice(tmp_path: Path) -> None:
    kinds = {"x": "double", "a": {**holding("long"), "namespace": "n"}, "b": "n.L"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with (tmp_path / "a.avro").open("wb") as file:
        schema = {"type": "record", "name": "row", "fields": fields}
        fastavro.writer(file, schema, [{"x": 1.0, "a": {"n": 1}, "b": {"n": 2}}])
    assert len(records(tmp_path / "a.avro", LINE, {"columns": ["x"]})) == 1


def long(value: int) -> bytes:
    """Return a number as Avro stores it."""
    stored = io.BytesIO()
    fastavro.schemaless_writer(stored, "long", value)
    return stored.getvalue()


@pytest.mark.parametrize("day", [15_000, 2**31, -(2**40)])
def test_an_avro_date_beyond_32_bits_is_null(tmp_path, day):
    """Writers of Avro store such a number in a field of 32 bits; one row must not be an error."""
    fields = [{"name": "d", "type": {"type": "int", "logicalType": "date"}}, {"name": "x", "type": "double"}]
    schema = fastavro.parse_schema({"type": "record", "name": "R", "fields": fields})
    with open(tmp_path / "rows.avro", "wb") as file:
        fastavro.writer(file, schema, [{"d": each, "x": 1.0} for each in (14_000, day)])
    with pa.OSFile(str(tmp_path / "rows.avro")) as opened:
        (batch,) = read_avro(None, opened, 0, ["d", "x"])
    assert batch.column("d").is_valid().to_pylist() == [True, day == 15_000]


@pytest.mark.parametrize(("unit", "last"), [("s", "9999-12-31"), ("us", "9999-12-31"), ("ns", "2262-04-10")])
def test_a_time_that_a_unit_cannot_hold_is_null(unit: str, last: str) -> None:
    """It would be another time after an overflow."""
    texts = [f"{day}T00:00:00Z" for day in (last, "1970-01-01", "2262-04-12", "9999-12-31", "0001-01-01")]
    found = parse_texts(pa.array([text.encode() for text in texts], pa.binary()), pa.timestamp(unit, "UTC"))
    held = [text if unit != "ns" or text[:10] in (last, "1970-01-01") else None for text in texts]
    expected = [None if text is None else np.datetime64(text[:-1], unit) for text in held]
    ticks = found.view(pa.int64()).to_pylist()
    assert [None if tick is None else np.datetime64(tick, unit) for tick in ticks] == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
    ],
)
def test_integers_up_to_both_ends_are_read(text: str, value: int | None) -> None:
    assert parse_texts(pa.array([text.encode()], pa.binary()), pa.int64()).to_pylist() == [value]
