"""A privacy unit from the job file to the release: what is counted and hidden are units, not rows."""

import json
import re
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.answers.text import counted
from pipelines.job.job import check_job
from pipelines.ledger.ledger import Ledger, LedgerRefusal, charge_run, create_ledger, now, read_ledger
from pipelines.notes import _KEPT
from pipelines.plan import describe, make_plan
from pipelines.report.report import render
from pipelines.run.delivery import Delivery
from pipelines.run.run import build_pipeline
from pipelines.storage.locate import open_folder
from pipelines.tasks import TASKS
from tests.pipelines.conftest import CENTER, RADIUS, planted
from tests.pipelines.jobs import JOBS, LINE, REPLACED, changes
from tests.pipelines.run.test_runners import TEN_MEGABYTES, prepare_for_dataflow
from transforms.unit_records import Keep

UNIT = {"input.unit": "person"}
PEOPLE = 4000
BUSY = 5


@pytest.fixture
def bench(bench):
    """4,000 people of one row each, but for five, who have 1,000 each in one corner."""
    rows = np.concatenate([planted(PEOPLE), np.full((1000 * BUSY, 2), 0.875)])
    names = np.r_[np.arange(PEOPLE), np.repeat(np.arange(BUSY), 1000)]
    shuffled = np.random.default_rng(0).permutation(len(rows))
    x, y = rows[shuffled].T
    person = pa.array([f"person {name}" for name in names[shuffled]])
    when = pa.array(shuffled, pa.timestamp("ms"))
    rows = pa.table({"x": x, "person": person, "y": y, "when": when})
    pq.write_table(rows, bench.rows, row_group_size=1500)
    return bench


def released(bench, *, output, **given):
    result = bench.run({"output": str(bench.folder / output), "privacy.epsilon": 20.0, **given})
    assert result.exit_code == 0, result.output
    return bench.release(output)


def test_what_is_counted_are_units(bench):
    """Noise of scale 1/20 on a total strays by more than 100 with probability e^-2000."""
    counting = changes("histogram")
    rows = released(bench, output="by rows", **counting)
    assert abs(rows["result"]["total"] - PEOPLE - 1000 * BUSY) < 100
    assert (rows["privacy"]["unit"], rows["privacy"]["keep"]) == (None, None)
    for keep in ("one", "mean", "min", "max", "sum"):
        units = released(bench, output=keep, **counting, **UNIT, **{"input.keep": keep})
        assert abs(units["result"]["total"] - PEOPLE) < 100
        assert (units["privacy"]["unit"], units["privacy"]["keep"]) == ("person", keep)


def test_few_people_with_many_rows_decide_nothing(bench):
    """Most rows are at the corner, and five people's: by units, the planted ball is the densest."""
    target = {"params.target": 1500, "privacy.epsilon": 4.0}
    by_rows = released(bench, output="by rows", **target)["result"]
    by_units = released(bench, output="units", **target, **UNIT)["result"]
    assert np.abs(np.array(by_rows["center"]) - 0.875).max() < 2 * RADIUS
    assert np.abs(np.array(by_units["center"]) - CENTER).max() < 2 * RADIUS
    assert abs(by_units["count"] - 1500) < 150


def test_the_release_plan_and_report_speak_of_units(bench):
    release = released(bench, output="out", **UNIT, **{"params.target": 1500})
    notes = " ".join(release["notes"])
    assert "all rows that have the same value of person" in notes
    assert "one of them is kept" in notes
    assert release["privacy"]["hides"] == "one unit more or one unit less; the number of units is private"
    page = (bench.folder / "out" / "report.html").read_text()
    for said in (
        "person, by one random row of each unit",
        "for one unit",
        "If one unit is removed from the data",
        "A unit is all rows that have the same value of person",
        "A person with several units",
    ):
        assert said in page
    assert "A person with several rows" not in page
    planned = bench.shoal("plan", bench.write(bench.changed({**UNIT, "input.keep": "mean"})), "--json")
    described = json.loads(planned.stdout)
    assert (described["privacy"]["unit"], described["privacy"]["keep"]) == ("person", "mean")
    assert "by their mean" in " ".join(described["notes"])


