"""What an engine counts between steps says nothing of the rows: for every task, with units and without."""

from collections import Counter

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.console.quiet import quiet
from pipelines.job.job import check_job, check_several
from pipelines.run.delivery import delivery_of
from pipelines.run.joint_run import build_joint_pipeline
from pipelines.run.run import build_pipeline, prepare_run
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import joint_job
from tests.pipelines.jobs import changes

ELEMENTS = "beam:metric:element_count:v1"
DONE = "beam:metric:user:sum_int64:v1"


def elements(bench, task: str, n: int, **more: object) -> Counter[tuple[str, int]]:
    """Return what an engine counts of a run on n rows in one row group.

    That is how many elements each step handed on, and what the steps count for those who watch the run.
    """
    write_rows(bench, n)
    out = str(bench.folder / "out-{run_id}")
    job = check_job(bench.changed({**changes(task), "output": out, "run_id": f"{task}-{n}", **more}))
    prepared = prepare_run(job, beam_options=["--direct_num_workers=1"])
    return counts_of(build_pipeline(prepared, delivery_of(job), prepared.rounds))


def write_rows(bench, n: int) -> None:
    """Write n rows in one row group."""
    rng = np.random.default_rng(n)
    rows = {name: rng.uniform(size=n) for name in "xyw"} | {"who": rng.integers(0, 1 + n // 3, n)}
    rows["where"] = rng.integers(0, 5, n)
    pq.write_table(pa.table(rows), bench.rows, row_group_size=max(1, n))


def counts_of(pipeline: beam.Pipeline) -> Counter[tuple[str, int]]:
    """Run a pipeline; return what an engine counts of it."""
    with quiet():
        result = pipeline.run()
        result.wait_until_finish()
    infos = [info for stage in result._monitoring_infos_by_stage.values() for info in stage]
    return Counter(
        (info.labels["PCOLLECTION"] or info.labels["NAME"], int.from_bytes(info.payload, "little"))
        for info in infos
        if info.urn in (ELEMENTS, DONE)
    )


WITH_UNITS = ("one_cluster", "sample_and_aggregate")
"""One task of each kind of records: what bounds units is the same for all of them."""


@pytest.mark.parametrize(
    ("task", "unit"), [*((task, None) for task in TASKS), *((task, "who") for task in WITH_UNITS)]
)
def test_the_number_of_elements_does_not_depend_on_the_rows(bench, task: str, unit: str | None) -> None:
    more: dict[str, object] = {"input.unit": unit} if unit else {}
    if task == "sample_and_aggregate":
        more["params.blocks"] = 20
    seen = {n: elements(bench, task, n, **more) for n in (0, 700)}
    assert len(seen[0]) > 5
    assert [name for name, _ in seen[0] if not name.startswith("ref_")]
    assert [n for n in seen if seen[n] != seen[0]] == []


@pytest.mark.parametrize("task", ["one_cluster", "histogram", "median", "sample_and_aggregate"])
@pytest.mark.parametrize("unit", [None, "who"])
def test_neither_does_it_for_groups(bench, task: str, unit: str | None) -> None:
    """Also where no row is in a group: with no rows, two rows, and many."""
    more: dict[str, object] = {"group_by": {"columns": ["who"], "keys": [0, 1, 500]}}
    if unit is not None:
        more |= {"input.unit": unit, "contributions": {"groups": 2}}
    if task == "sample_and_aggregate":
        more["params.blocks"] = 20
    seen = {n: elements(bench, task, n, **more) for n in (0, 2, 700)}
    assert [n for n in seen if seen[n] != seen[0]] == []


@pytest.mark.parametrize("unit", [None, "who"])
def test_neither_does_it_for_several_questions(bench, unit: str | None) -> None:
    seen = {}
    for n in (0, 2, 700):
        write_rows(bench, n)
        groups: dict[str, object] = {"group_by": {"columns": ["where"], "keys": "private"}}
        bounds = {} if unit is None else {"contributions": {"groups": 2, "rows": 3}}
        public: dict[str, object] = {"group_by": {"columns": ["who"], "keys": [0, 1, 500]}}
        one_row = {} if unit is None else {"contributions": {"groups": 2}, "checks": 0.0}
        more = {"statistics": groups | bounds, "histogram": public | one_row}
        tasks = ("one_cluster", "histogram", "quantiles", "statistics")
        raw = joint_job(tasks, "add_or_remove_one", more)
        raw["input"] = {"path": str(bench.rows)} | ({} if unit is None else {"unit": unit})
        job = check_several(raw | {"output": str(bench.folder / "out-{run_id}"), "run_id": f"several-{n}"})
        prepared = prepare_run(job, beam_options=["--direct_num_workers=1"])
        seen[n] = counts_of(build_joint_pipeline(prepared, delivery_of(job), prepared.strands))
    assert len(seen[0]) > 5
    assert seen[0] == seen[2] == seen[700]


def test_neither_do_the_parts_of_a_table(bench) -> None:
    params = {"params": {"cells": [8, 8], "method": "sparse", "parts": 5}, "privacy.epsilon": 8.0}
    seen = {n: elements(bench, "histogram", n, **params) for n in (0, 2, 700)}
    assert seen[0] == seen[2] == seen[700]


def test_neither_does_the_size_of_a_row_group(bench) -> None:
    """More rows than fit one block or one part that is read at a time."""
    assert elements(bench, "one_cluster", 300_000) == elements(bench, "one_cluster", 3)
    unit = {"input.unit": "who"}
    assert elements(bench, "cdf", 1_500_000, **unit) == elements(bench, "cdf", 3, **unit)
