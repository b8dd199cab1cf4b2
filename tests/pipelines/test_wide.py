"""Axes of up to 2^62 points, in integers that float64 would round, from the job to its release.

Promises are asked for with a failure of 1e-6, which is the flake rate of each test of one.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.job.job import check_job
from pipelines.release import read_rows
from pipelines.storage.locate import open_folder
from pipelines.tasks import TASKS
from tests.core.exact import FLAKE
from tests.pipelines.jobs import JOBS, changes

LOW = 2**60 + 1
MIDDLE = LOW + 2**61
ROWS = MIDDLE + np.random.default_rng(0).integers(0, 1000, 6000)
WIDE: dict[str, Any] = {
    "input.columns": ["x"],
    "domain": {"lower": [LOW], "upper": [LOW + 2**62 - 1], "step": 1},
}
SERVED = {"bounds", "histogram", "cdf", "quantiles", "median", "minimum", "interior_point", "threshold"}


@pytest.fixture
def bench(bench):
    table = {
        "x": pa.array(ROWS),
        "unsigned": pa.array(ROWS.astype(np.uint64) + np.uint64(2**63)),
        "label": pa.array(ROWS >= MIDDLE + 500),
        "float": pa.array(ROWS.astype(np.float64)),
        "person": pa.array(np.arange(len(ROWS)) // 2),
    }
    pq.write_table(pa.table(table), bench.rows, row_group_size=1000)
    return bench


def outcome(bench: Any, task: str, *changed: dict[str, Any]) -> dict[str, Any]:
    together = {"task": task, **WIDE, "params": {}}
    for each in changed:
        together |= each
    result = bench.run(together)
    assert result.exit_code == 0, result.output
    assert Path(bench.folder / "out" / "report.html").exists()
    return bench.release()


@pytest.mark.parametrize("method", ["exponential", "heavy_paths", "tree_log"])
def test_an_interior_point_of_the_widest_axis(bench, method):
    params = {"method": method, "failure": FLAKE}
    replaced = {"privacy.neighbors": "replace_one", "privacy.epsilon": 10.0, "params": params}
    release = outcome(bench, "interior_point", replaced)
    assert release["accuracy"]["promises"]["records_needed"] <= len(ROWS)
    assert release["domain"]["lower"] == [LOW]
    assert release["domain"]["upper"] == [LOW + 2**62 - 1]
    point = release["result"]["point"]
    assert type(point) is int
    assert ROWS.min() <= point <= ROWS.max()
    assert f"{point:,}" in (bench.folder / "out" / "report.html").read_text()


@pytest.mark.parametrize("method", ["recursive", "tree"])
def test_quantiles_of_the_widest_axis(bench, method):
    params = {"probabilities": [0.25, 0.5, 0.75], "method": method, "failure": FLAKE}
    release = outcome(bench, "quantiles", {"params": params})
    values, error = release["result"]["values"], release["accuracy"]["promises"]["rank_error"]
    assert all(type(value) is int for value in values)
    for p, value in zip((0.25, 0.5, 0.75), values, strict=True):
        assert ROWS.min() <= value <= ROWS.max()
        below, upto = np.searchsorted(np.sort(ROWS), value), np.searchsorted(np.sort(ROWS), value, "right")
        assert below - error <= p * len(ROWS) <= upto + error


@pytest.mark.parametrize(
    ("task", "params", "wanted"),
    [("median", {"quantile": 0.25}, len(ROWS) // 4), ("minimum", {"largest": True}, len(ROWS))],
)
def test_one_value_of_the_widest_axis(bench, task, params, wanted):
    release = outcome(bench, task, {"params": {**params, "failure": FLAKE}})
    value, error = release["result"]["value"], release["accuracy"]["promises"]["rank_error"]
    assert type(value) is int
    assert ROWS.min() <= value <= ROWS.max()
    below, upto = np.searchsorted(np.sort(ROWS), value), np.searchsorted(np.sort(ROWS), value, "right")
    assert below - error <= wanted <= upto + error


def test_unsigned_integers_beyond_int64(bench):
    shifted = {"input.columns": ["unsigned"], "params": {"probabilities": [0.5]}}
    shifted["domain"] = {"lower": [LOW + 2**63], "upper": [LOW + 2**63 + 2**62 - 1], "step": 1}
    [value] = outcome(bench, "quantiles", shifted)["result"]["values"]
    assert 0 <= value - 2**63 - MIDDLE < 1000


def test_a_unit_of_two_rows_has_one_record_on_a_wide_axis(bench):
    release = outcome(bench, "quantiles", {"input.unit": "person", "params": {"probabilities": [0.5]}})
    assert ROWS.min() <= release["result"]["values"][0] <= ROWS.max()


def test_a_threshold_of_the_widest_axis(bench):
    domain = {"lower": [LOW, 0], "upper": [LOW + 2**62 - 1, 1], "step": 1}
    changed = {"input.columns": ["x", "label"], "domain": domain, "params": {"failure": FLAKE}}
    release = outcome(bench, "threshold", changed)
    threshold = release["result"]["threshold"]
    assert type(threshold) is int
    wrong = np.count_nonzero((threshold <= ROWS) != (ROWS >= MIDDLE + 500))
    assert wrong <= release["accuracy"]["promises"]["errors"]


def test_cells_and_values_of_a_few_points_far_out(bench):
    near = {"domain": {"lower": [MIDDLE], "upper": [MIDDLE + 999], "step": 1}}
    release = outcome(bench, "histogram", near, {"params": {"cells": 1000}})
    rows = read_rows(open_folder(str(bench.folder / "out")), release)
    assert rows["lower_0"].tolist() == rows["upper_0"].tolist() == [MIDDLE + i for i in range(1000)]
    cumulative = {"output": str(bench.folder / "cdf")}
    together = {"task": "cdf", "input.columns": ["x"], **near, "params": {"failure": FLAKE}, **cumulative}
    assert bench.run(together).exit_code == 0
    release = bench.release("cdf")
    error = release["accuracy"]["promises"]["kolmogorov_records"]
    rows = read_rows(open_folder(str(bench.folder / "cdf")), release)
    assert rows["value"].tolist() == [MIDDLE + i for i in range(1000)]
    exact = np.searchsorted(np.sort(ROWS), rows["value"], "right")
    assert np.abs(rows["count"] - exact).max() <= error


@pytest.mark.parametrize("task", sorted(set(TASKS) - SERVED - {"sample_and_aggregate"}))
def test_tasks_of_distances_refuse_in_one_sentence(bench, refused, task):
    """A new task is found here: whole bounds do not keep its distances from wrapping."""
    axes = len(JOBS[task].get("domain.lower", [0, 0]))
    columns = ["x", "unsigned", "float"][:axes]
    wide = {"input.columns": columns, "domain": {"lower": [0] * axes, "upper": [2**40] * axes, "step": 1}}
    assert "more than 2^31 steps" in refused(bench.run({**changes(task), **wide}))


def test_outputs_of_a_function_have_distances(bench, refused):
    job = changes("sample_and_aggregate")
    job["params"]["outputs"] = {"lower": [0], "upper": [2**40], "step": 1}
    said = refused(bench.run({**job, "input.columns": ["x", "unsigned"]}))
    assert "params.outputs" in said
    assert "more than 2^31 steps" in said


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"input.columns": ["float"]}, "input.columns: float does not contain integers"),
        ({"domain": {"lower": [LOW], "upper": [LOW + 2**62], "step": 1}}, "allow 2^62"),
        ({"domain": {"lower": [-1], "upper": [2**63], "step": 4}}, "neither into int64 nor into uint64"),
        ({"domain": {"lower": [LOW], "upper": [1e19], "step": 1}}, "finer than float64"),
        ({"task": "cdf", "params": {}}, "cdf takes at most 4,194,304"),
        ({"params": {"probabilities": [0.5], "method": "ordered"}}, "params.method is ordered"),
        (
            {"privacy.neighbors": "replace_one", "privacy.policy": {"distance": 5}},
            "privacy.policy needs a domain of at most 2^31 steps",
        ),
        (
            {
                "task": "interior_point",
                "params": {"method": "one_cluster"},
                "privacy.neighbors": "replace_one",
            },
            "params.method is one_cluster: it measures distances",
        ),
        (
            {
                "task": "cdf",
                "domain": {"lower": [LOW], "upper": [LOW + 99], "step": 1},
                "params": {"ranges": [[LOW, LOW + 9]]},
            },
            "params.ranges is",
        ),
    ],
)
def test_what_is_not_served_is_refused_in_one_sentence(bench, refused, changed, says):
    job = {"task": "quantiles", **WIDE, "params": {"probabilities": [0.5]}, **changed}
    assert says in refused(bench.run(job))


def test_a_refusal_spends_nothing(bench, refused):
    ledger = str(bench.folder / "ledger.json")
    made = bench.shoal("ledger", "create", ledger, "--epsilon", "2", "--delta", "1e-5")
    assert made.exit_code == 0, made.output
    before = Path(ledger).read_bytes()
    job = {"task": "quantiles", **WIDE, "params": {"probabilities": [0.5]}, "privacy.ledger": ledger}
    refused(bench.run({**job, "input.columns": ["float"]}))
    assert Path(ledger).read_bytes() == before


def test_only_what_float64_rounds_is_kept_as_an_integer(bench):
    """So every job that was a job before has the hash that it had."""
    near = {"task": "quantiles", "input.columns": ["x"], "params": {"probabilities": [0.5]}}
    domains = [
        {"lower": [0], "upper": [2**53], "step": 2**30},
        {"lower": [0.0], "upper": [2.0**53], "step": 2.0**30},
    ]
    jobs = [check_job(bench.changed({**near, "domain": domain})) for domain in domains]
    assert jobs[0].hash() == jobs[1].hash()
    assert type(jobs[0].domain.upper[0]) is float
    wide = check_job(bench.changed({**near, **WIDE}))
    assert wide.domain.lower == (LOW,)
    assert wide.model_dump(mode="json")["domain"]["lower"] == [LOW]
