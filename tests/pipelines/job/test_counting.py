"""Statistics that only count need no column and no domain."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import shoal
from pipelines.errors import JobError
from pipelines.job.job import check_job, check_raw
from pipelines.job.schema import schema, schema_of_task
from tests.pipelines.conftest import Bench

ROWS = pa.table({"name": ["a", "b", None, "a"] * 25, "city": ["Bern", "Ulm", "Ulm", None] * 25})
JOB: dict[str, Any] = {
    "task": "statistics",
    "input": {"path": "/rows.parquet"},
    "params": {"measures": ["count"]},
    "privacy": {"epsilon": 100.0, "delta": 1e-6},
    "output": "/out",
}
CITIES = {"columns": ["city"], "keys": ["Bern", "Ulm", "Rom"]}


def write(folder: Any, kind: str) -> str:
    """Write the rows as a file of a format; return its path."""
    path = f"{folder}/rows.{kind}"
    if kind == "jsonl":
        (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS.to_pylist()))
    else:
        writers = {"parquet": pq.write_table, "csv": pa.csv.write_csv, "arrow": pa.feather.write_feather}
        writers[kind](ROWS, path)
    return path


def count(release: shoal.Release) -> int:
    """Return the number of rows."""
    (value,) = release.result["values"]
    return int(value["value"])


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "jsonl"])
def test_every_row_counts_in_files_of_every_format(kind: str, tmp_path: Any) -> None:
    """Also where no column of the file is read at all."""
    job = {key: JOB[key] for key in ("task", "params", "privacy")}
    job |= {"input": {"path": write(tmp_path, kind)}, "output": str(tmp_path / "out")}
    assert count(shoal.run(job)) == 100


def test_rows_and_units_of_groups_are_counted() -> None:
    """Rows without a key are in no group, and those without a unit are left out. No other null matters."""
    job = {**JOB, "input": {}, "group_by": CITIES}
    del job["output"]
    table = shoal.run(job, ROWS).table
    assert table is not None
    assert table.column("city").to_pylist() == CITIES["keys"]
    assert table.column("count").to_pylist() == [25, 50, 0]
    of_units = {**job, "input": {"unit": "name"}, "params": {"measures": ["count", "units"]}}
    table = shoal.run({**of_units, "contributions": {"groups": 1, "rows": 25}}, ROWS).table
    assert table is not None
    assert table.column("count").to_pylist() == pytest.approx([25, 25, 0], abs=12)  # fails 1 in 10^10 times
    assert table.column("units").to_pylist() == [1, 1, 0]


def test_groups_are_counted_under_replace_one_too() -> None:
    """The column `each row` is null in no row, whatever it is replaced by."""
    privacy = {**JOB["privacy"], "neighbors": "replace_one"}
    job = {**JOB, "input": {}, "group_by": CITIES, "privacy": privacy}
    del job["output"]
    table = shoal.run(job, ROWS).table
    assert table is not None
    assert table.column("count").to_pylist() == [25, 50, 0]
    with pytest.raises(
        shoal.ShoalError, match=r"input\.derive is given and privacy\.neighbors is replace_one"
    ):
        shoal.run({**job, "input": {"derive": {"one": "1", "n": "length(name)"}}}, ROWS)


def test_questions_may_only_count_beside_others() -> None:
    middle = {"task": "median", "columns": ["n"], "domain": {"lower": [0], "upper": [9], "step": 1}}
    many = {"task": "statistics", "params": {"measures": ["count"]}}
    job = {
        "input": {"derive": {"n": "length(name)"}},
        "privacy": JOB["privacy"],
        "questions": {"middle": middle, "many": many},
    }
    release = shoal.run(job, ROWS)
    assert count(release.answers["many"]) == 100
    assert release.answers["middle"].result["value"] == 1


def test_such_a_job_may_say_all_that_it_leaves_out() -> None:
    rows = {**JOB["input"], "columns": ["each row"], "derive": {"each row": "1"}, "checks": 0}
    said = {**JOB, "input": rows, "domain": {"lower": [0], "upper": [1], "step": 1}}
    assert check_job(said).hash() == check_job(JOB).hash()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"params": {"measures": ["count", "mean"]}}, "input.columns is missing"),
        ({"domain": {"lower": [0], "upper": [1], "step": 1}}, "input.columns is missing"),
        ({"input": {"path": "/a", "columns": ["x"]}}, "domain is missing"),
        ({"params": {"measures": []}}, "input.columns is missing"),
        ({"task": "median", "params": {}}, "input.columns is missing"),
        ({"input": {"path": "/a", "where": "1"}}, "input.where: it names no column"),
        ({"input": {"path": "/a", "derive": {"y": "true"}}}, "input.derive.y: it names no column"),
        ({"input": {"path": "/a", "derive": "y"}}, "input.derive is 'y'"),
        ({"input": {"path": "/a", "derive": {"each row": "x + 5"}}}, "input.columns is missing"),
    ],
)
def test_other_jobs_need_a_column_as_before(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError) as refused:
        check_raw({**JOB, **changes})
    assert any(sentence.startswith(said) for sentence in refused.value.args), refused.value.args


def test_nothing_is_said_of_values_and_no_budget_is_spent_on_them(bench: Bench) -> None:
    job = {**JOB, "input": {"path": str(bench.rows)}, "output": str(bench.folder / "new")}
    plan = bench.shoal("plan", bench.write(job), "--json")
    values = json.loads(plan.stdout)
    assert "Rows count whatever their values are." in values["notes"]
    assert not [note for note in values["notes"] if "moved" in note]
    assert values["rounds"][0]["share"] == 1


def test_it_does_not_matter_which_row_of_a_unit_is_kept_where_units_are_counted(bench: Bench) -> None:
    job = {**JOB, "input": {"unit": "name"}, "params": {"measures": ["units"]}}
    del job["output"]
    told = "Each unit counts once, however many rows it has."
    middle = {"task": "median", "columns": ["n"], "domain": {"lower": [0], "upper": [9], "step": 1}}
    beside = {"input": {"unit": "name", "derive": {"n": "length(name)"}}, "privacy": JOB["privacy"]}
    several = {**beside, "questions": {"many": {key: job[key] for key in ("task", "params")}, "n": middle}}
    alone = shoal.run(job, ROWS)
    assert told in " ".join(alone.values["notes"])
    assert "kept" not in str(alone) + str(shoal.run(several, ROWS).answers["many"])
    assert "random row" not in str(alone.report)
    assert "kept      one random row of each unit" in str(shoal.run(several, ROWS))
    own = {**job["input"], "columns": ["each row"], "derive": {"each row": "length(name)"}}
    release = shoal.run({**job, "input": own, "domain": middle["domain"]}, ROWS)
    assert "one random row" in str(release)


def test_the_schema_lets_them_out_of_statistics_alone() -> None:
    own = schema_of_task("statistics")
    assert "domain" not in own["required"]
    assert "columns" not in own["$defs"]["StatisticsInput"]["required"]
    whole = schema()["$defs"]
    assert "columns" not in whole["Question_of_statistics"]["required"]
    assert "domain" in schema_of_task("median")["required"]
    assert {"columns", "domain"} <= set(whole["Question_of_median"]["required"])
