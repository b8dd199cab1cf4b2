"""Long texts are answered as short ones are, whatever they are used for: no run fails, or takes all memory.

Texts of several rows together have more than 2^31 bytes, which Arrow's offsets of 32 bits do not hold. Some
of its functions fail then, others give other texts without an error, and others need a copy for each row.
Whether texts have so many bytes depends on rows, and neither the end of a run nor its answers may.
"""

import gc
import gzip
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from pipelines.describe.columns import describe
from pipelines.run import joint_run, run
from tests.engines.golden import Fixed
from tests.shoal.test_beam import one, plain

pytestmark = pytest.mark.slow

LONG, SHORT = 1 << 20, 300
"""Blanks before a value. Both are no keys of groups, whose labels have at most 256 bytes."""

VALUES, TIMES, OTHERS = 10, 250, 500
"""Distinct texts that are long, rows of each, and rows of texts without blanks."""

MOST = 1 << 30
"""Bytes that a run on long texts may take beyond one on short ones."""

GRID = {"lower": [0], "upper": [10], "step": 1}


@pytest.fixture(autouse=True)
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (run, joint_run):
        monkeypatch.setattr(module, "SecureNoise", lambda: Fixed(0, factor=0.0))
        monkeypatch.setattr(module, "secret_salt", lambda: b"0123456789abcdef")


def padded(blanks: int, index: pa.DataType, kind: pa.DataType) -> pa.Table:
    """Return rows with dictionaries of texts: the numbers x, or beside every second x the next one, or dates.

    Args:
        blanks: before each text, but those of the last rows.
        index: type of the indices.
        kind: type of the texts.
    """
    first = np.tile(np.arange(VALUES), TIMES)
    x = np.append(first, np.arange(OTHERS) % VALUES)
    place = np.append(first, VALUES + x[len(first) :])
    other = np.where(x % 2, (place + 1) % (2 * VALUES), place)

    def texts(values: list[str], places: np.ndarray) -> pa.Array:
        both = [" " * blanks + value for value in values] + values
        return pa.DictionaryArray.from_arrays(pa.array(places, index), pa.array(both, kind))

    numbers = [f"{value:02}" for value in range(VALUES)]
    dates = [f"2013-01-{1 + value:02}" for value in range(VALUES)]
    return pa.table(
        {
            "x": x,
            "t": texts(numbers, place),
            "s": texts(numbers, other),
            "d": texts(dates, place),
            "e": x % 3,
            "n": x % 4,
        }
    )


def joined(folder: Path, blanks: int) -> None:
    """Write public tables: of short keys with long texts and numbers, and of long keys."""
    texts = [" " * blanks + f"{value:02}" for value in range(VALUES)]
    table = {"x": np.arange(VALUES), "j": texts, "f": np.arange(VALUES) / 2}
    pq.write_table(pa.table(table), folder / "by_number.parquet")
    pq.write_table(pa.table({"t": texts, "f": np.arange(VALUES) / 2}), folder / "by_text.parquet")


def sound(rows: pa.Table) -> float:
    """Be the function of `sample_and_aggregate`: which units are in a block depends on their names."""
    return 5.0 if 0 <= rows.column("x").to_numpy().max() < VALUES else 0.0


def in_dictionary(folder: Path, table: pa.Table) -> str:
    path = str(folder / "rows.parquet")
    pq.write_table(table, path, dictionary_pagesize_limit=1 << 30, store_schema=False)
    return path


def in_arrow(folder: Path, table: pa.Table) -> str:
    path = str(folder / "rows.arrow")
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    return path


def of_views(table: pa.Table) -> pa.Table:
    """Return texts as views, of which all rows of a text have the same bytes."""
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(number).chunk(0)
            values = column.dictionary.cast(pa.string_view()).buffers()
            words = np.frombuffer(values[1], np.int32).reshape(-1, 4)[column.indices.to_numpy()]
            views = pa.Array.from_buffers(
                pa.string_view(), len(column), [None, pa.py_buffer(words.copy()), *values[2:]]
            )
            table = table.set_column(number, field.name, views)
    return table


