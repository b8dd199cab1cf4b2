"""A first job can be planned once its marked values are filled in, and says nothing of any row."""

import os
import re
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pipelines.choose.first_job import first_job
from pipelines.errors import JobError
from pipelines.job.job import check_raw
from pipelines.job.keys import Key, keys_of_task
from pipelines.job.text import parse_job
from pipelines.looks import look_at_plan
from pipelines.tasks import TASKS
from tests.pipelines.choose.filled import fill

DAYS = np.arange("2021-03-01", "2021-03-05", dtype="datetime64[D]")
TYPED = {
    "name": pa.array(["Ada", "Ben", "Cyd", "Dee"]),
    "day": pa.array(DAYS),
    "height": pa.array([1.71, 1.62, 1.93, 1.55]),
    "weight": pa.array([71, 62, 93, 55]),
    "shoes": pa.array([41, 39, 45, 37], pa.int8()),
    "two\nlines": pa.array([1, 2, 3, 4]),
    "yes: [no]": pa.array([4.0, 3.0, 2.0, 1.0]),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("given", ["nothing", "numbers", "csv"])
def test_a_first_job_of_every_task_can_be_planned_once_it_is_filled_in(task, given):
    path = {"nothing": None, "numbers": "rows.parquet", "csv": "rows.csv"}[given]
    table = pa.table(TYPED)
    pq.write_table(table, "rows.parquet")
    pa.csv.write_csv(table.drop_columns(["two\nlines"]), "rows.csv")
    job = check_raw(parse_job(fill(first_job(task, path)), "job"))
    _, _, refusals = look_at_plan(job)
    assert refusals == []
    assert len(job.input.columns) == len(TASKS[task].columns)
    assert path is None or os.path.basename(job.input.path) == path
    assert job.privacy.epsilon == 1.0
    if given == "numbers":
        assert job.input.columns == ("height", "weight", "shoes")[: len(job.input.columns)]


@pytest.mark.parametrize("task", TASKS)
def test_a_job_that_is_not_filled_in_is_one_sentence_that_names_every_place(task, bench, refused):
    lines = first_job(task)
    said = refused(bench.shoal("plan", bench.write("\n".join(lines))))
    marked = [line.partition(":")[0].strip() for line in lines if "FILL_IN" in line.partition("#")[0]]
    named = said.removeprefix("shoal: ").partition(" are FILL_IN")[0].split(", ")
    assert sorted(name.rpartition(".")[2] for name in named) == sorted(marked)


@pytest.mark.parametrize("task", TASKS)
def test_every_required_key_has_an_example_or_keys_of_its_own(task):
    """Without an example nobody could fill in a marked value by the rule."""

    def missing(keys: tuple[Key, ...]) -> list[str]:
        needed = [key for key in keys if key.required and key.path != ("task",)]
        alone = [key.name for key in needed if not key.parts and key.example is None]
        return [*alone, *(name for key in needed for name in missing(key.parts))]

    assert missing(keys_of_task(task)) == []


KINDS = {
    "whole": (pa.int16(), "such as [0]"),
    "decimal": (pa.decimal128(9, 2), "such as [0]"),
    "date": (pa.date32(), "such as [2020-01-01]"),
    "time": (pa.timestamp("ms"), "such as [2020-01-01T00:00:00]"),
    "zoned": (pa.timestamp("us", "Europe/Zurich"), "such as [2020-01-01T00:00:00Z]"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_bounds_of_an_axis_are_of_its_type(kind):
    """Bounds with a time zone are refused for a column that has none, and the other way around."""
    pq.write_table(pa.table({"text": ["a"], kind: pa.nulls(1, KINDS[kind][0])}), "rows.parquet")
    lines = first_job("median", "rows.parquet")
    assert f"  columns: [{kind}]" in lines
    (lower,) = (line for line in lines if line.startswith("  lower: "))
    assert lower.endswith(KINDS[kind][1])
    (ids,) = (line for line in first_job("triangles", "rows.parquet") if line.startswith("  columns: "))
    assert (kind in ids) == (kind in ("whole", "decimal"))


@pytest.mark.parametrize("task", TASKS)
def test_keys_that_a_job_may_have_are_shown_and_no_others(task):
    lines = first_job(task)
    at = {line.partition(":")[0].strip(" #"): line for line in lines}
    offered = {"where", "neighbors", "ledger", "run_id"}
    assert offered <= set(at) and all(at[key].lstrip().startswith("#") for key in offered)
    assert ("unit" in at) == (TASKS[task].keeps != ())
    assert ("keep" in at) == (TASKS[task].keeps != () and not TASKS[task].subsamples)


def test_other_columns_are_listed_up_to_a_hundred():
    names = [f"c{place}" for place in range(130)]
    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in names}), "wide.parquet")
    says = " ".join(" ".join(first_job("median", "wide.parquet")).replace("#", "").split())
    assert "The columns of the file are c0 (string), c1 (string)," in says
    assert "c99 (string) and 30 more." in says and "c100" not in says


