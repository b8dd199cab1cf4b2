"""What plans of several questions say of memory: the largest is at work, and the others wait."""

from typing import Any

import pytest

from core.held import AT_WORK
from pipelines.grouped_plan import plan_job
from pipelines.job.job import check_job
from pipelines.needs import needs
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import LINE, changes

ONE = {**changes("median"), **LINE}


def of(bench: Bench, *changed: dict[str, Any]) -> dict[str, Any]:
    """Return what questions need together."""
    jobs = [check_job(bench.changed(each)) for each in changed]
    return needs([(job, plan_job(job, bytes(16))) for job in jobs])


def test_counts_of_other_questions_wait_for_those_at_work(bench: Bench) -> None:
    wide = {**ONE, "domain.upper": [2.0**30], "domain.step": 1.0}
    alone, both = of(bench, wide), of(bench, ONE, wide, wide)
    assert both["memory_mb"] == pytest.approx(alone["memory_mb"] + 0.55 * AT_WORK * 2**20 / 1e6, abs=2)
    assert of(bench, *[wide] * 7)["memory_mb"] == of(bench, *[wide] * 3)["memory_mb"]  # a turn has three
    for found in (alone, both):
        assert found["for_each_group_mb"] == 0
        assert f"{AT_WORK * 2**20 // 10**6} of them for {2**20:,} counts" in found["says"]


def test_what_many_questions_release_takes_memory(bench: Bench) -> None:
    """Their report holds all of it at once."""
    dense = {**changes("cdf"), "domain.upper": [2.0**17 - 1], "domain.step": 1.0}
    three, many = of(bench, *[dense] * 3), of(bench, *[dense] * 100)
    assert many["memory_mb"] == pytest.approx(three["memory_mb"] + 97 * 45 * 2**17 / 1e6, abs=2)


def test_of_several_grouped_questions_the_worst_is_told(bench: Bench) -> None:
    by = {"group_by": {"columns": ["g"], "keys": ["a", "b", "c"]}}
    sparse = {**changes("ranges"), **by, "domain.step": 2.0**-12}
    dense = {**changes("cdf"), **by, "domain.step": 2.0**-16}
    alone = [of(bench, each) for each in (sparse, dense)]
    assert 0 < alone[1]["for_each_group_mb"] < alone[0]["for_each_group_mb"]
    both = of(bench, sparse, dense, {**dense, "group_by": ...})
    assert both["for_each_group_mb"] == alone[0]["for_each_group_mb"]
    assert alone[0]["for_each_row_bytes"] is not None and both["for_each_row_bytes"] is None


def test_columns_of_a_joined_table_take_memory(bench: Bench) -> None:
    join: dict[str, Any] = {"path": "t.parquet", "on": "z"}
    some, more = ({**ONE, "input.join": {**join, **columns}} for columns in ({}, {"columns": ["v", "w"]}))
    assert of(bench, more)["memory_mb"] == of(bench, some)["memory_mb"] + 80
