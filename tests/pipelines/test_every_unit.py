"""A unit of a column stands beside its numbers in answers and pictures, and changes nothing else."""

import json
import re
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from core.rounds import run_in_memory
from pipelines.answers.answer import Answer
from pipelines.job.job import check_job
from pipelines.quantities import Amount, UnitColumn, titled
from pipelines.release import complete_release, draft_release, made_table, with_checks
from pipelines.report.report import render
from pipelines.report.summary import summary
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import VARIANTS, Setting, blocks, changed_job
from tests.pipelines.jobs import LINE, changes

OTHER = "kWh"
TASKS_OF_ROWS = [name for name, task in TASKS.items() if task.times and not task.subsamples]
GROUPED = {"params.measures": ["mean", "sum"], "group_by": {"columns": ["c"], "keys": ["a", "b", "c"]}}
MANY = {"params.measures": ["sum", "mean", "variance", {"quantiles": [0.5]}]}
CASES: dict[str, dict[str, Any]] = {
    **{task: changes(task) for task in TASKS_OF_ROWS},
    "statistics of one": {**changes("statistics"), **LINE, **MANY},
    "statistics by group": {**changes("statistics"), **LINE, **GROUPED},
    "five columns": {**changes("k_means"), **VARIANTS["k_means"][0]},
}
"""Small jobs."""

WITHOUT = {"threshold": 1}
"""Columns that have no unit."""


def released(job: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    checked = check_job(json.loads(json.dumps(job)))
    setting = Setting("", checked)
    plan = setting.plan
    finding = run_in_memory(plan.rounds, blocks(setting, "two_clumps", 3000), plan.start, SeededNoise(1))
    draft, finding = with_checks(draft_release(checked, plan), finding)
    table = made_table(finding, checked.grid)
    rows = None if table is None else {name: np.asarray(column) for name, column in table.items()}
    return json.loads(complete_release(draft, finding, checked.grid)), rows


def with_units(job: dict[str, Any], units: list[str]) -> dict[str, Any]:
    named = dict(zip(job["input"]["columns"], units, strict=False))
    return {**job, "domain": {**job["domain"], "units": named}}


def texts(release: dict[str, Any], rows: Any) -> list[str]:
    """Return all that is said of an answer."""
    answers = TASKS[release["task"]].answers
    found: Answer = answers.answer(release, rows)
    cells = [cell for table in found.tables for row in (table.headers, *table.rows) for cell in row]
    lines = [line for fact in found.facts for line in (*fact.lines, fact.note)]
    drawn = json.dumps([asdict(figure.picture) for figure in found.figures], ensure_ascii=False)
    pictures = re.findall(r'"(?:title|datum)": "([^"]*)"', drawn)
    return [found.headline, found.lead, *lines, *cells, *pictures, *answers.promises(release)]


@pytest.mark.parametrize("case", CASES)
def test_units_are_added_and_nothing_else_changes(case: str) -> None:
    job = changed_job(CASES[case])
    axes = len(job["input"]["columns"]) - WITHOUT.get(case, 0)
    bare, rows = released(job)
    told, same = released(with_units(job, [OTHER] * axes))
    assert told["result"] == bare["result"] is not None
    assert told["domain"].pop("units") == dict(zip(job["input"]["columns"], [OTHER] * axes, strict=False))
    assert told["domain"] == bare["domain"]
    told["domain"]["units"] = dict(zip(job["input"]["columns"], [OTHER] * axes, strict=False))
    assert (rows is None) == (same is None)
    before, after = texts(bare, rows), texts(told, same)
    assert len(before) == len(after)
    added = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert added
    for a, b in added:  # the texts are those without units, but for the unit
        plain = re.sub(rf" \({OTHER}²?\)| {OTHER}²?", "", b)
        assert (a, b) == ("in the units of the columns", "") or plain == a, (a, b)
    assert OTHER in render(told, same)
    assert any(OTHER in line for line in summary(told, TASKS[told["task"]].answers.answer(told, same)))


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("cdf", [r"0\.25 to 0\.5 kWh", r"x \(kWh\)"]),
        ("median", [r"is about [\d.]+ kWh", r"[\d.]+ kWh to [\d.]+ kWh"]),
        ("minimum", [r"is about [\d.]+ kWh"]),
        ("quantiles", [r"^[\d.]+ kWh$", r"^x \(kWh\)$"]),
        ("interior_point", [r"[\d.]+ kWh"]),
        ("threshold", [r"[\d.]+ kWh", r"x \(kWh\)"]),
        ("histogram", [r"[\d.]+ to [\d.]+ kWh"]),
        ("ranges", [r"0\.25 to 0\.5 kWh by 0 to 1 kWh"]),
        ("one_cluster", [r"lie within [\d.]+ kWh of one point", r"its radius, [\d.]+ kWh", r"x \(kWh\)"]),
        ("k_cover", [r"^[\d.]+ kWh$"]),
        ("k_means", [r"^-?[\d.]+ kWh$", r"^± [\d.]+ kWh$"]),
        ("statistics of one", [r"standard error [\d.e-]+ kWh$", r"standard error [\d.e-]+ kWh²$",
                               r"sum of x is within [\d.,]+ kWh", r"mean of x .* by at most [\d.e-]+ kWh",
                               r"variance of x \(kWh²\)", r"sum of x \(kWh\)", r"^[\d.e-]+ kWh²$"]),
        ("statistics by group", [r"^[\d.,e-]+ kWh ± [\d.e-]+ kWh$"]),
    ],
)  # fmt: skip
def test_units_stand_where_they_are_read(case: str, says: list[str]) -> None:
    job = changed_job(CASES[case])
    release, rows = released(with_units(job, [OTHER] * (len(job["input"]["columns"]) - WITHOUT.get(case, 0))))
    found = texts(release, rows)
    for each in says:
        assert any(re.search(each, text) for text in found), (each, found)


