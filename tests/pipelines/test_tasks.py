"""Every task from its job to its report, and what it refuses."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.histogram.found import Table
from pipelines.answers.text import NEIGHBORS
from pipelines.job.job import check_job
from pipelines.plan import make_plan
from pipelines.release import draft_release, read_rows, write_release
from pipelines.report.report import render
from pipelines.run.delivery import Delivery
from pipelines.run.run import build_pipeline
from pipelines.storage.locate import open_folder
from pipelines.table import encode_release
from pipelines.tasks import TASKS
from tests.pipelines.conftest import write_rows
from tests.pipelines.jobs import JOBS, LINE, REPLACED, changes
from tests.pipelines.run.test_runners import TEN_MEGABYTES, prepare_for_dataflow


@pytest.fixture
def bench(bench):
    rows = pq.read_table(bench.rows)
    weights = pa.array(np.random.default_rng(1).uniform(size=len(rows)))
    pq.write_table(rows.append_column("w", weights), bench.rows, row_group_size=1000)
    return bench


def test_every_task_has_a_job_here():
    assert set(JOBS) == set(TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_runs_from_its_job_to_its_report(bench, task):
    """By noise sample_and_aggregate is not found with 0.2% at epsilon 1, and with e^-24 at 50."""
    epsilon = 50.0 if task == "sample_and_aggregate" else 4.0
    given = {**changes(task), "privacy.epsilon": epsilon}
    planned = bench.shoal("plan", bench.write(bench.changed(given)))
    assert planned.exit_code == 0, planned.output
    assert "promised" in planned.stdout.lower()
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    release = bench.release()
    assert release["task"] == task
    assert release["outcome"] == "released"
    assert release["privacy"]["spent"] <= epsilon
    folder = open_folder(str(bench.folder / "out"))
    assert (bench.folder / "out" / "report.html").read_text() == render(release, read_rows(folder, release))
    again = bench.run(given)
    assert (again.exit_code, again.stdout) == (0, result.stdout)


@pytest.mark.parametrize("task", ["histogram", "cdf", "ranges", "statistics"])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_report_needs_the_table_of_its_run(bench, task, grouped):
    """It is gone, has other rows, or is of another run; the report that is there stays."""
    grouped = grouped or task == "statistics"  # which alone has no table
    groups = {"group_by": {"columns": ["city"], "keys": ["a", "b"]}} if grouped else {}
    rows = pq.read_table(bench.rows)
    pq.write_table(rows.append_column("city", pa.array(["a", "b"] * (len(rows) // 2))), bench.rows)
    tables = []
    for output in ("other", "out"):  # the same job twice draws other noise
        asked = {**changes(task), **groups, "output": str(bench.folder / output)}
        assert bench.run(asked).exit_code == 0
        tables.append((bench.folder / output / "result.parquet").read_bytes())
    other, own = tables
    out = bench.folder / "out"
    page, table = (out / "report.html").read_bytes(), pq.read_table(out / "result.parquet")
    assert bench.shoal("report", str(out)).exit_code == 0 and (out / "report.html").read_bytes() == page

    def said() -> str:
        shown = bench.shoal("report", str(out))
        assert shown.exit_code == 2 and (out / "report.html").read_bytes() == page
        return shown.stderr.splitlines()[0]

    (out / "result.parquet").unlink()
    assert said().endswith("result.parquet is missing: restore the file that the run wrote.")
    for rows in (table.slice(1), pa.concat_tables([table, table])):
        pq.write_table(rows, out / "result.parquet")
        assert said().endswith("result.parquet is damaged: restore the file that the run wrote.")
    (out / "result.parquet").write_bytes(other)
    assert "not of one run: restore the files" in said()
    (out / "result.parquet").write_bytes(own)
    assert bench.shoal("report", str(out)).exit_code == 0
    older = json.loads((out / "release.json").read_text())
    if older.pop("table_rows", None) is not None:  # releases of one answer did not have it
        (out / "release.json").write_bytes(encode_release(older))
        pq.write_table(
            table.replace_schema_metadata({b"release": encode_release(older)}), out / "result.parquet"
        )
        assert bench.shoal("report", str(out)).exit_code == 0


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_table_is_no_error(bench, task):
    empty = {name: np.empty(0) for name in "xyw"}
    pq.write_table(pa.table(empty), bench.rows)
    result = bench.run(changes(task))
    assert result.exit_code == 0, result.output
    assert bench.release()["outcome"] in ("released", "not_found")


@pytest.mark.parametrize("task", TASKS)
def test_one_value_many_times_is_no_error(bench, task):
    same = {name: np.full(3000, 0.5) for name in "xyw"}
    pq.write_table(pa.table(same), bench.rows)
    result = bench.run(changes(task))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_one_job_that_dataflow_takes(bench, tmp_path, task):
    job = check_job(bench.changed(changes(task)))
    prepared = prepare_for_dataflow(job)
    delivery = Delivery(open_folder(str(tmp_path / "out")), str(job.run_id), job.hash(), None)
    graph = build_pipeline(prepared, delivery, prepared.plan.rounds).to_runner_api()
    steps = {each.unique_name for each in graph.components.transforms.values()}
    assert {f"Rounds/{step.name}/Release" for step in prepared.plan.rounds} <= steps
    assert len(graph.SerializeToString()) < TEN_MEGABYTES / 10


def test_a_table_is_of_the_same_draw_as_its_release(bench):
    """A crash between both leaves the table, from which the release is completed."""
    assert bench.run(changes("histogram")).exit_code == 0
    before = bench.release()
    (bench.folder / "out" / "release.json").unlink()
    again = bench.run(changes("histogram"))
    assert again.exit_code == 0, again.output
    assert bench.release() == before
    table = pq.read_table(bench.folder / "out" / "result.parquet")
    assert json.loads(table.schema.metadata[b"release"]) == before
    assert sum(table.column("count").to_pylist()) == before["result"]["total"]
    assert table.column_names == ["cell_0", "lower_0", "upper_0", "cell_1", "lower_1", "upper_1", "count"]


def test_a_foreign_table_is_not_taken_for_a_release(bench):
    (bench.folder / "out").mkdir()
    pq.write_table(pa.table({"a": [1]}), bench.folder / "out" / "result.parquet")
    refused = bench.run(changes("histogram"))
    assert refused.exit_code == 2
    assert "result.parquet exists, but no run wrote it" in refused.stderr


POLICIES = [
    ("histogram", {}, {"distance": 0.25}),
    ("histogram", {}, {"partition": [0.125, 0.125]}),
    ("histogram", {}, {"secrets": "attribute"}),
    ("histogram", {}, {"distance": [0.25, 0]}),
    ("threshold", {}, {"distance": [0.25, 0]}),
    ("cdf", LINE, {"distance": 0.0625}),
    ("k_means", {}, {"partition": [0.125, 0.125]}),
]


@pytest.mark.parametrize(("task", "where", "policy"), POLICIES)
def test_policies_run(bench, task, where, policy):
    given = {**changes(task), **where, **REPLACED, "privacy.policy": policy}
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    assert bench.release()["privacy"]["policy"].items() >= policy.items()


def test_a_column_of_distance_0_is_public(bench):
    """Counts by a public column cost nothing, and a threshold for public labels needs half of the noise."""
    near = {**REPLACED, "privacy.policy": {"distance": [0.25, 0]}}
    counts = make_plan(
        check_job(bench.changed({**changes("histogram"), **near, "params.cells": [1, 8]})), bytes(16)
    )
    assert counts.mechanisms == ()
    scales = [
        make_plan(check_job(bench.changed({**changes("threshold"), **REPLACED, **given})), bytes(16))
        for given in ({}, near)
    ]
    full, saved = (plan.mechanisms[0].scale for plan in scales)
    assert full == pytest.approx(2 * saved)


def known(**box):
    return {"secrets": "full", "constraints": [box]}


WRONG = [
    ("quantiles", {"params.probabilities": [0.5, 1.0]}, "params.probabilities has 1.0"),
    ("quantiles", {"params.probabilities": [0.5, 0.25]}, "must ascend"),
    ("ranges", {"params.ranges": [[[0.5, 0.25], [0, 1]]]}, "a rectangle has a pair of finite numbers"),
    ("ranges", {"params.ranges": [[[0.25, 0.5]]]}, "ranges has a rectangle of 1 pairs"),
    ("ranges", LINE, "ranges takes two or three, and cdf one"),
    ("ranges", {"params.records": 0}, "params.records is 0"),
    ("cdf", {"params.ranges": [[0.5, 0.25]]}, "params.ranges has [0.5, 0.25]"),
    ("cdf", {"input.columns": ["x", "y"], "domain.lower": [0, 0], "domain.upper": [1, 1]}, "cdf takes one"),
    ("histogram", {"params.cells": 0}, "params.cells is 0"),
    ("k_means", {"params.k": 0}, "params.k is 0"),
    ("threshold", {"domain.upper": [1, 3]}, "label"),
    ("cdf", {**REPLACED, "privacy.policy": {"distance": 5.0}}, "larger than the domain"),
    ("cdf", {**REPLACED, "privacy.policy": {"distance": 1e-5}}, "times domain.step"),
    ("cdf", {**REPLACED, "privacy.policy": {}}, "exactly one of"),
    ("cdf", {**REPLACED, "privacy.policy": {"distance": [0.25, 0]}}, "has 2 distances for 1 axes"),
    ("cdf", {**REPLACED, "privacy.policy": {"distance": [0]}}, "and not all 0"),
    ("cdf", {**REPLACED, "privacy.policy": {"distance": [2]}}, "larger than the"),
    ("cdf", {**REPLACED, "privacy.policy": {"distance": [1e-5]}}, "times domain.step"),
    ("cdf", {**REPLACED, "privacy.policy": {"distance": "near"}}, "privacy.policy.distance is 'near'"),
    ("cdf", {"privacy.policy": {"distance": 0.25}}, "a policy refines replace_one"),
    ("histogram", {**REPLACED, "privacy.policy": {"partition": [0.5]}}, "has 1 widths for 2"),
    (
        "histogram",
        {**REPLACED, "privacy.policy": known(lower=[0, 0], upper=[0.5, 0.5], count=-1)},
        "the answer -1",
    ),
    (
        "k_means",
        {**REPLACED, "privacy.policy": known(lower=[0, 0], upper=[0.5, 0.5], count=5)},
        "privacy.policy.constraints is set",
    ),
    (
        "histogram",
        {**REPLACED, "privacy.policy": known(lower=[2, 2], upper=[3, 3], count=0)},
        "outside the domain",
    ),
    ("quantiles", {"privacy.epsilon": 1e-9}, "privacy.epsilon is 1e-09"),
    ("quantiles", {"privacy.epsilon": 1000}, "privacy.epsilon is 1000"),
    ("quantiles", {**REPLACED, "privacy.policy": {"graph": [[[0.0], [0.0]]]}}, "must be two points"),
]


@pytest.mark.parametrize(("task", "wrong", "says"), WRONG)
def test_wrong_jobs_of_tasks(bench, refused, task, wrong, says):
    assert says in refused(bench.run({**changes(task), **wrong}))


def test_a_policy_is_not_charged_to_a_ledger_of_differential_privacy(bench):
    path = str(bench.folder / "ledger.json")
    options = ("--epsilon", "2", "--delta", "1e-5", "--neighbors", "replace_one")
    assert bench.shoal("ledger", "create", path, *options).exit_code == 0
    given = {**changes("cdf"), **REPLACED, "privacy.policy": {"distance": 2.0**-10}, "privacy.ledger": path}
    refused = bench.run({**given, "domain.step": 2.0**-10})
    assert refused.exit_code == 3
    assert "privacy.policy hides less" in refused.stderr


WITH_A_POLICY = sorted(set(TASKS) - {"triangles", "mst_cost", "sample_and_aggregate", "statistics", "cdf"})
"""Tasks that take a policy, of which this one buys nothing. Any distance makes the noise of sums smaller, and
trees over parts of the domain promise smaller errors."""


@pytest.mark.parametrize("task", WITH_A_POLICY)
def test_a_policy_that_buys_nothing_gives_up_nothing(bench, task):
    """The noise of full privacy gives its promise, and its place in a ledger of differential privacy."""
    path = str(bench.folder / "ledger.json")
    options = ("--epsilon", "2", "--delta", "1e-5", "--neighbors", "replace_one")
    assert bench.shoal("ledger", "create", path, *options).exit_code == 0
    given = {**changes(task), **REPLACED, "privacy.policy": {"distance": 0.5}, "privacy.ledger": path}
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    assert bench.release()["privacy"]["hides"] == NEIGHBORS["replace_one"]
    page = (bench.folder / "out" / "report.html").read_text()
    assert "hides less than differential privacy" not in page


@pytest.mark.parametrize("task", ["triangles", "mst_cost"])
def test_a_policy_means_nothing_in_a_graph(bench, refused, task):
    for policy in ({"distance": 0.0625}, {"secrets": "full"}):
        said = refused(bench.run({**changes(task), **REPLACED, "privacy.policy": policy}))
        assert f"privacy.policy is set: rows of {task} are edges between node ids" in said


def test_out_of_bounds_rows_are_clamped_in_every_task(bench):
    write_rows(bench.rows, np.full((500, 2), 1e9))
    assert bench.run(changes("histogram")).exit_code == 0
    table = pq.read_table(bench.folder / "out" / "result.parquet").to_pylist()
    assert max(table, key=lambda row: row["count"])["cell_0"] == 7


def test_two_draws_of_which_one_is_an_empty_table_leave_one(bench):
    """Of attempts that each draw their own noise, one finds cells and one none: only one becomes visible."""
    write_rows(bench.rows, np.full((30, 2), 0.5))
    job = check_job(bench.changed({"task": "histogram", "params": {"cells": [8, 8], "method": "sparse"}}))
    plan, folder = make_plan(job, bytes(16)), open_folder(str(bench.folder / "out"))
    grid, draft = job.domain.grid(), draft_release(job, plan)
    cells = plan.rounds[0].cells
    none = Table(cells, np.empty(0, np.int64), np.empty(0, np.int64))
    some = Table(cells, np.array([5]), np.array([23]))
    write_release(folder, draft, none, grid)
    write_release(folder, draft, some, grid)
    assert bench.release()["outcome"] == "not_found"
    assert pq.read_table(bench.folder / "out" / "result.parquet").num_rows == 0


def test_a_policy_that_leaves_nothing_to_pay_for(bench):
    free = {**changes("histogram"), **REPLACED, "privacy.policy": {"partition": [0.125, 0.125]}}
    for command in ("plan", "run"):
        result = bench.shoal(command, bench.write(bench.changed({**free, "domain.step": 0.015625})))
        assert result.exit_code == 0, result.output


def test_a_run_that_hides_less_than_its_relation_says_so(bench):
    path = str(bench.folder / "ledger.json")
    options = ("--epsilon", "2", "--delta", "1e-5", "--neighbors", "replace_one")
    assert bench.shoal("ledger", "create", path, *options).exit_code == 0
    weights = {**changes("mst_cost"), **REPLACED, "params": {"change": "weight"}}
    refused = bench.run({**weights, "privacy.ledger": path})
    assert refused.exit_code == 3
    assert "the job hides less: the weight of one row" in refused.stderr
    assert bench.run(weights).exit_code == 0
    assert "It hides the weight" in (bench.folder / "out/report.html").read_text()
