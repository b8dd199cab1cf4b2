"""Plans that show what bounds on contributions cost: each row is the plan of a job with these bounds."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.grouping import Contributions
from core.left_out import Guess, left_out
from pipelines.errors import JobError
from pipelines.grouped_plan import plan_job
from pipelines.job.job import check_job, check_several
from pipelines.joint_plan import planned_as
from pipelines.tried_bounds import _table, describe_bounds
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import LINE, changes

DOCS = Path(__file__).resolve().parents[2] / "docs"
BY_CITY = {"columns": ["city"], "keys": ["a", "b"]}
BOUNDS = {"groups": 4, "rows": 5, "guess": {"groups": 3, "rows": 2.5}}
STATISTICS = {**changes("statistics"), **LINE, "input.unit": "who", "group_by": BY_CITY}
JOBS: dict[str, dict[str, Any]] = {
    "public keys": {**STATISTICS, "contributions": BOUNDS},
    "private keys": {**STATISTICS, "group_by": {**BY_CITY, "keys": "private"}, "contributions": BOUNDS},
    "no groups": {**STATISTICS, "group_by": ..., "contributions": {"rows": 5, "guess": {"rows": 9}}},
    "each group": {
        **changes("quantiles"),
        **LINE,
        "input.unit": "who",
        "input.checks": 0.0,
        "group_by": BY_CITY,
        "contributions": {"groups": 4, "guess": {"groups": 3}},
    },
    "function": {
        **changes("sample_and_aggregate"),
        "input.unit": "who",
        "group_by": BY_CITY,
        "contributions": {"groups": 4, "guess": {"groups": 3, "rows": 9}},
    },
}


def given(bench: Bench, name: str) -> dict[str, Any]:
    return bench.changed({"group_by": ..., **JOBS[name]})


@pytest.mark.parametrize("name", JOBS)
def test_a_row_is_the_plan_of_a_job_with_these_bounds(bench: Bench, name: str) -> None:
    job = given(bench, name)
    bounds = planned_as(check_job(job))[1]["bounds"]
    guess, one_row = Guess(**bounds["guess"]), name in ("each group", "function")
    if name == "function":  # it gets all rows of a unit
        assert {each["rows"] for each in bounds["tried"]} == {None}
        guess = Guess(guess.groups, 1.0)
    tried = {(each["groups"], each["rows"] or 1): each for each in bounds["tried"]}
    assert len(tried) == len(bounds["tried"])
    expected = {(4, 5), (2, 5), (8, 5), (4, 2), (4, 10)}
    if name == "no groups":
        expected = {(1, 5), (1, 2), (1, 10)}
    assert set(tried) == ({(4, 1), (2, 1), (8, 1)} if one_row else expected)
    first = next(iter(tried))
    assert first == (job["contributions"].get("groups", 1), job["contributions"].get("rows", 1))
    for (groups, rows), each in tried.items():
        own = copy.deepcopy(job)
        own["contributions"] = {"groups": groups, "rows": rows}
        plan = planned_as(check_job(own))[1]
        assert each["promises"] == plan["accuracy"]["promises"]
        errors = (plan["comparison"] or {"errors": {}})["errors"]
        assert each["error"] == errors.get(plan["method"], each["error"])
        lost = left_out(guess, Contributions(groups, rows))
        assert each["left_out"] == {"units": lost.units, "rows": lost.rows}


def test_bounds_that_no_plan_has_are_passed_over(bench: Bench) -> None:
    job = check_job(given(bench, "public keys"))

    def refused(other: Any) -> Any:
        if other.contributions.groups == 8:
            raise JobError("It takes too many draws.")
        return plan_job(other, bytes(16))

    described = describe_bounds(job, refused(job), refused)["bounds"]
    assert [(each["groups"], each["rows"]) for each in described["tried"]] == [
        (4, 5),
        (2, 5),
        (4, 2),
        (4, 10),
    ]


def test_a_table_of_bounds_has_every_figure_in_its_column() -> None:
    """A promise that no bounds have is no column; small shares have digits."""
    lost = {"units": (0.07, 0.331), "rows": (0.5, 0.5)}
    first = {"groups": 2000, "rows": None, "error": 3.0, "promises": {"a_b": None, "c": [1, 2.5], "d": None}}
    small = {"units": (0.0, 0.0012), "rows": (0.0, 0.0)}
    other = {"groups": 1, "rows": 3000, "error": None, "promises": {"a_b": "2 days", "c": [1, 2], "d": None}}
    table = _table([{**first, "left_out": lost}, {**other, "left_out": small}])
    assert {str(column.header): list(column.cells) for column in table.columns} == {
        "groups": ["2,000", "1"],
        "rows": ["all", "3,000"],
        "units left out": ["7 to 33%", "0.00 to 0.12%"],
        "rows left out": ["50%", "0.00%"],
        "error": ["3", "none"],
        "a b": ["none", "2 days"],
        "c": ["1, 2.5", "1, 2"],
    }


def test_a_guess_is_no_part_of_the_run(bench: Bench) -> None:
    job = given(bench, "public keys")
    without = copy.deepcopy(job)
    del without["contributions"]["guess"]
    assert check_job(job).run_id == check_job(without).run_id
    assert "bounds" not in planned_as(check_job(without))[1]


def test_a_plan_prints_the_bounds_also_of_a_question(bench: Bench) -> None:
    job = given(bench, "private keys")
    said = bench.shoal("plan", bench.write(job))
    assert said.exit_code == 0, said.stderr
    assert "Bounds of contributions" in said.stdout and "7 to 33%" in said.stdout
    assert "Left out: shares of all pairs of a unit and one of its groups" in " ".join(said.stdout.split())
    own = {key: job.pop(key) for key in ("task", "domain", "params", "group_by", "contributions")}
    job |= {"questions": {"by_city": {**own, "columns": job["input"].pop("columns")}}}
    job["input"].pop("checks")
    described = planned_as(check_several(job))[1]["questions"]["by_city"]["bounds"]
    assert len(described["tried"]) == 5
    shown = json.loads(bench.shoal("plan", "--json", bench.write(job)).stdout)
    assert shown["questions"]["by_city"]["bounds"]["guess"] == {"groups": 3.0, "rows": 2.5}


@pytest.mark.parametrize(
    ("name", "guess", "says"),
    [
        ("public keys", {"groups": 0.5}, "contributions.guess.groups is 0.5: a mean of units that have"),
        ("public keys", {"rows": -1}, "contributions.guess.rows is -1.0: a mean of units that have"),
        ("public keys", {"rows": "many"}, "contributions.guess.rows is 'many'"),
        ("public keys", {"units": 3}, "contributions.guess.units is not a known key"),
        ("no groups", {"groups": 3}, "contributions.guess.groups is 3.0, but there is no group_by"),
    ],
)
def test_a_wrong_guess_is_one_sentence(
    bench: Bench, refused: Any, name: str, guess: dict[str, Any], says: str
) -> None:
    job = given(bench, name)
    job["contributions"]["guess"] = guess
    assert says in refused(bench.shoal("run", bench.write(job)))


def test_the_example_of_the_docs_has_the_figures_of_the_docs() -> None:
    """The job of docs/statistics.md that has a guess, and the table below it."""
    text = (DOCS / "statistics.md").read_text()
    job, table = re.findall(
        r"```yaml\n(task: statistics\n[^`]*guess[^`]*)```\n\n```text\n(.*?)```", text, re.S
    )[0]
    bounds = planned_as(check_job(yaml.safe_load(job)))[1]["bounds"]
    rows = [line.split() for line in table.splitlines() if re.match(r" *\d", line)]
    shown = [(int(row[0]), int(row[1]), float(row[8].replace(",", ""))) for row in rows]
    made = [(each["groups"], each["rows"], each["error"]) for each in bounds["tried"]]
    assert [row[:2] for row in shown] == [row[:2] for row in made]
    assert [row[2] for row in shown] == pytest.approx([row[2] for row in made], rel=1e-3)
    lost = [f"{100 * share:.0f}" for each in bounds["tried"] for share in each["left_out"]["rows"]]
    assert [row[i].rstrip("%") for row in rows for i in (5, 7)] == lost
