"""A job from Python is the job of the command, and leaves nothing behind that it was not asked for."""

import datetime
import enum
import json
import os
import stat
import subprocess
import sys
import tempfile
from decimal import Decimal
from functools import reduce
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from apache_beam.utils.interactive_utils import is_in_ipython

import shoal
from pipelines.errors import JobError
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.run import run as runs

AGES = np.random.default_rng(5).integers(0, 100, 4000)
PEOPLE = pa.table({"age": AGES, "city": np.where(AGES % 2, "Bern", "Ulm")})
COUNTS = np.bincount(AGES // 10, minlength=10).tolist()

JOB: dict[str, Any] = {
    "task": "histogram",
    "input": {"columns": ["age"], "checks": 0},
    "domain": {"lower": [0], "upper": [99], "step": 1},
    "params": {"cells": [10]},
    "privacy": {"epsilon": 100.0, "delta": 0},
}
"""At this epsilon all noise is 0, but with probability exp(-100)."""


class Cells(enum.IntEnum):
    TEN = 10


class Task(enum.StrEnum):
    HISTOGRAM = "histogram"


class Older(str, enum.Enum):  # noqa: UP042  (whose str() is not its value)
    HISTOGRAM = "histogram"


WRITTEN = {**JOB, "output": "out", "input": {**JOB["input"], "path": "rows/ages.parquet"}}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("params.cells", (np.int64(10),)),
        ("params.cells", np.array([10])),
        ("params.cells", [Cells.TEN]),
        ("task", Task.HISTOGRAM),
        ("task", Older.HISTOGRAM),
        ("domain.upper", [np.uint8(99)]),
        ("privacy.epsilon", np.float32(100)),
        ("input.columns", np.array(["age"])),
        ("input.columns", (np.str_("age"),)),
        ("input.path", Path("rows/ages.parquet")),
        ("params", MappingProxyType({"cells": [10]})),
    ],
)
def test_a_job_may_have_values_of_numpy_and_paths(key: str, value: Any) -> None:
    job = json.loads(json.dumps(WRITTEN))
    *places, name = key.split(".")
    reduce(lambda held, place: held[place], places, job)[name] = value
    assert shoal.plan(job).values == shoal.plan(WRITTEN).values


@pytest.mark.parametrize("day", [datetime.date(2026, 1, 2), np.datetime64("2026-01-02")])
def test_a_job_may_have_dates(day: Any) -> None:
    job = {**WRITTEN, "domain": {"lower": ["2026-01-01"], "upper": ["2026-01-31"], "step": "1 day"}}
    same = {**job, "domain": {**job["domain"], "lower": [day]}}
    held = {**job, "domain": {**job["domain"], "lower": ["2026-01-02"]}}
    assert shoal.plan(same).values == shoal.plan(held).values != shoal.plan(job).values


def test_other_values_of_a_job_are_named() -> None:
    loop: dict[str, Any] = {}
    loop["cells"] = loop
    lists: list[Any] = []
    lists.append(lists)
    for key, value, says in (
        ("params", {"cells": [Decimal(10)]}, "params.cells[0] is Decimal('10'), of type Decimal"),
        ("params", {"cells": {10}}, "params.cells is {10}, of type set"),
        (
            "params",
            {"cells": np.timedelta64(5, "ns")},
            "params.cells is np.timedelta64(5,'ns'), of type timedelta64",
        ),
        ("params", {"cells": {10**5000}}, "params.cells is a value, of type set"),
        ("privacy", {"epsilon": 1j}, "privacy.epsilon is 1j, of type complex"),
        ("params", {1: 2}, "The key 1 of params is int: a key must be text."),
        ("params", loop, "is nested more than 20 levels deep"),
        ("params", lists, "is nested more than 20 levels deep"),
        ("params", {"cells": lists}, "is nested more than 20 levels deep"),
    ):
        with pytest.raises(shoal.ShoalError) as refused:
            shoal.plan({**WRITTEN, key: value})
        assert says in str(refused.value) and "\n" not in str(refused.value)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary files are made."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


class Stream:
    """A table of another library."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def counts(release: shoal.Release) -> list[int]:
    assert release.table is not None
    assert not release.table.schema.metadata
    return release.table.column("count").to_pylist()


@pytest.mark.parametrize("kind", ["table", "stream", "path", "files", "csv"])
def test_rows_are_given_in_several_ways(kind: str, tmp_path: Path, temporary: Path) -> None:
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    pq.write_table(PEOPLE[:1500], files[0])
    pq.write_table(PEOPLE[1500:], files[1])
    csv = tmp_path / "people.csv"
    csv.write_text("\n".join(["city,age", *(f"Ulm,{age}" for age in AGES)]))
    kinds = {"stream": Stream(PEOPLE), "path": tmp_path / "*.parquet", "files": files, "csv": [csv]}
    data = kinds.get(kind, PEOPLE)
    assert counts(shoal.run(JOB, data)) == COUNTS
    assert list(temporary.iterdir()) == []
    assert pq.read_table(files).num_rows == len(AGES)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("table", ["keys", "join"])
def test_a_public_table_is_no_file_of_the_rows(
    tmp_path: Path, table: str, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a list get other names, and are the same files, or on another disk copies of them."""
    if copied:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError))
    file = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [25, 50], "city": ["Bern", "Ulm"]}), file)
    join = {**JOB, "input": {**JOB["input"], "join": {"path": file, "on": "city", "columns": ["age"]}}}
    keys = {**JOB, "group_by": {"columns": ["city"], "keys": file}}
    with pytest.raises(JobError, match=r"(keys|join\.path) is .* it lies in input.path .* must be public"):
        shoal.run({"keys": keys, "join": join}[table], [file])


