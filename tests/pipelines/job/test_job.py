"""Keys of a job that may be left out."""

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job, check_several
from pipelines.job.schema import schema

JOB = {
    "task": "median",
    "input": {"path": "/data/{run_id}", "columns": ["x"]},
    "domain": {"lower": [0], "upper": [1], "step": 0.25},
    "privacy": {"epsilon": 1, "delta": 0},
    "output": "/out/{run_id}",
    "run_id": "monday",
}
EDGES = {
    "input": {"path": "/data", "columns": ["u", "v"]},
    "domain": {"lower": [0, 0], "upper": [9, 9], "step": 1},
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"task": "minimum"},
        {"task": "cdf"},
        {"task": "interior_point"},
        {"task": "threshold"},
        {"task": "triangles", **EDGES},
        {"task": "mst_cost", **EDGES},
    ],
    ids=lambda changes: changes.get("task", "median"),
)
def test_params_may_be_left_out_where_none_is_required(changes):
    """The job is the same as with `params: {}`, so its hash and its charge are the same, too."""
    job = {**JOB, **changes}
    assert check_job(job).hash() == check_job({**job, "params": {}}).hash()


def test_params_that_are_required_are_missing():
    says = r"^params is missing: a job needs task, .*, and params needs probabilities\.$"
    with pytest.raises(JobError, match=says):
        check_job({**JOB, "task": "quantiles"})


def test_the_schema_requires_params_only_where_a_task_does():
    required = {
        kind["properties"]["task"]["const"]: "params" in kind["required"]
        for kind in schema()["$defs"].values()
        if "task" in kind.get("properties", {})
    }
    assert not required["median"]
    assert required["quantiles"]


def test_the_run_id_is_put_into_the_paths_of_input_and_output():
    job = check_job(JOB)
    assert (job.input.path, job.output) == ("/data/monday", "/out/monday")


def test_an_input_that_names_the_run_id_needs_one():
    """The default id is a hash, which names nobody's folder."""
    with pytest.raises(JobError, match=r"^input\.path is /data/\{run_id\}: .* give the job a run_id"):
        check_job({**JOB, "run_id": None})


@pytest.mark.parametrize(
    ("run_id", "date"),
    [
        ("visits-2026-11-16", "2026-11-16"),
        ("2026-11-16", "2026-11-16"),
        ("pages.v2_2026-W47", "2026-W47"),
        ("visits-2026-11", "2026-11"),
    ],
)
def test_the_date_at_the_end_of_the_run_id_is_put_into_the_path_of_the_input(run_id, date):
    """So jobs of one ledger read one folder, each under an id of its own."""
    path = "/data/{run_id}/day={date}/{date}-*.parquet"
    job = check_job({**JOB, "input": {"path": path, "columns": ["x"]}, "run_id": run_id})
    assert job.input.path == f"/data/{run_id}/day={date}/{date}-*.parquet"
    several = {key: JOB[key] for key in ("privacy", "output")} | {"run_id": run_id, "input": {"path": path}}
    question = {key: JOB[key] for key in ("task", "domain")} | {"columns": ["x"]}
    assert check_several({**several, "questions": {"a": question}}).input.path == job.input.path


@pytest.mark.parametrize(
    "run_id",
    [
        *("monday", "visits2026-11-16", "2026-11-16-visits", "visits-2026", "visits-20261116"),
        *("visits-2026-13-01", "visits-2026-02-29", "visits-2026-00", "visits-2026-W54", "visits-2026-W00"),
    ],
)
def test_an_input_that_names_the_date_needs_one_at_the_end_of_the_run_id(run_id):
    wrong = {**JOB, "input": {"path": "/data/{date}", "columns": ["x"]}}
    says = rf"^input\.path is /data/\{{date\}}, whose .* but run_id is {run_id}: give one that ends"
    with pytest.raises(JobError, match=says):
        check_job({**wrong, "run_id": run_id})
    with pytest.raises(JobError, match="give the job a run_id"):
        check_job({**wrong, "run_id": None})


def test_the_folder_of_a_release_is_named_by_the_whole_run_id():
    """Two jobs of one date would otherwise write into one folder."""
    with pytest.raises(JobError, match=r"^output is /out/\{date\}: the only placeholder is \{run_id\}"):
        check_job({**JOB, "output": "/out/{date}", "run_id": "a-2026-11-16"})


def test_other_braces_in_an_input_path_are_part_of_names():
    job = check_job({**JOB, "input": {"path": "/data/{a}", "columns": ["x"]}})
    assert job.input.path == "/data/{a}"


@pytest.mark.parametrize("name", ["sum_1", "sum_0_error", "quantile_0.5_1_high", "units", "units_error"])
def test_a_key_column_is_not_called_as_a_column_of_the_table(name):
    measures = ["units", "sum", {"quantiles": [0.5]}]
    rows = {**EDGES, "params": {"measures": measures}, "group_by": {"columns": [name], "keys": ["a"]}}
    with pytest.raises(JobError, match=f"^group_by.columns has {name}, which is the name of another column"):
        check_job({**JOB, "task": "statistics", **rows})
    rows["group_by"]["columns"] = ["sum_2"]
    assert check_job({**JOB, "task": "statistics", **rows}).group_by is not None