GROUP = {"task": "statistics", "params": {"measures": ["count", "mean"]}}
PRIVATE = {"columns": ["t"], "keys": "private"}
TWO = {"columns": ["e", "t"], "keys": "private"}
BY_NUMBER = {"path": "by_number.parquet", "on": "x", "columns": ["j", "f"]}
OUTPUTS = {"lower": [0], "upper": [10], "step": 1}
SOUND = {"function": "tests.pipelines.test_every_size:sound", "blocks": 20, "outputs": OUTPUTS}

ROLES: dict[str, dict[str, Any]] = {
    "nothing": {"input": {}},
    "unit": {"input": {"unit": "t"}},
    "unit of several groups": {
        **GROUP,
        "input": {"unit": "t"},
        "group_by": {"columns": ["e"], "keys": "private"},
        "contributions": {"groups": 2, "rows": 400},
    },
    "derived unit": {"input": {"unit": "u", "derive": {"u": "upper(t)"}}},
    "unit of two texts": {"input": {"unit": "u", "keep": "max", "derive": {"u": "if(t == s, t, s)"}}},
    "private key": {**GROUP, "input": {}, "group_by": PRIVATE},
    "one of two keys": {**GROUP, "input": {}, "group_by": TWO},
    "two keys": {**GROUP, "input": {}, "group_by": {"columns": ["s", "t"], "keys": "private"}},
    "public keys": {**GROUP, "input": {}, "group_by": {"columns": ["t"], "keys": ["03", "07"]}},
    "key of units": {
        **GROUP,
        "input": {"unit": "s"},
        "group_by": PRIVATE,
        "contributions": {"groups": 2, "rows": 400},
    },
    "key of counted rows": {**GROUP, "input": {"count": "n"}, "group_by": PRIVATE},
    "count made of a text": {"input": {"count": "c", "derive": {"c": "round(number(t))"}}},
    "filter": {"input": {"where": "contains(t, '7')"}},
    "filter by length": {"input": {"where": f"length(t) > {SHORT}"}},
    "comparison": {"input": {"where": "t == s"}},
    "order of texts": {"input": {"where": "t < s or s < t"}},
    "least of texts": {"input": {"where": "min(t, s) == t"}},
    "number": {"input": {"columns": ["y"], "derive": {"y": "number(t)"}}},
    "number of one of two": {"input": {"columns": ["y"], "derive": {"y": "number(if(x < 4, t, s))"}}},
    "date": {"input": {"where": "date(d) < '2013-01-05'"}},
    "timestamp": {"input": {"where": "timestamp(d) < '2013-01-05'"}},
    "length": {"input": {"where": "length(lower(coalesce(t, s))) == length(s)"}},
    "key of a joined table": {
        "input": {"columns": ["f"], "join": {"path": "by_text.parquet", "on": "t", "columns": ["f"]}}
    },
    "joined unit": {"input": {"unit": "j", "join": BY_NUMBER}},
    "joined text is compared": {"input": {"where": "j == t", "join": BY_NUMBER}},
    "joined key": {
        **GROUP,
        "input": {"join": BY_NUMBER},
        "group_by": {"columns": ["j"], "keys": "private"},
    },
    "key made of a joined text": {
        **GROUP,
        "input": {"join": BY_NUMBER, "derive": {"k": "if(x < 4, 'low', j)"}},
        "group_by": {"columns": ["k"], "keys": "private"},
    },
    "key that is a joined text": {
        **GROUP,
        "input": {"join": BY_NUMBER, "derive": {"k": "j"}},
        "group_by": {"columns": ["k"], "keys": "private"},
    },
    "blocks of units": {"task": "sample_and_aggregate", "input": {"unit": "t"}, "params": SOUND},
    "blocks of rows": {"task": "sample_and_aggregate", "input": {"where": "t == s"}, "params": SOUND},
    "blocks of groups": {
        "task": "sample_and_aggregate",
        "input": {},
        "params": SOUND,
        "group_by": {"columns": ["t"], "keys": ["03", "07"]},
    },
}

EVERYTHING = {
    "input": {
        "unit": "t",
        "where": "t == s or number(t) > 7",
        "derive": {"y": "number(s)", "k": "if(x < 4, t, s)"},
    },
    "questions": {
        "cells": {"task": "histogram", "columns": ["y"], "domain": GRID, "params": {"cells": [10]}},
        "keys": {
            **GROUP,
            "columns": ["x"],
            "domain": GRID,
            "group_by": {"columns": ["k"], "keys": "private"},
            "contributions": {"groups": 2, "rows": 400},
        },
    },
}
"""Many of them at once, for other formats."""