def test_a_plan_without_rows_takes_keys_from_any_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    pq.write_table(pa.table({"city": ["Bern", "Ulm"]}), "data/cities.parquet")
    keys = {**JOB, "group_by": {"columns": ["city"], "keys": "data/cities.parquet"}}
    assert str(shoal.plan(keys)).startswith("2 groups by city")


def test_a_notebook_is_no_different(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam would import data frames there, which fails beside pandas 3, and leave a folder behind."""
    kernel = SimpleNamespace(execution_count=3, config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "apache_beam.runners.interactive", None)
    assert is_in_ipython()
    assert counts(shoal.run(JOB, PEOPLE)) == COUNTS
    assert list(temporary.iterdir()) == []
    assert is_in_ipython(), "the caller's own pipelines see it"


def test_a_job_is_a_mapping_a_text_or_a_path(tmp_path: Path) -> None:
    text = yaml.safe_dump(JOB)
    (tmp_path / "job.yaml").write_text(text)
    plans = [shoal.plan(job) for job in (JOB, text, tmp_path / "job.yaml", str(tmp_path / "job.yaml"))]
    assert len({str(plan) for plan in plans}) == 1
    assert "dense" in str(plans[0])
    assert "Release" not in str(plans[0])
    assert plans[0].refusals == ()
    assert plans[0].error["failure"] == 0.1
    assert JOB["input"] == {"columns": ["age"], "checks": 0}, "the caller's job is not changed"


def test_rows_in_memory_are_private_and_removed_also_after_an_error(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def run_job(job: Any) -> None:
        (folder,) = temporary.iterdir()
        seen.append((stat.S_IMODE(folder.stat().st_mode), os.listdir(folder), Path(job.input.path).parent))
        assert folder == seen[-1][2]
        raise RuntimeError

    monkeypatch.setattr(runs, "run_job", run_job)
    with pytest.raises(RuntimeError):
        shoal.run(JOB, PEOPLE)
    assert [found[:2] for found in seen] == [(0o700, ["data"])]
    assert list(temporary.iterdir()) == []


def test_every_call_is_a_run_of_its_own(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=200.0, delta=0))
    job = {**JOB, "privacy": {**JOB["privacy"], "ledger": ledger}}
    assert shoal.plan(job).values["ledger"]["runs"] == 2
    assert counts(shoal.run(job, PEOPLE)) == counts(shoal.run(job, PEOPLE))
    charges = read_ledger(ledger).charges
    assert len({charge.run_id for charge in charges}) == len(charges) == 2
    with pytest.raises(shoal.ShoalError, match=r"privacy\.ledger"):
        shoal.run(job, PEOPLE)
    assert shoal.plan(job).values["ledger"]["runs"] == 0


@pytest.mark.parametrize("data", [None, PEOPLE])
@pytest.mark.parametrize("output", [None, "out"])
@pytest.mark.parametrize("run_id", [None, "monday"])
def test_a_call_has_a_name_of_its_own_unless_its_job_says_all(
    data: Any, output: str | None, run_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name a run is charged: a stored job that is run again is the same run."""
    names = []

    def run_job(job: Any) -> None:
        names.append(job.run_id)

    monkeypatch.setattr(runs, "run_job", run_job)
    more = {"output": output, "run_id": run_id}
    job = {**JOB, **{key: value for key, value in more.items() if value is not None}}
    if data is None:
        job["input"] = {**JOB["input"], "path": "rows.parquet"}
    for _ in range(2):
        with pytest.raises(shoal.ShoalError, match="submitted"):
            shoal.run(job, data)
    own = run_id is None and (data is not None or output is None)
    assert len(set(names)) == 1 + own
    assert run_id is None or names == [run_id] * 2


def test_a_release_is_stored_where_the_job_says(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(PEOPLE, path)
    job = {**JOB, "output": str(tmp_path / "out"), "run_id": "monday"}
    job["input"] = {**JOB["input"], "path": str(path)}
    release = shoal.run(job)
    assert release.values == json.loads((tmp_path / "out" / "release.json").read_text())
    assert release.report == (tmp_path / "out" / "report.html").read_text()
    path.unlink()
    assert shoal.run(job).values == release.values, "the stored release is returned, and no row is read"


@pytest.mark.parametrize(
    ("job", "data", "told"),
    [
        (7, None, r"^job is 7: give a mapping, the text of a job file, or the path of one\.$"),
        ("", None, r"^job is '': give a mapping"),
        ("nowhere.yaml", None, r"^The job file nowhere.yaml does not exist\.$"),
        ("task: [", None, r"^job is not valid YAML: line 1"),
        ("- a\n- b", None, r"^job is not a mapping"),
        ({**JOB, "task": "histogramm"}, PEOPLE, "^task is 'histogramm'"),
        ({**JOB, "params": {"cells": ["x"]}}, PEOPLE, r"^params\.cells"),
        (JOB, None, r"^input\.path is missing"),
        ({**JOB, "input": {"path": "x", "columns": ["age"]}}, PEOPLE, r"^input\.path is given beside data"),
        ({**JOB, "input": 7}, PEOPLE, r"^input is 7: it must be a mapping"),
        ({**JOB, "input": {"columns": ["size"]}}, PEOPLE, r"^input\.columns.*size"),
        ({**JOB, "input": {"columns": ["city"]}}, PEOPLE, r"^input\.columns: city is string in data; used"),
        ({**JOB, "domain": {"lower": [{0}], "upper": [9], "step": 1}}, PEOPLE, r"^domain\.lower\[0\] is {0}"),
    ],
)
def test_a_wrong_argument_is_one_sentence(job: Any, data: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(shoal.ShoalError, match=told) as error:
        shoal.run(job, data)
    assert len(str(error.value).splitlines()) == 1


DAYS = {"lower": ["2026-01-01"], "upper": ["2026-12-31"], "step": "1 day"}
MEDIAN = {"task": "median", "input": {"columns": ["day"]}, "domain": DAYS, "params": {}}
BY_MONTH = {
    "task": "statistics",
    "input": {"columns": ["amount"]},
    "domain": {"lower": [0], "upper": [9], "step": 1},
    "group_by": {"columns": ["day"], "keys": "private", "truncate": {"day": "month"}},
    "privacy": {"epsilon": 1.0, "delta": 1e-6},
    "params": {"measures": ["count"]},
}


def test_dates_as_text_are_converted_as_the_error_says() -> None:
    """The column of a frame is called as its caller knows it, and the advice is followed."""
    frame = pandas.DataFrame({"day": pandas.Series(["2026-03-01", "2026-03-02", None] * 500, dtype="str")})
    frame["amount"] = 1
    text, job = pa.Table.from_pandas(frame), {**MEDIAN, "privacy": {"epsilon": 10.0, "delta": 0}}
    with pytest.raises(shoal.ShoalError) as caught:
        shoal.run(job, text)
    told, advice = str(caught.value).split("; convert the text first, such as by ")
    assert told.startswith("input.columns: day is ") and told.endswith("in data, but domain has dates")
    advice, derived = advice.removesuffix(".").split(", or read it by ")
    dates = eval(advice, {"pandas": pandas, "frame": frame})
    assert shoal.run(job, frame.assign(day=dates)).result["value"] in ("2026-03-01", "2026-03-02")
    assert derived == "date(...) in input.derive"
    read = {**job, "input": {"columns": ["read"], "derive": {"read": "date(day)"}}}
    assert shoal.run(read, text).result["value"] in ("2026-03-01", "2026-03-02")
    with pytest.raises(shoal.ShoalError) as caught:
        shoal.run(BY_MONTH, text)
    told, advice = str(caught.value).split(", so convert the text first, such as by ")
    assert told.endswith("in data; group_by.truncate is for timestamps and dates")
    times = eval(advice.split(", or read it by ")[0], {"pandas": pandas, "frame": frame})
    (month,) = shoal.run(BY_MONTH, frame.assign(day=times)).table.column("day").to_pylist()
    assert (month.year, month.month) == (2026, 3)


def test_dates_of_a_csv_get_a_type_as_the_error_says(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("day\n" + "2026-03-01\n" * 100)
    job = {**MEDIAN, "input": {"columns": ["day"], "types": {"day": "text"}}}
    job["privacy"] = {"epsilon": 10.0, "delta": 0}
    with pytest.raises(
        shoal.ShoalError, match=r"in data\[0\]\.csv, but .*give it the type date in input\.types"
    ):
        shoal.run(job, [tmp_path / "a.csv"])
    job["input"]["types"]["day"] = "date"
    assert shoal.run(job, [tmp_path / "a.csv"]).result["value"] == "2026-03-01"


def test_the_names_of_the_package_are_listed() -> None:
    assert {"run", "plan", "KMeans", "Release"} <= set(dir(shoal))
    assert all(hasattr(shoal, name) for name in dir(shoal))


QUIET = """
import logging
import pyarrow as pa
import shoal
shoal.run({job!r}, pa.table({{"age": [1, 2, 3]}}))
assert logging.root.manager.disable == 0
"""


@pytest.mark.slow
def test_a_run_writes_nothing_to_the_console() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", QUIET.format(job=JOB)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_the_package_imports_nothing_before_it_is_used() -> None:
    """Every process of a function imports it."""
    loaded = "[name for name in ('numpy', 'yaml', 'core') if name in sys.modules]"
    look = f"import logging, shoal, sys; print({loaded}, logging.root.manager.disable)"
    command = [sys.executable, "-c", look]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[] 0\n"
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        _ = shoal.walk  # type: ignore[attr-defined]
