"""What plans say of passes and memory."""

from typing import Any

import pytest

from core.held import AT_WORK, held_by
from core.rounds import number_of_passes
from pipelines.grouped_plan import plan_job
from pipelines.job.job import check_job
from pipelines.joint_plan import planned_as
from pipelines.needs import needs
from tests.pipelines.conftest import Bench
from tests.pipelines.every_plan import SETTINGS_OF, joint_plans
from tests.pipelines.jobs import LINE, changes
from tests.pipelines.test_every_plan import different, named

GROWING = {
    ("one_cluster", "paper"): "square of the number of distinct points",
    ("histogram", "sparse"): "250 bytes for each cell",
    ("triangles", "smooth"): "60 bytes for each node",
    ("mst_cost", "global"): "20 bytes for each node",
    ("mst_cost", "smooth"): "40 bytes for each node",
}
"""What takes memory that grows with the data, by task and method; statistics have groups, functions rows."""


def of(bench: Bench, changed: dict[str, Any]) -> dict[str, Any]:
    job = check_job(bench.changed(changed))
    return needs([(job, plan_job(job, bytes(16)))])


@pytest.mark.parametrize("name", different())
def test_every_plan_bounds_its_memory_or_names_what_grows(name: str) -> None:
    """Counts take half a gigabyte at most, but where epsilon is so small that many records are near."""
    setting = named(name)
    held, task = held_by(setting.plan.rounds), setting.job.task
    expected = GROWING.get((task, setting.plan.method))
    keys = setting.job.group_keys
    if expected is not None:
        assert expected in " ".join(held.growing)
    elif task == "statistics" and keys is not None and keys.labels is None:
        assert "for each group" in " ".join(held.growing)
    elif task != "statistics":
        assert not held.growing
    assert held.bytes <= 600e6 or setting.job.privacy.epsilon < 0.1


@pytest.mark.parametrize("task", SETTINGS_OF)
def test_a_plan_says_what_a_run_needs(bench: Bench, task: str) -> None:
    job = check_job(bench.changed(changes(task)))
    planned, described, _ = planned_as(job)
    found = described["needs"]
    assert found["passes"] == number_of_passes(planned.rounds)
    assert 340 < found["memory_mb"] < 1200 and found["for_each_group_mb"] == 0
    shown = bench.shoal("plan", bench.write(bench.changed(changes(task)))).stdout.replace("\n", " ")
    assert f"about {found['memory_mb']:,} MB" in " ".join(shown.split())
    for phrase in found["growing"]:
        assert phrase in " ".join(shown.split())


def test_units_columns_and_counts_take_memory(bench: Bench) -> None:
    wide = {**changes("median"), **LINE, "domain.upper": [2.0**30], "domain.step": 1.0}
    narrow = of(bench, {**changes("median"), **LINE})
    assert of(bench, wide)["memory_mb"] == pytest.approx(narrow["memory_mb"] + AT_WORK * 2**20 / 1e6, abs=2)
    assert of(bench, {**changes("median"), **LINE, "input.unit": "u"})["memory_mb"] > narrow["memory_mb"] + 50
    assert of(bench, changes("threshold"))["memory_mb"] > narrow["memory_mb"] + 30


def test_columns_that_prepare_rows_take_memory_and_so_does_a_joined_table(bench: Bench) -> None:
    one = {**changes("median"), **LINE}
    alone = of(bench, one)
    made = of(bench, {**one, "input.where": "a > 1 and b > 2", "input.derive": {"x": "a + c"}})
    assert made["memory_mb"] == alone["memory_mb"] + 3 * 40
    joined = of(bench, {**one, "input.join": {"path": "t.parquet", "on": "z"}})
    assert joined["memory_mb"] == alone["memory_mb"] + 40 and "joined table" in joined["says"]


def test_groups_that_are_answered_one_by_one_take_more(bench: Bench) -> None:
    by = {"group_by": {"columns": ["g"], "keys": ["a", "b", "c"]}}
    cdf = of(bench, {**changes("cdf"), **by, "domain.step": 2.0**-20})
    alone = of(bench, {**changes("cdf"), "domain.step": 2.0**-20})
    assert cdf["for_each_group_mb"] > 100 and "for each further group" in cdf["says"]
    assert cdf["for_each_row_bytes"] is None and "of its rows" not in cdf["says"]
    ranges = of(bench, {**changes("ranges"), **by, "domain.step": 2.0**-20})
    assert ranges["for_each_row_bytes"] > 100 and "of its rows" in ranges["says"]
    assert cdf["memory_mb"] == pytest.approx(alone["memory_mb"] + 40, abs=2)  # of the column of keys
    together = of(bench, {**changes("median"), **by})
    assert together["for_each_group_mb"] == 0 and "besides" not in together["says"]


def test_a_function_takes_what_it_may(bench: Bench) -> None:
    found = of(bench, {**changes("sample_and_aggregate"), "params.memory_limit": 1234})
    assert found["growing"] == ["what a function takes, at most 1,234 MB for each worker"]


@pytest.mark.parametrize("name", joint_plans())
def test_questions_share_passes_and_add_memory(name: str) -> None:
    job, _ = joint_plans()[name]
    found = planned_as(job)[1]["needs"]
    alone = [
        planned_as(check_job(each.model_dump(exclude_unset=True)))[1]["needs"] for each in job.jobs.values()
    ]
    assert found["passes"] == max(each["passes"] for each in alone)
    assert found["memory_mb"] >= max(each["memory_mb"] for each in alone)
    assert found["memory_mb"] < sum(each["memory_mb"] for each in alone)