def test_columns_may_have_units_of_their_own() -> None:
    job = changed_job(changes("statistics"))
    release, rows = released(with_units({**job, "params": {"measures": ["mean"]}}, ["EUR", "min"]))
    found = [text for text in texts(release, rows) if "standard error" in text]
    assert [text.rsplit(" ", 1)[1] for text in found if re.search(r"\d", text)] == ["EUR", "min"]
    job = changed_job(changes("one_cluster"))
    release, rows = released(with_units(job, ["EUR", "min"]))
    said = texts(release, rows)
    assert any(re.fullmatch(r"x [\d.]+ EUR", text) for text in said)
    assert any(re.fullmatch(r"y [\d.]+ min", text) for text in said)
    assert re.search(r"lie within [\d.]+ of one point", said[0])  # a distance has no unit of one of them


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"domain.units": {}}, "domain.units is empty"),
        ({"domain.units": {"z": "EUR"}}, "domain.units has 'z': the columns are x, y."),
        ({"domain.units": {"x": ""}}, "domain.units.x is '': give 1 to 20 characters"),
        ({"domain.units": {"x": " EUR"}}, "with no space at an end"),
        ({"domain.units": {"x": "E" * 21}}, "give 1 to 20 characters"),
        ({"domain.units": {"x": 5}}, "domain.units.x is 5"),
        (
            {**changes("triangles"), "domain.units": {"x": "EUR"}},
            "rows of triangles are edges between node ids",
        ),
        (
            {"input.columns": ["lat", "lon"], "domain": {"geography": "wgs84", "units": {"lat": "m"}}},
            "domain.units is given beside domain.geography",
        ),
        (
            {
                **changes("median"),
                "domain": {
                    "lower": ["2013-01-01"],
                    "upper": ["2013-12-31"],
                    "step": "1 day",
                    "units": {"x": "d"},
                },
            },
            "domain.units has x, a column of dates: their units are known.",
        ),
    ],
)
def test_wrong_units_are_refused(bench, refused, changed: dict[str, Any], says: str) -> None:
    assert says in refused(bench.run(changed))


def test_amounts_show_all_digits_of_whole_numbers() -> None:
    assert Amount(2**60 + 1, "B", 1).on_grid() == f"{2**60 + 1:,} B"
    assert (
        Amount(0.12345, "EUR", 0.01).on_grid() == "0.12 EUR"
        and Amount(1234.5, "EUR", 0.5).shown(3) == "1,234 EUR"
    )
    assert titled(UnitColumn("x", "EUR")) == "x (EUR)" and titled("x") == "x"


def test_a_job_without_units_keeps_its_hash() -> None:
    assert "units" not in check_job(changed_job({})).model_dump(mode="json")["domain"]
