"""Checks of the input from the job file to the release: what was left out, and what was moved to a bound."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.answers.checks import check_facts
from pipelines.job.job import check_job
from pipelines.ledger.ledger import create_ledger, new_ledger, read_ledger
from pipelines.ledger.table import describe_ledger
from pipelines.plan import make_plan
from pipelines.tasks import TASKS
from tests.pipelines.jobs import LINE, REPLACED, changes

CHECKS = {"input.checks": 0.25, "privacy.epsilon": 20.0}
LIMIT = {"neighbors": "add_or_remove_one", "unit": None, "epsilon": 5.0, "delta": 1e-5}
MANY = 2000


@pytest.fixture
def bench(bench):
    """2,000 people of two rows: 300 have a row without x, 500 one beyond its bounds, 100 of them both."""
    person = np.arange(MANY).repeat(2)
    x = np.random.default_rng(0).uniform(size=2 * MANY)
    x[: 2 * 300 : 2] = np.nan
    x[2 * 200 + 1 : 2 * 700 : 2] = 7.0
    names = pa.array([f"person {i}" for i in person])
    pq.write_table(
        pa.table({"x": x, "y": np.full(2 * MANY, 0.5), "person": names}), bench.rows, row_group_size=700
    )
    return bench


def released(bench, given):
    result = bench.run(given)
    assert result.exit_code == 0, result.output
    return bench.release(), result.stdout


JOBS = {
    "one round": {**changes("median"), **LINE},
    "a floor": {**changes("histogram"), **LINE, "params": {"cells": [8], "method": "sparse"}},
    "a table": {**changes("cdf"), **LINE},
    "several rounds": {**changes("k_means"), **LINE, "params": {"k": 2}},
}


@pytest.mark.parametrize("unit", [None, "person"])
@pytest.mark.parametrize("job", JOBS)
def test_counts_are_released_with_noise(bench, job, unit):
    """Noise of scale 2/5 at most strays by more than 30 with probability e^-75."""
    given = {**JOBS[job], **CHECKS, **({"input.unit": unit} if unit else {})}
    release, said = released(bench, given)
    checks = release["checks"]
    assert abs(checks["left_out"][0] - 300) < 30 and abs(checks["moved"][0] - 500) < 30
    assert checks["share"] == 0.25
    (draw,) = [m for m in release["mechanisms"] if "moved" in m["mechanism"]]
    assert draw["epsilon"] == pytest.approx(5.0) and draw["sensitivity"] == (2 if unit else 1)
    assert release["privacy"]["spent"] <= 20 * (1 + 1e-9)
    page = (bench.folder / "out" / "report.html").read_text()
    for key, what in (("left_out", "left out"), ("moved", "moved")):
        whose = f"units have a row {what}" if unit else "rows"
        for text in (said, page):
            assert f"x: about {checks[key][0]} {whose}" in text
    assert "with such a row" not in said


def test_numbers_of_rows_that_are_moved_are_told_and_not_values(bench):
    """2,000 people have 2 rows, but 300 have one; all values but these lie within or beyond the bounds."""
    given = {**JOBS["one round"], **CHECKS, "input.unit": "person", "input.keep": "count"}
    wide, said = released(bench, {**given, "domain.upper": [5]})
    assert abs(wide["checks"]["moved"][0]) < 30 and "a number of rows outside of the bounds" in said
    _, said = released(bench, {**given, "domain.upper": [1], "output": str(bench.folder / "narrow")})
    assert "x: about" in said and "units have a number of rows that is moved" in said


def test_a_replaced_row_may_change_every_count(bench):
    release, _ = released(bench, {**JOBS["one round"], **CHECKS, **REPLACED})
    (draw,) = [m for m in release["mechanisms"] if "moved" in m["mechanism"]]
    assert draw["sensitivity"] == 2


def test_nothing_found_has_its_checks_too(bench):
    release, said = released(bench, {**CHECKS, "params.target": 5000, "input.columns": ["x", "y"]})
    assert release["result"] is None
    assert abs(release["checks"]["left_out"][1]) < 30
    assert "left out" in said and "moved" in said


def test_the_plan_says_what_becomes_of_the_input(bench):
    for given, says in (({}, "as input.checks is 0"), (CHECKS, "They take 25% of epsilon (input.checks).")):
        planned = bench.shoal("plan", bench.write(bench.changed({**JOBS["one round"], **given})), "--json")
        plan = json.loads(planned.stdout)
        assert says in " ".join(plan["notes"])
        assert sum("moved" in m["mechanism"] for m in plan["mechanisms"]) == bool(given)


def test_without_checks_a_job_is_the_one_of_earlier_versions(bench):
    """Its run id was the hash of a job that has no such key."""
    job = check_job(bench.changed({"input.checks": 0.0}))
    assert "checks" not in job.model_dump(mode="json")["input"]
    released_, said = released(bench, {"input.checks": 0.0})
    assert "checks" not in released_ and "left out" not in said


def test_one_percent_of_epsilon_pays_for_checks_by_default(bench):
    given = {**JOBS["one round"], "input.checks": ...}
    default, asked = (check_job(bench.changed(g)) for g in (given, {**given, "input.checks": 0.01}))
    assert (default.hash(), default.run_id) == (asked.hash(), asked.run_id)
    release, said = released(bench, given)
    (draw,) = [m for m in release["mechanisms"] if "moved" in m["mechanism"]]
    assert draw["epsilon"] == pytest.approx(0.01)
    assert release["checks"]["standard_error"] == pytest.approx(100 * 2**0.5, rel=1e-6)
    assert "left out" in said


def test_a_policy_has_no_checks_by_default(bench):
    given = {**changes("cdf"), **LINE, **REPLACED, "privacy.policy": {"distance": 0.25}, "input.checks": ...}
    assert check_job(bench.changed(given)).checks == 0
    plan = json.loads(bench.shoal("plan", bench.write(bench.changed(given)), "--json").stdout)
    assert "The release does not say how many are moved." in " ".join(plan["notes"])


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("task", [task for task in TASKS if not TASKS[task].subsamples])
def test_the_default_costs_a_task_one_percent_of_its_accuracy(bench, task, epsilon):
    """A budget that serves a task without checks also serves it with them, at the same total."""
    given = {**changes(task), "privacy.epsilon": epsilon}
    with_checks, without = (
        make_plan(check_job(bench.changed({**given, "input.checks": share})), bytes(16))
        for share in (..., 0.0)
    )
    assert with_checks.method == without.method
    assert with_checks.spend.epsilon <= epsilon * (1 + 1e-9)
    error, before = (plan.chosen.errors[plan.method] for plan in (with_checks, without))
    assert error <= 1.03 * before or np.isinf(before)


@pytest.mark.parametrize("accountant", ["basic", "renyi"])
def test_a_ledger_charges_no_more_with_checks_than_without(bench, accountant):
    spent = []
    for share in (..., 0.0):
        book = str(bench.folder / f"{share}.json")
        create_ledger(book, new_ledger(LIMIT, accountant))
        given = {**JOBS["one round"], "input.checks": share, "privacy.ledger": book}
        assert bench.run({**given, "output": str(bench.folder / "{run_id}")}).exit_code == 0
        spent.append(describe_ledger(read_ledger(book))["spent"])
    assert 0 < spent[0] <= spent[1]


REFUSED = [
    ({"input.checks": -0.1}, "input.checks is -0.1: it must be from 0 to 0.5"),
    ({"input.checks": 0.6}, "input.checks is 0.6: it must be from 0 to 0.5"),
    ({"input.checks": "all"}, "input.checks is 'all'"),
    (
        {**changes("cdf"), **LINE, **REPLACED, "privacy.policy": {"distance": 0.25}, "input.checks": 0.1},
        "input.checks is 0.1 and privacy.policy is given",
    ),
    ({**changes("sample_and_aggregate"), "input.checks": 0.1}, "input.checks is not a known key"),
]


@pytest.mark.parametrize(("given", "says"), REFUSED)
def test_checks_that_cannot_be_made_are_refused(bench, refused, given, says):
    assert says in refused(bench.run(given))


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([360, -90], ("x: about 360 rows, or noise",)),
        ([640, 353], ("x: about 640 rows", "y: about 353 rows, or noise")),
        ([630, 0], ("x: about 630 rows, or noise",)),
        ([350, 0], ("none stand out",)),
    ],
)
def test_counts_that_noise_may_have_made_are_not_told(counts, says):
    """A standard error of 141, of which two columns need 2 + ln(2) / sqrt(2) = 2.49, and 2 more."""
    release = {"domain": {"columns": ["x", "y"]}, "privacy": {}}
    facts = check_facts({**release, "checks": {"standard_error": 141.4, "left_out": counts, "moved": [0, 0]}})
    assert facts[0].lines == says and "standard error 141" in facts[0].note
    hidden = "noise may hide up to about 635 rows of a column, or all where there are fewer"
    assert (hidden in facts[0].note) == (counts == [350, 0])


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_counts_of_nothing_rarely_stand_out(columns):
    """In 3% of runs at most: 0.8 times that at least, and 6 standard deviations of 20,000 runs."""
    release = {"domain": {"columns": [f"x{i}" for i in range(columns)]}, "privacy": {}}
    noise = np.random.default_rng(columns).laplace(0, 1000 / 2**0.5, (20_000, columns)).round().astype(int)
    zeros = [0] * columns
    told = sum(
        check_facts({**release, "checks": {"standard_error": 1000.0, "left_out": each, "moved": zeros}})[
            0
        ].lines
        != ("none stand out",)
        for each in noise.tolist()
    )
    assert 0.8 * 0.0295 * 20_000 - 150 < told < 0.0296 * 20_000 + 150