def job_of(role: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    job = {
        "task": "histogram",
        "domain": GRID,
        "params": {"cells": [10]},
        "privacy": {"epsilon": 50.0, "delta": 1e-6},
        "run_id": "one",
        "output": str(folder / "out"),
        **role,
        "input": {"columns": ["x"], **role["input"]},
    }
    if "join" in job["input"]:
        join = job["input"]["join"]
        job["input"]["join"] = {**join, "path": str(folder / join["path"])}
    if job["task"] == "sample_and_aggregate":
        del job["domain"]
    if "questions" in job:
        for name in ("task", "domain", "params"):
            del job[name]
        del job["input"]["columns"]
    return job


def status(name: str) -> int:
    """Return bytes of memory that this process has (`VmRSS`), or has had since `forgotten` (`VmHWM`)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def measured(answer: Callable[[], Any]) -> tuple[Any, int]:
    """Return an answer, and how many bytes it took while it was made."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before = status("VmRSS")
    found = answer()
    return found, status("VmHWM") - before


def told(answer: shoal.Release) -> Any:
    """Return all that a release says, but where a public table is."""
    values, *others = plain(answer)
    place = values.get("rows", {}).get("join", {}).pop("path", None)
    return re.sub(rf"{place}|nan", "", repr(values)), *others


def check_alike(answers: Mapping[int, Callable[[], Any]]) -> None:
    """Check that long texts have the answers of short ones, and take little more memory."""
    known, usual = measured(answers[SHORT])
    found, peak = measured(answers[LONG])
    assert told(found) == told(known)
    assert peak < usual + MOST, (peak >> 20, usual >> 20)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Return files of texts of both lengths, in dictionaries, with public tables beside them."""
    found = {}
    for blanks in (SHORT, LONG):
        folder = tmp_path_factory.mktemp(str(blanks))
        joined(folder, blanks)
        found[blanks] = in_dictionary(folder, padded(blanks, pa.int32(), pa.string()))
    return found


@pytest.mark.parametrize("role", ROLES)
def test_long_texts_are_used_as_short_ones_are(role: str, files: dict[int, str]) -> None:
    def answer(blanks: int) -> Callable[[], Any]:
        folder = Path(files[blanks]).parent
        return lambda: shoal.run({**job_of(ROLES[role], folder), "output": str(folder / role)}, files[blanks])

    check_alike({blanks: answer(blanks) for blanks in files})


def test_long_texts_are_described_as_short_ones_are(files: dict[int, str]) -> None:
    def answer(blanks: int) -> Callable[[], Any]:
        job = {**describe(files[blanks], 50.0, 1e-6).job, "run_id": "one"}
        return lambda: shoal.run({**job, "output": str(Path(files[blanks]).parent / "described")})

    check_alike({blanks: answer(blanks) for blanks in files})


def of_bytes(table: pa.Table) -> pa.Table:
    """Return texts as bytes, which may be units."""
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(number).chunk(0)
            values = column.dictionary.cast(pa.large_binary())
            told = pa.DictionaryArray.from_arrays(column.indices, values)
            table = table.set_column(number, field.name, told)
    return table


def with_indices(index: pa.DataType) -> Callable[[Path, int], str]:
    return lambda folder, blanks: in_arrow(folder, padded(blanks, index, pa.large_string()))


def repeated_lines(folder: Path, blanks: int, ending: str, text: Callable[[list[Any]], bytes]) -> str:
    """Write lines of which `TIMES` blocks are alike: parts of gzip may stand one after the other."""
    rows = padded(blanks, pa.int32(), pa.string()).to_pandas(strings_to_categorical=False)
    lines = [text(row) for row in rows.astype(object).itertuples(index=False)]
    path = folder / f"rows.{ending}.gz"
    head = (
        gzip.compress(b",".join(name.encode() for name in rows.columns) + b"\n") if ending == "csv" else b""
    )
    first = gzip.compress(b"".join(lines[:VALUES]), 1)
    path.write_bytes(head + first * TIMES + gzip.compress(b"".join(lines[VALUES * TIMES :]), 1))
    return str(path)


def in_csv(folder: Path, blanks: int) -> str:
    return repeated_lines(folder, blanks, "csv", lambda row: ",".join(map(str, row)).encode() + b"\n")


def in_json(folder: Path, blanks: int) -> str:
    names = padded(1, pa.int32(), pa.string()).column_names
    return repeated_lines(
        folder, blanks, "jsonl", lambda row: json.dumps(dict(zip(names, row, strict=True))).encode() + b"\n"
    )


def in_avro(folder: Path, blanks: int) -> str:
    """Write blocks of rows, of which `TIMES` are alike."""
    rows = padded(blanks, pa.int32(), pa.string()).to_pylist()
    kinds = {name: "string" if isinstance(value, str) else "long" for name, value in rows[0].items()}
    schema = {"type": "record", "name": "row", "fields": [{"name": n, "type": k} for n, k in kinds.items()]}
    made = io.BytesIO()
    fastavro.writer(made, schema, [], codec="deflate", sync_marker=bytes(16))
    path = folder / "rows.avro"
    head = made.getvalue()

    def block(some: list[Any]) -> bytes:
        whole = io.BytesIO()
        fastavro.writer(whole, schema, some, "deflate", 1 << 31, sync_marker=bytes(16))
        return whole.getvalue()[len(head) :]

    path.write_bytes(head + block(rows[:VALUES]) * TIMES + block(rows[VALUES * TIMES :]))
    return str(path)


FORMATS: dict[str, Callable[[Path, int], str]] = {
    "indices of 8 bits": with_indices(pa.int8()),
    "indices of 16 bits": with_indices(pa.uint16()),
    "indices of 64 bits": with_indices(pa.int64()),
    "views": lambda folder, blanks: in_arrow(folder, of_views(padded(blanks, pa.int32(), pa.string()))),
    "CSV": in_csv,
    "JSON lines": in_json,
    "Avro": in_avro,
}


@pytest.mark.parametrize("form", FORMATS)
def test_long_texts_of_every_format_are_used_as_short_ones_are(form: str, tmp_path: Path) -> None:
    def answer(blanks: int) -> Callable[[], Any]:
        folder = tmp_path / str(blanks)
        folder.mkdir()
        path, job = FORMATS[form](folder, blanks), job_of(EVERYTHING, folder)
        if form in ("CSV", "JSON lines"):
            job["input"]["types"] = {"x": "integer", "t": "text", "s": "text"}
        return lambda: shoal.run(job, path)

    check_alike({blanks: answer(blanks) for blanks in (SHORT, LONG)})


TABLES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "dictionaries": lambda table: table,
    "views": of_views,
    "dictionaries of two parts": lambda table: pa.concat_tables([table.slice(0, 900), table.slice(900)]),
}


@pytest.mark.parametrize("form", TABLES)
def test_long_texts_of_tables_are_used_as_short_ones_are(form: str, tmp_path: Path) -> None:
    def answer(blanks: int) -> Callable[[], Any]:
        table = TABLES[form](padded(blanks, pa.int32(), pa.string()))
        return lambda: shoal.run(job_of(EVERYTHING, tmp_path / str(blanks)), table)

    check_alike({blanks: answer(blanks) for blanks in (SHORT, LONG)})


@pytest.mark.parametrize("form", TABLES)
def test_long_texts_of_batches_are_used_as_short_ones_are(form: str, tmp_path: Path) -> None:
    def answer(blanks: int) -> Callable[[], Any]:
        table = TABLES[form](padded(blanks, pa.int32(), pa.string()))
        return lambda: one(job_of(EVERYTHING, tmp_path / str(blanks)), table.to_batches(), table.schema)

    check_alike({blanks: answer(blanks) for blanks in (SHORT, LONG)})


def test_bytes_are_units_as_texts_are(tmp_path: Path) -> None:
    def answer(blanks: int) -> Callable[[], Any]:
        table = of_bytes(padded(blanks, pa.int32(), pa.string()))
        return lambda: shoal.run(job_of(ROLES["unit"], tmp_path / str(blanks)), table)

    check_alike({blanks: answer(blanks) for blanks in (SHORT, LONG)})