def test_the_last_row_of_each_unit_is_kept(bench):
    """The rows of 4,000 people in one corner are earlier than their last ones, which are in another.

    Noise of scale 1/20 on a count strays by more than 100 with probability e^-2000.
    """
    person, when = np.tile(np.arange(PEOPLE), 3), np.repeat([2, 9, 5], PEOPLE)
    x = np.where(when == 9, 0.9, 0.1)
    pq.write_table(pa.table({"x": x, "person": person, "when": when}), bench.rows)
    given = {**changes("histogram"), **LINE, **UNIT, "params": {"cells": [2], "method": "dense"}}
    release = released(bench, output="out", **given, **{"input.keep": "last", "input.order": "when"})
    assert release["privacy"]["order"] == "when"
    assert release["result"]["total"] == pytest.approx(PEOPLE, abs=100)
    counts = pq.read_table(bench.folder / "out" / "result.parquet").column("count").to_pylist()
    assert counts == [pytest.approx(0, abs=100), pytest.approx(PEOPLE, abs=100)]
    page = (bench.folder / "out" / "report.html").read_text()
    assert "person, by the last row of each unit (by when)" in page
    assert "The last row of each unit is kept" in " ".join(release["notes"])


def test_without_a_unit_each_row_is_a_person(bench):
    release = released(bench, output="out")
    assert any(note.startswith("There is no privacy unit") for note in release["notes"])
    page = (bench.folder / "out" / "report.html").read_text()
    assert "none: each row counts as one person" in page and "A person with several rows" in page


OF_ROWS = (
    "all rows that have the same value of person",
    "Rows without a value are left out",
    "Rows with a null, NaN or infinity in a used column are left out, and so are rows without person",
    "rows inside and outside of the balls",  # which `shoal screen` tells apart
    "kept rows",
    "units keep rows",
    "(all rows of one person)",  # which is what a unit is
)


def misnamed(text, keep):
    """Return each place where a text speaks of a row other than of what a unit's rows became."""
    by = counted({"privacy": {"unit": "person", "keep": keep}}).by
    plain = " ".join(re.sub(r"<[^>]*>", " ", text).replace("&#39;", "'").split())
    for said in (_KEPT[keep], by, by.removeprefix(", by "), *OF_ROWS):
        plain = plain.replace(said, "")
    return re.findall(r".{0,40}\brows?\b.{0,40}", plain, re.IGNORECASE)


BOUNDED = [(task, keep) for task in TASKS for keep in TASKS[task].keeps if not TASKS[task].subsamples]


RUNS = [(task, keep) for task, keep in BOUNDED if keep in ("one", "mean") or task in ("histogram", "minimum")]
"""Every task with two ways to keep, and every way with two tasks."""


def test_every_task_says_what_it_makes_of_units():
    assert {task for task in TASKS if not TASKS[task].keeps} == {"triangles", "mst_cost"}
    assert [keep for task, keep in BOUNDED if task == "threshold"] == ["one", "last"]
    assert len(BOUNDED) >= len(get_args(Keep)) * (len(JOBS) - 4)


@pytest.mark.parametrize("task", dict(BOUNDED))
def test_every_plan_speaks_of_units(bench, task):
    """The quick part of what the next test asks of a run."""
    job = check_job(bench.changed({**changes(task), **UNIT, "input.checks": 0.01}))
    plan = describe(job, make_plan(job, bytes(16)))
    answers = TASKS[task].answers
    said = [plan["why"], *plan["notes"], *answers.promises(plan), str(answers.unpromised(plan))]
    said += [entry["purpose"] for entry in plan["rounds"]] + [m["mechanism"] for m in plan["mechanisms"]]
    assert not [place for text in said for place in misnamed(text, "one")]


@pytest.mark.parametrize(("task", "keep"), RUNS)
def test_every_task_of_rows_runs_with_units(bench, task, keep):
    given = {**changes(task), **UNIT, "input.keep": keep}
    if keep == "last":
        given |= {"input.order": "when"}
    if (task, keep) == ("histogram", "count"):
        given |= {**LINE, "params": {"cells": [8]}}
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    release = bench.release()
    assert release["privacy"]["unit"] == "person"
    again = bench.run(given)
    assert (again.exit_code, again.stdout) == (0, result.stdout)
    planned = bench.shoal("plan", bench.write(bench.changed(given)))
    page = (bench.folder / "out" / "report.html").read_text()
    headline = re.search("<h1>(.*)</h1>", page)[1].replace("&#39;", "'")
    assert headline.endswith(counted(release).by) or release["result"] is None
    nothing = render({**release, "result": None, "accuracy": {**release["accuracy"], "smallest_target": 9}})
    for text in (result.stdout, planned.stdout, page, nothing):
        assert not misnamed(text, keep)