@pytest.mark.parametrize("task", ["median", "quantiles", "one_cluster", "statistics"])
def test_dates_are_axes_where_there_are_no_numbers(task):
    pq.write_table(pa.table({"day": pa.array(DAYS), "night": pa.array(DAYS)}), "days.parquet")
    job = check_raw(parse_job(fill(first_job(task, "days.parquet")), "job"))
    assert job.grid.times is not None
    look_at_plan(job)


def test_nothing_depends_on_a_row():
    """Files of the same names and types give the same job, whatever their rows are, and if there are none."""
    table = pa.table(TYPED)
    found = []
    for name, rows in (("some", table), ("one", table.slice(2, 1)), ("none", table.slice(0, 0))):
        pq.write_table(rows, f"{name}.parquet")
        found.append([line.replace(f"{name}.parquet", "") for line in first_job("median", f"{name}.parquet")])
    assert found[0] == found[1] == found[2]
    text = "\n".join(found[0])
    assert not re.search(r"Ada|1\.71|2021|1\.93", text)
    assert "name (string)" in text and "weight (int64)" in text


def test_columns_of_folders_are_said_to_be(tmp_path):
    (tmp_path / "day=2026-11-03").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "day=2026-11-03" / "a.parquet")
    says = " ".join(" ".join(first_job("median", str(tmp_path))).replace("#", "").split())
    assert "The other columns of the file are day (of folders)." in says


def test_a_csv_file_without_a_header_is_refused_and_its_row_not_quoted():
    with open("rows.csv", "w") as file:
        file.write("Ada,17.25\nBen,18.5\n")
    with pytest.raises(JobError, match="give the file a header") as refused:
        first_job("median", "rows.csv")
    assert "Ada" not in str(refused.value) and "17.25" not in str(refused.value)


def test_a_column_that_a_csv_file_names_twice_is_not_offered():
    with open("rows.csv", "w") as file:
        file.write("age,city,age\n1,Rome,2\n")
    says = " ".join(" ".join(first_job("median", "rows.csv")).replace("#", "").split())
    assert "The columns of the file are city." in says


def test_a_file_that_no_job_could_name_is_refused(bench, refused):
    path = bench.rows.rename(bench.rows.with_name("li\nne.parquet"))
    said = refused(bench.shoal("init", "median", str(path)))
    assert said.startswith("shoal: input.path is ") and "it has control characters" in said


def test_wrong_arguments_are_one_sentence(bench, refused):
    assert "is no task (did you mean median?)" in refused(bench.shoal("init", "medain"))
    assert "does not exist" in refused(bench.shoal("init", "median", str(bench.folder / "none.csv")), 1)


def test_it_prints_what_the_function_returns(bench):
    printed = bench.shoal("init", "median", str(bench.rows))
    assert printed.exit_code == 0
    assert printed.stdout.splitlines() == first_job("median", str(bench.rows))


def test_a_file_of_many_columns_is_looked_at_once(tmp_path):
    """Looking through all names for each name took minutes."""
    path = str(tmp_path / "wide.parquet")
    pq.write_table(pa.table({f"c{place}": pa.array([], pa.float64()) for place in range(20_000)}), path)
    before = time.process_time()
    first_job("median", path)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("task", TASKS)
def test_only_columns_that_the_task_can_take_are_suggested(task):
    """Of CSV it is not known which are numbers; `name` is none."""
    pq.write_table(pa.table({"name": ["Ada"], "shoes": [41]}), "few.parquet")
    pa.csv.write_csv(pa.table({"name": ["Ada"], "shoes": [41]}), "few.csv")
    for path in ("few.parquet", "few.csv"):
        (line,) = (line for line in first_job(task, path) if line.startswith("  columns: "))
        assert "name" not in line
        assert ("shoes" in line) == (path == "few.parquet")


def test_a_column_that_no_job_can_name_is_not_suggested():
    """One of two of the same name, or one whose name has control characters."""
    columns = [pa.array([value]) for value in (1, 2, 3, 4)] + [pa.nulls(1, pa.timestamp("s", "\x1b[1m"))]
    names = ["twice", "twice", "bell\a", "plain", "when"]
    pq.write_table(pa.table(columns, names=names), "odd.parquet")
    text = "\n".join(first_job("statistics", "odd.parquet"))
    assert "  columns: [plain]" in text and "twice" not in text and "bell" not in text
    assert "tz=?[1m" in text and "\x1b" not in text  # which a terminal would obey


@pytest.mark.parametrize("task", TASKS)
def test_a_first_job_has_delta_0_where_that_changes_no_method(task):
    assert "docs/" not in "\n".join(first_job(task))
    job = parse_job(fill(first_job(task)), "job")
    if job["privacy"]["delta"] == 0:
        methods = [
            look_at_plan(check_raw({**job, "privacy": {"epsilon": 1.0, "delta": delta}}))[0]["method"]
            for delta in (0, 1e-9)
        ]
        assert methods[0] == methods[1]
    assert (job["privacy"]["delta"] == 0) == TASKS[task].pure
