"""Jobs on dates: what is refused in one sentence, and what a run writes."""

import json
import pickle
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.marks import Mark, translate
from core.one_cluster import found as one_cluster
from core.quantiles import found as quantiles
from pipelines.answers.text import number, on_grid
from pipelines.dates import Instant, Span
from pipelines.errors import JobError
from pipelines.job.job import check_job, check_several
from pipelines.report.summary import summary_of
from pipelines.run.cost import made_up
from pipelines.run.run import prepare_run, run_job
from pipelines.run.screen import screen
from pipelines.storage.locate import open_folder
from pipelines.table import TABLE
from transforms.list_files import InputError

YEAR = {"lower": ["2013-01-01"], "upper": ["2013-12-31"], "step": "1 day"}
HOURS = {"lower": ["2013-01-01T00:00:00Z"], "upper": ["2014-01-01T00:00:00Z"], "step": "1 hour"}
NAIVE = {"lower": ["2013-01-01T00:00:00"], "upper": ["2014-01-01T00:00:00"], "step": "1 hour"}
TWO = {"lower": ["2013-01-01"] * 2, "upper": ["2013-12-31"] * 2, "step": "1 day"}
REPLACED = {"neighbors": "replace_one"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows whose days are about the 31st of May 2013; a few are out of the year."""
    rng, n = np.random.default_rng(0), 9000
    days = 15706 + np.clip(np.rint(rng.normal(150, 40, n)), -5, 370).astype(np.int64)
    times = days * 86_400_000_000 + rng.integers(0, 86_400_000_000, n)
    path = tmp_path_factory.mktemp("dates") / "rows.parquet"
    table = {
        "day": pa.array(days.astype(np.int32)).cast(pa.date32()),
        "time": pa.array(times).cast(pa.timestamp("us", "Europe/Berlin")),
        "naive": pa.array(times // 1000).cast(pa.timestamp("ms")),
        "city": rng.choice(["a", "b", "c"], n),
        "x": rng.uniform(0, 1, n),
    }
    pq.write_table(pa.table(table), path, row_group_size=4000)
    return path


def job(data: Path, output: Path, columns: list[str] | None = None, **changed: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "task": "median",
        "input": {"path": str(data), "columns": columns or ["day"], "checks": 0.0},
        "domain": YEAR,
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "params": {},
        "output": str(output / "{run_id}"),
    }
    for key, value in changed.items():
        made[key] = {**made[key], **value} if key in ("input", "privacy") else value
    return made


def run(made: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
    checked = check_job(dict(made))
    run_job(checked)
    folder = Path(checked.output)
    return json.loads((folder / "release.json").read_text()), folder


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"domain": {**YEAR, "lower": ["2013-02-30"]}}, "domain.lower has '2013-02-30': write a number, a date"),
    ({"domain": {**YEAR, "lower": [0]}}, "domain.lower has 0.0 beside a date"),
    ({"domain": {**YEAR, "step": 1}}, "domain.step is 1.0: between dates or timestamps write a whole number"),
    ({"domain": {**YEAR, "step": "0 days"}}, "domain.step is '0 days': write a whole number"),
    ({"domain": {**YEAR, "step": "3 days"}}, "domain.step is 3 days, which does not divide the time from"),
    ({"domain": {**YEAR, "step": "1 month"}},
     "domain.step is '1 month': not every month has the same length"),
    ({"domain": {**YEAR, "step": "1 hour"}}, "domain.step is 1 hour: between dates it must be whole days"),
    ({"domain": {**YEAR, "upper": ["2012-12-31"]}},
     "domain.lower has 2013-01-01 and upper 2012-12-31: lower"),
    ({"domain": {**YEAR, "upper": ["2013-12-31", "2014-01-01"]}}, "domain.lower has 1 and upper 2 values"),
    ({"domain": {**YEAR, "upper": ["2013-12-31T00:00:00"]}},
     "domain.lower and upper have a date and a timestamp"),
    ({"domain": {"lower": [0], "upper": [1], "step": "1 day"}}, "domain.step is '1 day': between numbers"),
    ({"domain": {**YEAR, "ball": {"center": [1], "radius": 1}}}, "domain.ball is given and domain has dates"),
    ({"domain": {"lower": ["2013-01-01", 0], "upper": ["2013-12-31", 1], "step": "1 day"},
      "columns": ["day", "x"]}, "domain has dates and numbers in axes [1]: all must be of one kind"),
    ({"task": "threshold", "domain": TWO, "columns": ["day", "x"]},
     "domain has dates: the label, from 0 to 1"),
    ({"task": "triangles", "domain": TWO, "columns": ["day", "x"]},
     "domain has dates: columns of triangles are"),
    ({"input": {"unit": "city", "keep": "sum"}}, "input.keep is sum and domain has dates: a sum is a number"),
    ({"input": {"unit": "city", "keep": "count"}}, "input.keep is count and domain has dates"),
    ({"task": "statistics", "params": {"measures": ["sum"]}}, "params.measures has sum and domain has dates"),
    ({"task": "cdf", "params": {"ranges": [[5, 6]]}}, "params.ranges has 5.0: as domain has dates"),
    ({"task": "cdf", "params": {"ranges": [["2013-05-02", "2013-05-01"]]}}, "params.ranges has [2013-05-02"),
    ({"task": "cdf", "params": {"ranges": [["2013-05-02", "2013-05-03T00:00"]]}}, "like 2013-01-01"),
    ({"task": "cdf", "domain": HOURS, "params": {"ranges": [["2013-05-02T00:00"] * 2]}},
     "like 2013-01-01T00:00:00Z"),
    ({"task": "cdf", "domain": {"lower": [0], "upper": [1], "step": 0.1},
      "params": {"ranges": [["2013-05-02", 1]]}}, "params.ranges[0][0] is '2013-05-02': it must be a number"),
    ({"privacy": {**REPLACED, "policy": {"distance": 3}}},
     "privacy.policy.distance has 3.0: as domain has dates"),
    ({"privacy": {**REPLACED, "policy": {"distance": "3 hours"}}}, "1, 2, 3, ... times domain.step, 1 day"),
    ({"privacy": {**REPLACED, "policy": {"distance": "1 month"}}},
     "write a number and a unit, such as 3 days"),
    ({"privacy": {**REPLACED, "policy": {"partition": ["3 days", "3 days"]}}}, "give one width per axis"),
    ({"privacy": {**REPLACED, "policy": {"distance": "900 days"}}}, "larger than the domain's 364"),
    ({"task": "histogram", "params": {"cells": 400}}, "params.cells is 400 on an axis of 365 grid points"),
    ({"task": "one_cluster", "params": {"target": 9}, "domain": {**NAIVE, "step": "1 millisecond"},
      "columns": ["naive"]}, "domain.step is 1 millisecond, which makes more than 2^31 steps of axis 0"),
    ({"domain": HOURS},
     "input.columns: day is date32[day] in rows.parquet, but domain has timestamps with a zone"),
    ({"columns": ["time"]},
     "but domain has dates; give a column of these, or write its bounds like 2013-01-31T"),
    ({"columns": ["naive"], "domain": HOURS}, "or write its bounds like 2013-01-31T06:00:00."),
    ({"columns": ["time"], "domain": NAIVE}, "or write its bounds like 2013-01-31T06:00:00Z."),
    ({"columns": ["x"]}, "input.columns: x is double in rows.parquet, but domain has dates; give a column"),
    ({"domain": {"lower": [0], "upper": [1], "step": 0.1}},
     "if the job has a domain, write its bounds as dates"),
]  # fmt: skip


@pytest.mark.parametrize("changed, message", WRONG)
def test_what_is_wrong_is_one_sentence(
    data: Path, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises((JobError, InputError)) as caught:
        prepare_run(check_job(job(data, tmp_path, **changed)))
    assert message in str(caught.value) and str(caught.value).count("\n") == 0, str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_run_answers_with_dates(data: Path, tmp_path: Path) -> None:
    release, folder = run(job(data, tmp_path))
    assert "2013-05-25" < release["result"]["value"] < "2013-06-06"
    assert release["domain"] == {"columns": ["day"], **YEAR, "ball": None}
    page = (folder / "report.html").read_text()
    lines = "\n".join(summary_of(open_folder(str(folder)), release))
    assert release["result"]["value"] in page and release["result"]["value"] in lines
    assert "day from 2013-01-01 to 2013-12-31; step 1 day" in page


def test_a_mean_of_dates_has_a_time_of_the_day(data: Path, tmp_path: Path) -> None:
    release, folder = run(job(data, tmp_path, task="statistics", params={"measures": ["mean", "variance"]}))
    mean, variance = release["result"]["values"]
    assert (
        "2013-05-25" < mean["value"] < "2013-06-06"
        and "T" in mean["value"]
        and mean["error"].endswith(" days")
    )
    assert 1000 < variance["value"] < 3000  # squared days, of a standard deviation of 40
    assert "squared steps of 1 day" in "\n".join(summary_of(open_folder(str(folder)), release))


def test_tables_have_the_types_of_dates(data: Path, tmp_path: Path) -> None:
    cells = {"task": "histogram", "params": {"cells": 52}}
    _, folder = run(job(data, tmp_path, **cells))
    days = pq.read_table(folder / TABLE)
    assert days.schema.field("lower_0").type == pa.date32()
    assert days["lower_0"][1].as_py() == days["upper_0"][0].as_py() == date(2013, 1, 8)
    weeks = {"lower": ["2013-01-07"], "upper": ["2013-12-29"], "step": "1 day"}  # Monday to Sunday: 356 steps
    _, folder = run(job(data, tmp_path, domain=weeks, task="histogram", params={"cells": 51}))
    days = pq.read_table(folder / TABLE)
    first = [date(2013, 1, 7) + timedelta(weeks=week) for week in range(51)]
    assert days["lower_0"].to_pylist() == first
    assert days["upper_0"].to_pylist() == [*first[1:], date(2013, 12, 29)]
    measures = {"measures": ["count", "mean", "variance", {"quantiles": [0.5]}]}
    by = {"columns": ["city"], "keys": ["a", "b"]}
    of = {"task": "statistics", "params": measures, "group_by": by}
    _, folder = run(job(data, tmp_path, ["time"], domain={**HOURS, "step": "12 hours"}, **of))
    groups = pq.read_table(folder / TABLE)
    for name in ("mean", "quantile_0.5", "quantile_0.5_low", "quantile_0.5_high"):
        assert groups.schema.field(name).type.tz == "UTC"
    assert datetime(2013, 5, 25, tzinfo=UTC) < groups["mean"][0].as_py() < datetime(2013, 6, 6, tzinfo=UTC)
    assert 0 < groups["mean_error"][0].as_py() < 400  # hours
    assert groups.schema.field("variance").type == pa.float64()
    each, folder = run(job(data, tmp_path, group_by=by, **cells))
    assert pq.read_table(folder / TABLE).schema.field("upper_0").type == pa.date32()
    assert (folder / "report.html").read_text().count("2013-") > 20 and len(each["groups"]) == 2


def test_questions_about_dates_and_numbers_share_a_run(data: Path, tmp_path: Path) -> None:
    asked = {
        "days": {"task": "median", "columns": ["day"], "domain": YEAR, "params": {}},
        "hours": {
            "task": "cdf",
            "columns": ["time"],
            "domain": HOURS,
            "params": {"ranges": [["2013-05-01T00:00:00+02:00", "2013-06-01T00:00:00Z"]]},
        },
        "x": {
            "task": "median",
            "columns": ["x"],
            "domain": {"lower": [0], "upper": [1], "step": 0.01},
            "params": {},
        },
    }
    whole = job(data, tmp_path)
    made = {
        "input": {"path": str(data)},
        "privacy": whole["privacy"],
        "output": whole["output"],
        "questions": asked,
    }
    checked = check_several(made)
    run_job(checked)
    answers = json.loads((Path(checked.output) / "release.json").read_text())["answers"]
    assert answers["days"]["result"]["value"].startswith("2013-0")
    assert answers["hours"]["result"]["ranges"][0]["low"] == "2013-04-30T22:00:00Z"
    assert 0.3 < answers["x"]["result"]["value"] < 0.7


def test_rows_are_screened_by_a_ball_of_dates(data: Path, tmp_path: Path) -> None:
    release, folder = run(job(data, tmp_path, task="one_cluster", params={"target": 2000}))
    center, radius = date.fromisoformat(release["result"]["center"][0]), release["result"]["radius"]
    screen(str(folder), str(data), str(tmp_path / "screened"))
    days = {
        part: [
            day
            for file in (tmp_path / "screened" / part).iterdir()
            for day in pq.read_table(file)["day"].to_pylist()
        ]
        for part in ("inside", "outside")
    }
    most = int(radius.split()[0])
    assert radius.split()[1] in ("day", "days") and len(days["inside"]) > 1000
    assert all(abs((day - center).days) <= most for day in days["inside"])
    assert all(abs((day - center).days) > most for day in days["outside"])


def test_made_up_rows_are_of_the_kind_of_the_domain(data: Path, tmp_path: Path) -> None:
    for column, domain, kind in (
        ("day", YEAR, pa.date32()),
        ("time", HOURS, pa.timestamp("s", "UTC")),
        ("naive", NAIVE, pa.timestamp("s")),
    ):
        rows = pa.table(dict(made_up(check_job(job(data, tmp_path, [column], domain=domain)), 0, 10)))
        assert rows.schema.field(column).type == kind


def test_long_durations_are_shown_in_larger_units(data: Path, tmp_path: Path) -> None:
    times = check_job(job(data, tmp_path, ["time"], domain={**HOURS, "step": "15 minutes"})).grid.times
    assert times is not None
    lengths = {1: "15 minutes", 66: "990 minutes", 642: "6.688 days", 70: "17.5 hours", 1 / 15: "1 minute"}
    assert {steps: number(Span(steps, times)) for steps in lengths} == lengths
    assert repr(Span(642, times)) == "9630 minutes" and on_grid(Span(642, times), 1) == "6.6875 days"
    again = pickle.loads(pickle.dumps((Span(642, times), Instant(3, "2013-01-04"))))
    assert repr(again) == "(9630 minutes, 2013-01-04)" and again == (642, 3)


def test_the_walker_knows_the_axis_of_every_number() -> None:
    seen: list[tuple[Mark, int, Any]] = []

    def change(mark: Mark, axis: int, value: Any) -> str:
        seen.append((mark, axis, value))
        return "x"

    ball = {"center": [1, 2], "radius": 3, "count": 4, "at_least": None, "radius_factor": 1.5}
    changed = translate(one_cluster.Result, ball, change)
    assert changed == {**ball, "center": ("x", "x"), "radius": "x"}
    assert seen == [(Mark.POSITION, 0, 1), (Mark.POSITION, 1, 2), (Mark.LENGTH, None, 3)]
    seen.clear()
    value = {"value": 1, "scale": None, "low": 2, "high": 3, "rank_error": 4, "typical_rank_error": 5.0}
    translate(quantiles.ColumnsResult, {"columns": [value, value]}, change)
    assert [axis for _, axis, _ in seen] == [0, 0, 0, 1, 1, 1]