@pytest.mark.parametrize("keep", ["one", "mean"])
def test_a_policy_of_rows_is_refused_where_a_record_is_made_of_several(bench, keep):
    """A row that moves within its part may move the mean of its unit into another one."""
    given = {**changes("cdf"), **LINE, **REPLACED, **UNIT, "input.keep": keep}
    result = bench.run({**given, "privacy.policy": {"distance": 0.0625}})
    assert result.exit_code == 2
    assert "input.unit is person and privacy.policy is given" in result.stderr


def test_the_job_that_dataflow_takes_bounds_units_first(bench):
    job = check_job(bench.changed(UNIT))
    prepared = prepare_for_dataflow(job)
    delivery = Delivery(open_folder(str(bench.folder / "out")), str(job.run_id), job.hash(), None)
    graph = build_pipeline(prepared, delivery, prepared.plan.rounds).to_runner_api()
    steps = {each.unique_name for each in graph.components.transforms.values()}
    assert {"Units/Gather/Split", "Units/Gather/Group", "Units/Bound"} <= steps
    assert len(graph.SerializeToString()) < TEN_MEGABYTES / 10


def test_no_complete_row_at_all_is_no_error(bench):
    nothing = pa.table({"x": [np.nan, 1.0], "y": [0.5, 0.5], "person": pa.array(["a", None])})
    pq.write_table(nothing, bench.rows)
    result = bench.run(UNIT)
    assert result.exit_code == 0, result.output
    assert bench.release()["outcome"] in ("released", "not_found")


def test_keep_is_one_by_default_and_part_of_the_job(bench):
    jobs = [check_job(bench.changed({**UNIT, **more})) for more in ({}, {"input.keep": "mean"})]
    assert [job.keep for job in jobs] == ["one", "mean"]
    assert jobs[0].hash() != jobs[1].hash()
    schema = json.loads(bench.shoal("schema").stdout)["$defs"]["RowsInput"]["properties"]
    assert schema["keep"]["enum"] == list(get_args(Keep)) and "unit" in schema


PROMISES = [
    (None, {}, None),
    ("person", UNIT, None),
    (
        "person",
        {},
        "promises to hide units of person, but the job hides rows: charge it to a ledger for rows",
    ),
    ("house", UNIT, "promises to hide units of house, but the job hides units of person"),
    (None, UNIT, "promises to hide rows, but the job hides units of person"),
    ("person", {**changes("sample_and_aggregate"), **UNIT}, None),
    ("person", changes("sample_and_aggregate"), "but the job hides rows"),
]


@pytest.mark.parametrize(("unit", "given", "says"), PROMISES)
def test_a_ledger_has_one_promise(bench, unit, given, says):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=2.0, delta=1e-5, unit=unit))
    job = check_job(bench.changed({**given, "privacy.ledger": path}))
    plan = make_plan(job, bytes(16))
    if says is None:
        charge_run(path, job, plan, now)
    else:
        with pytest.raises(LedgerRefusal, match=says) as caught:
            charge_run(path, job, plan, now)
        assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    assert len(read_ledger(path).charges) == (says is None)


def test_the_command_makes_and_shows_a_ledger_of_units(bench):
    path = str(bench.folder / "ledger.json")
    options = ("--epsilon", "2", "--delta", "1e-5", "--unit", "person")
    assert bench.shoal("ledger", "create", path, *options).exit_code == 0
    shown = " ".join(bench.shoal("ledger", "show", path).stdout.split())
    assert "Hides one unit more or one unit less" in shown
    assert "A unit is all rows with one value of person." in shown
    assert json.loads(bench.shoal("ledger", "show", path, "--json").stdout)["unit"] == "person"
    refused = bench.run({"privacy.ledger": path})
    assert refused.exit_code == 3
    assert "the job hides rows" in refused.stderr
    assert not (bench.folder / "out").exists()
    assert bench.run({"privacy.ledger": path, **UNIT}).exit_code == 0


def test_a_ledger_from_before_units_is_one_of_rows(bench):
    path = bench.folder / "ledger.json"
    path.write_text(
        '{"schema": 1, "neighbors": "add_or_remove_one", "epsilon": 2, "delta": 1e-5, "charges": []}'
    )
    assert read_ledger(str(path)).unit is None
