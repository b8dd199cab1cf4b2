"""Noise that is larger than any answer: a plan refuses it, and no run fails by it where records are."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.draws import LARGEST_SCALE, Additive
from core.errors import InvalidValue
from core.mechanisms.partition_selection import CountThreshold
from pipelines.errors import JobError
from pipelines.grouped_plan import plan_job
from pipelines.job.job import check_job
from tests.pipelines.conftest import Bench
from tests.pipelines.every_plan import SETTINGS_OF, jobs_of

EPSILONS = (1e-6, 1e-3)
WIDE = {"lower": [0], "upper": [2_000_000_000], "step": 1}


@pytest.mark.parametrize("task", SETTINGS_OF)
def test_a_plan_has_noise_that_fits_or_is_refused(task: str) -> None:
    """Each method of every task, at small budgets and on wide domains."""
    seen = 0
    for (name, raw), epsilon in itertools.product(list(jobs_of(task))[:6], EPSILONS):
        domain = raw.get("domain", {})
        if domain and domain["upper"][0] <= 2 and "geography" not in domain:
            domain = domain | {"step": 2.0**-20}
        asked = raw | ({"domain": domain} if domain else {})
        try:
            plan = plan_job(
                check_job(asked | {"privacy": asked["privacy"] | {"epsilon": epsilon}}), bytes(16)
            )
        except (JobError, InvalidValue):
            continue
        each = getattr(plan, "each", plan)
        draws = [draw for step in each.rounds for draw in step.draws()]
        scales = [d.noise_scale for d in draws if isinstance(d, Additive | CountThreshold)]
        assert max(scales, default=0.0) < LARGEST_SCALE, name
        seen += 1
    assert seen or task in ("sample_and_aggregate",)


@pytest.mark.parametrize("groups", [1_000, 50_000_000])
@pytest.mark.parametrize("measures", [["mean"], ["units", "sum"]])
def test_one_row_is_no_error_that_none_is_not(bench: Bench, groups: int, measures: list[str]) -> None:
    """Both are refused by the plan, or both give a release."""
    outcomes = []
    for rows in (0, 1, 2000):
        users = pa.array([f"u{i}" for i in range(rows)], pa.string())
        keys = pa.array(["a"] * rows, pa.string())
        pq.write_table(pa.table({"x": np.ones(rows), "u": users, "k": keys}), bench.rows)
        asked: dict[str, Any] = {
            "task": "statistics",
            "input.columns": ["x"],
            "input.unit": "u",
            "input.checks": 0,
            "domain": WIDE,
            "privacy.epsilon": 0.1,
            "privacy.delta": 1e-6,
            "params": {"measures": measures, "method": "laplace"},
            "group_by": {"columns": ["k"], "keys": "private"},
            "contributions": {"groups": groups, "rows": 1},
            "output": str(bench.folder / f"out-{rows}"),
        }
        done = bench.run(asked)
        outcomes.append(done.exit_code)
        if groups == 50_000_000:
            assert done.exit_code == 2 and "hides everything; a larger epsilon or step" in done.stderr
    assert outcomes == ([0] * 3 if groups == 1_000 else [2] * 3)
