"""Checks of the input from the job file to the release: what was left out, and what was moved to a bound."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.job.job import check_job
from tests.pipelines.jobs import LINE, REPLACED, changes

CHECKS = {"input.checks": 0.25, "privacy.epsilon": 20.0}
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
    noun = "units" if unit else "rows"
    for text in (said, page):
        assert f"x: about {checks['left_out'][0]} {noun}" in text
        assert f"x: about {checks['moved'][0]} {noun}" in text


def test_a_replaced_row_may_change_every_count(bench):
    release, _ = released(bench, {**JOBS["one round"], **CHECKS, **REPLACED})
    (draw,) = [m for m in release["mechanisms"] if "moved" in m["mechanism"]]
    assert draw["sensitivity"] == 2


def test_nothing_found_has_its_checks_too(bench):
    release, said = released(bench, {**CHECKS, "params.target": 5000, "input.columns": ["x", "y"]})
    assert release["result"] is None
    assert abs(release["checks"]["left_out"][1]) < 30
    assert "left out" in said and "y: about" in said


def test_the_plan_says_what_becomes_of_the_input(bench):
    for given, says in (({}, "unless input.checks pays for it"), (CHECKS, "takes 25% of epsilon")):
        planned = bench.shoal("plan", bench.write(bench.changed({**JOBS["one round"], **given})), "--json")
        plan = json.loads(planned.stdout)
        assert says in " ".join(plan["notes"])
        assert sum("moved" in m["mechanism"] for m in plan["mechanisms"]) == bool(given)


def test_without_checks_a_job_is_the_one_that_it_was(bench):
    plain, none, some = (check_job(bench.changed(g)) for g in ({}, {"input.checks": 0.0}, CHECKS))
    assert plain.hash() == none.hash() != some.hash()
    assert "checks" not in plain.model_dump(mode="json")["input"]
    released_, said = released(bench, {})
    assert "checks" not in released_ and "left out" not in said


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
