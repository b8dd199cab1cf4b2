"""Every column of a file becomes a question that can be planned; a run answers all of them well."""

import datetime
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pipelines.describe.columns import PROBABILITIES, describe
from pipelines.errors import JobError
from pipelines.job.job import check_raw
from pipelines.job.text import parse_job
from pipelines.looks import look_at_plan
from pipelines.run.run import prepare_run
from tests.transforms.formats import WRITERS
from tests.transforms.test_evaluate_expression import run

ROWS = 20_000
FIRST = datetime.date(2020, 1, 1)


def table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    spent = np.round(rng.lognormal(3, 1, rows), 2)
    days = rng.integers(0, 300, rows)
    city = rng.choice(["Oslo", "Rome", "Lima"], rows, p=[0.6, 0.3, 0.1])
    return pa.table(
        {
            "age": pa.array(rng.integers(18, 90, rows)),
            "small": pa.array(rng.integers(0, 4, rows), pa.uint8()),
            "spent": pa.array(np.where(np.arange(rows) % 5 == 0, np.nan, spent)),
            "city": pa.array(city).dictionary_encode(),
            "home": pa.array(["only here" if i == 0 else "town" for i in range(rows)]),
            "works": pa.array(rng.random(rows) < 0.25),
            "day": pa.array([FIRST + datetime.timedelta(int(each)) for each in days]),
            "time": pa.array(rng.integers(0, 10**9, rows), pa.timestamp("s")),
            "seen": pa.array(rng.integers(0, 10**15, rows), pa.timestamp("us", "UTC")),
            'odd `na"me': pa.array(rng.integers(-5, 5, rows)),
            "list": pa.array([[1]] * rows),
            "person": pa.array(np.arange(rows) // 2),
        }
    )


DESCRIBED = 10
"""Columns of the table beside the list and the unit."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


RANGES = {
    pa.int8(): (-128, 127),
    pa.uint16(): (0, 65_535),
    pa.int64(): (-(2**61), 2**61 - 1),
    pa.uint64(): (0, 2**62 - 1),
    pa.float32(): (-2 * 10**18, 2 * 10**18),
    pa.decimal128(9, 2): (-2 * 10**18, 2 * 10**18),
}


@pytest.mark.parametrize("kind", RANGES)
def test_the_bounds_of_a_column_are_those_of_its_type(kind):
    pq.write_table(pa.table({"value": pa.nulls(2, kind)}), "rows.parquet")
    described = describe("rows.parquet", 1.0, 1e-9)
    grid = check_raw(dict(described.job)).jobs["1-value"].grid
    assert (grid.lower, grid.upper) == tuple((end,) for end in RANGES[kind])
    assert [each.name for each in described.columns] == ["value"]


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [
        (pa.date32(), "0001-01-01", "9999-12-30"),
        (pa.timestamp("ms"), "0001-01-01T00:00:00", "9999-12-30T00:00:00"),
        (pa.timestamp("us", "Europe/Zurich"), "0001-01-01T00:00:00Z", "9999-12-30T00:00:00Z"),
    ],
)
def test_times_may_be_of_any_year(kind, first, last):
    pq.write_table(pa.table({"x": pa.nulls(1, kind)}), "t.parquet")
    domain = describe("t.parquet", 1.0, 0.0).job["questions"]["1-x"]["domain"]
    assert (domain["lower"], domain["upper"]) == ([first], [last])


def test_rows_of_both_values_of_a_boolean_are_counted():
    pq.write_table(pa.table({"x": pa.nulls(1, pa.bool_())}), "t.parquet")
    group_by = describe("t.parquet", 1.0, 0.0).job["questions"]["1-x"]["group_by"]
    assert group_by == {"columns": ["x"], "keys": [True, False]}


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_numbers_beyond_the_largest_are_moved_to_it_and_none_is_lost(kind):
    """They are counted in millionths, which are whole numbers of 64 bits."""
    values = [0.25, -1.5, 3e12, -3e12, 1e30, -1e30, math.inf, -math.inf]
    written = pa.array(values, kind)
    pq.write_table(pa.table({"x": written}), "table.parquet")
    job = describe("table.parquet", 1.0, 0.0).job
    asked = job["questions"]["1-x"]
    found = run(job["input"]["derive"][asked["columns"][0]], x=written)
    (low,), (high,) = asked["domain"]["lower"], asked["domain"]["upper"]
    assert found == [250_000, -1_500_000, high, low, high, low, high, low]


def test_the_job_follows_from_the_schema_alone():
    jobs = []
    for rows in (4, 40):
        pq.write_table(table(rows), "rows.parquet")
        described = describe("rows.parquet", 1.0, 1e-9, "person")
        jobs.append(described)
    assert jobs[0] == jobs[1]
    assert len(jobs[0].columns) == DESCRIBED
    job = check_raw(dict(jobs[0].job))
    assert job.unit == "person"
    bounds = [job.jobs[name].bounds for name in ("4-city", "5-home", "6-works")]
    assert {(each.groups, each.rows) for each in bounds} == {(1, 1)}, "a unit counts once"
    assert jobs[0].others == ["list (list<element: int64>)"]


def test_all_of_the_budget_is_for_what_is_shown():
    """No question counts rows that are left out or moved, and none has more than the others."""
    pq.write_table(table(4), "rows.parquet")
    job = check_raw(dict(describe("rows.parquet", 1.0, 1e-9).job))
    assert {asked.checks for asked in job.jobs.values()} == {0}
    assert set(job.shares.values()) == {1}
    nulls = job.jobs["rows"].grid  # a share is of numbers from 0 to 1
    assert set(zip(nulls.lower, nulls.upper, strict=True)) == {(0.0, 1.0)}


def test_texts_of_any_size_are_described():
    kinds = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
    pq.write_table(pa.table({f"c{i}": pa.nulls(1, kind) for i, kind in enumerate(kinds)}), "rows.parquet")
    described = describe("rows.parquet", 1.0, 1e-9, overrides=["output=elsewhere"])
    assert [each.name for each in described.columns] == ["c0", "c1", "c2"] and not described.others
    assert described.job["output"] == "elsewhere"


def test_the_printed_job_is_the_job_that_runs(bench):
    pq.write_table(table(4), "rows.parquet")
    printed = bench.shoal("describe", "rows.parquet", "--job", "--unit", "person", "--set", "run_id=7")
    assert printed.exit_code == 0, printed.output
    described = describe("rows.parquet", 1.0, 1e-9, "person", (), ["run_id=7"])
    assert check_raw(parse_job(printed.stdout, "job")).hash() == check_raw(dict(described.job)).hash()


def test_all_columns_share_the_budget():
    pq.write_table(pa.table({"small": pa.array([1], pa.int8()), "home": ["town"]}), "rows.parquet")
    job = check_raw(dict(describe("rows.parquet", 0.5, 1e-9).job))
    planned, _, refusals = look_at_plan(job)
    assert refusals == []
    assert 0.45 < planned["privacy"]["epsilon"] <= 0.5
    assert job.privacy.neighbors == "add_or_remove_one"


TYPES = {
    "age": "integer",
    "spent": "number",
    "city": "text",
    "works": "boolean",
    "day": "date",
    "time": "timestamp",
}


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_file_without_types_is_described_by_types_that_are_given(ending):
    """The questions are those about Parquet, and a run reads the columns by these types."""
    rows = table(4).select(list(TYPES)).set_column(2, "city", pa.array(["Oslo", "Rome", "Lima", None]))
    pq.write_table(rows, "rows.parquet")
    WRITERS[ending](rows, Path(f"rows{ending}"))
    known = describe("rows.parquet", 1.0, 1e-9)
    given = describe(f"rows{ending}", 1.0, 1e-9, types=TYPES)
    assert given.job["questions"] == known.job["questions"]
    assert [each.question for each in given.columns] == [each.question for each in known.columns]
    assert given.job["input"] == {**known.job["input"], "path": f"rows{ending}", "types": TYPES}
    sources = prepare_run(check_raw(dict(given.job))).sources
    kinds = {file.types for source in sources.values() for file in source.files}
    assert {name for each in kinds for name, _ in each} == set(TYPES)
    unit = describe(f"rows{ending}", 1.0, 1e-9, "home", types={"age": "integer"})
    assert [each.name for each in unit.columns] == ["age"]


def test_columns_are_chosen_by_name_and_texts_need_delta():
    pq.write_table(table(4), "rows.parquet")
    described = describe("rows.parquet", 1.0, 0.0, None, ["home", "age", "age"])
    assert [each.name for each in described.columns] == ["age"]
    assert described.others == ["home (string: texts need delta)"]
    with pytest.raises(JobError, match=r"described: .* Not described: home \(string: texts need delta\)\."):
        describe("rows.parquet", 1.0, 0.0, None, ["home"])


def test_a_text_with_the_name_of_its_numbers_is_left_out():
    taken = ["count", "count_error", "count_2", "count_low", "count_2_high"]
    pq.write_table(pa.table({name: ["a"] for name in (*taken, "c", "counts")}), "rows.parquet")
    described = describe("rows.parquet", 1.0, 1e-9)
    assert [each.name for each in described.columns] == ["c", "counts"]
    assert all("rename it" in other for other in described.others) and len(described.others) == len(taken)


def wrong(bench, refused, *arguments: str) -> str:
    return refused(bench.shoal("describe", *arguments))


def test_bad_input_is_one_sentence(bench, refused):
    pq.write_table(table(4), "rows.parquet")
    pq.write_table(pa.table({"list": pa.array([[1]])}), "lists.parquet")
    pq.write_table(pa.table({f"c{i}": [1] for i in range(51)}), "wide.parquet")
    pq.write_table(pa.table({"a": [1], "nulls of a": [1]}), "taken.parquet")
    pq.write_table(pa.table({"a": [1.5], "a * 1000000": [1]}), "parts.parquet")
    pyarrow.csv.write_csv(pa.table({"a": [1]}), "rows.csv")
    assert "did you mean age?" in wrong(bench, refused, "rows.parquet", "--columns", "aeg")
    assert "--unit: rows.parquet has no column 'nobody'" in wrong(
        bench, refused, "rows.parquet", "--unit", "nobody"
    )
    assert "that can be described" in wrong(bench, refused, "lists.parquet")
    assert "at most 50" in wrong(bench, refused, "wide.parquet")
    assert "nulls of a" in wrong(bench, refused, "taken.parquet")
    assert "a column a * 1000000, which is" in wrong(bench, refused, "parts.parquet")
    assert "is CSV, which has no types" in wrong(bench, refused, "rows.csv")
    assert "(did you mean integer?)" in wrong(bench, refused, "rows.csv", "--types", "a=integr")
    assert "--types is 'a'" in wrong(bench, refused, "rows.csv", "--types", "a")
    assert "give each column once" in wrong(bench, refused, "rows.csv", "--types", "a=integer,a=text")
    assert "b is missing from rows.csv" in wrong(bench, refused, "rows.csv", "--types", "b=text")
    assert "questions" in wrong(bench, refused, "rows.parquet", "--set", "questions.x.share=2")
    assert "privacy.epsilon" in wrong(bench, refused, "rows.parquet", "--epsilon", "-1")
    says = wrong(bench, refused, "rows.parquet", "--epsilon", "nan")
    assert "privacy.epsilon" in says and "--set" not in says
    assert "nothing.parquet" in refused(bench.shoal("describe", "nothing.parquet"), 1)  # it may come later
    for name in ("epsilon", "delta"):
        twice = (f"--{name}", "0.5", "--set", f"privacy.{name}=0.25", "--job")
        said = refused(bench.shoal("describe", "rows.parquet", *twice))
        assert f"--{name} and --set privacy.{name} are given: leave one of them out." in said
        assert bench.shoal("describe", "rows.parquet", *twice[2:]).exit_code == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["--unit", "person", "--set", "input.unit=home"],
            "--unit and --set input.unit are given: leave one",
        ),
        (
            ["--unit", "person", "--set", "input={path: rows.parquet}"],
            "--unit and --set input.unit are given",
        ),
        (["--set", "input.unit=person"], "--set input.unit is given, but describe takes it by --unit alone"),
        (
            ["--set", "input.path=other.parquet"],
            "--set input.path is given, but describe takes it by FILE alone",
        ),
        (["--set", "input.types={a: text}"], "--set input.types is given, but describe takes it by --types"),
        (
            ["--epsilon", "1", "--set", "privacy={epsilon: 2}"],
            "--epsilon and --set privacy.epsilon are given",
        ),
        (["--epsilon", "1", "--set", "privacy=2"], "--epsilon and --set privacy.epsilon are given"),
    ],
)
def test_no_option_is_overruled_in_silence(bench, refused, given, says):
    pq.write_table(table(4), "rows.parquet")
    assert says in refused(bench.shoal("describe", "rows.parquet", "--job", *given))


def test_a_description_says_what_is_not_read(bench):
    Path("in").mkdir()
    pq.write_table(table(), "in/rows.parquet")
    Path("in/notes.txt").write_text("none")
    printed = bench.shoal("describe", "in", "--job")
    assert printed.exit_code == 0 and "has what is not read; files not named as" in printed.stderr
    made = bench.shoal("init", "median", "in")
    assert made.exit_code == 0 and made.stderr == printed.stderr


def test_a_name_that_no_expression_can_have_is_left_out():
    pq.write_table(pa.table({"a\\b": [1], "c": [1]}), "rows.parquet")
    assert describe("rows.parquet", 1.0, 0.0).others == ["a\\b (int64)"]
    with pytest.raises(JobError, match="did you mean c"):
        describe("rows.parquet", 1.0, 0.0, None, ["C"])


def rank_error(values: list, answered: list) -> float:
    """Return the mean error of a rank, as a share of the rows."""
    ordered, errors = sorted(values), []
    for p, value in zip(PROBABILITIES, answered, strict=True):
        below, upto = (np.searchsorted(ordered, value, side) / len(ordered) for side in ("left", "right"))
        errors.append(max(0, below - p, p - upto))
    return float(np.mean(errors))


def test_a_run_describes_every_column(bench):
    """Ranks of every column are off by less than 15% on average.

    The plan promises every rank within 2,342 rows, of 16,000 at least, but for a failure of 1e-7 a column. A
    column that is taken for another one, or is not turned back into its units, is off by a quarter or more.
    """
    rows = table()
    Path("in").mkdir()
    pq.write_table(rows, "in/rows.parquet")
    bench.shoal("ledger", "create", "book.json", "--epsilon", "6", "--delta", "1e-8")
    run = ["describe", "in/rows.parquet", "--epsilon", "5", "--set", "privacy.ledger=book.json"]
    run += ["--columns", "age,small,spent,city,home,works,day,time,list"]
    first, again = bench.shoal(*run), bench.shoal(*run)
    assert first.exit_code == again.exit_code == 0, first.output
    assert first.stdout == again.stdout
    assert "no row was read" in again.stderr
    (place,) = Path("releases").glob("*/release.json")
    release = json.loads(place.read_text())
    assert release["privacy"]["epsilon"] <= 5
    (charge,) = json.loads(Path("book.json").read_text())["charges"]
    assert charge["epsilon"] <= 5

    def of(name: str) -> list:
        (found,) = (each for key, each in release["answers"].items() if key.endswith(f"-{name}"))
        return found["result"]["values"]

    spent = [value for value in rows["spent"].to_pylist() if value == value]
    errors = [
        rank_error(rows["age"].to_pylist(), of("age")),
        rank_error(rows["small"].to_pylist(), of("small")),
        rank_error(spent, [value / 1e6 for value in of("spent")]),
        rank_error([str(each) for each in rows["day"].to_pylist()], of("day")),
        rank_error([each.isoformat() for each in rows["time"].to_pylist()], of("time")),
    ]
    assert max(errors) < 0.15
    nulls = [each["value"] for each in release["answers"]["rows"]["result"]["values"]]
    assert abs(nulls[0] - ROWS) < 2000
    assert abs(nulls[3] - 0.2) < 0.1
    assert "Oslo 1" in first.stdout and "town " in first.stdout
    assert "only here" not in first.stdout
    assert "Not described: list" in first.stdout
