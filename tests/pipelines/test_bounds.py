"""Jobs that find bounds: without a domain, alone and as a question, and the domain of the next job."""

import numpy as np
import pyarrow as pa
import pytest
import yaml

import shoal
from pipelines.answers.bounds import next_domain
from pipelines.errors import JobError
from pipelines.job.job import check_raw

PRIVACY = {"epsilon": 2.0, "delta": 0}
ROWS = np.random.default_rng(1).lognormal(4, 1, 4_000)
TABLE = pa.table({"spent": ROWS, "balance": -1000 * ROWS})


def test_the_domain_of_the_answer_is_that_of_the_next_job():
    asked = {"task": "bounds", "input": {"columns": ["spent", "balance"]}, "privacy": PRIVACY}
    release = shoal.run(asked, TABLE)
    assert release.values["domain"]["lower"] == [-(10**15)] * 2
    (line,) = [line for line in str(release).splitlines() if line.startswith("domain")]
    domain = yaml.safe_load(line.removeprefix("domain"))
    found = release.values["result"]["columns"]
    assert domain == {
        "lower": [each["lower"] for each in found],
        "upper": [each["upper"] for each in found],
        "step": 1,
    }
    rows = ROWS
    outside = (rows < found[0]["lower"]) | (rows > found[0]["upper"])
    assert outside.sum() <= release.values["accuracy"]["promises"]["records_outside"] + 4
    assert found[0]["upper"] <= 1.5 * rows.max()
    means = {"task": "statistics", "domain": domain, "params": {"measures": ["mean"]}}
    shoal.run({**asked, **means}, TABLE)


def test_a_question_needs_no_domain():
    question = {"task": "bounds", "columns": ["spent"]}
    job = {"questions": {"ends": question, "more": question}, "privacy": PRIVACY}
    answers = shoal.run(job, TABLE).answers
    assert {*answers} == {"ends", "more"}


@pytest.mark.parametrize(
    ("low", "high", "step", "expected"),
    [
        (-20, 500, 1, "{lower: [-20], upper: [500], step: 1}"),
        (0.0, 0.30000000000000004, 1e-5, "{lower: [0], upper: [0.3], step: 0.00001}"),
        (-(10**15), 10**15, 1, "{lower: [-1000000000000000], upper: [1000000000000000], step: 100000000}"),
        (0, 2 * 10**8, 1, "{lower: [0], upper: [200000000], step: 10}"),
    ],
)
def test_numbers_are_as_yaml_reads_them(low, high, step, expected):
    """The step is no finer than a 10^8th of the widest column."""
    release = {"result": {"columns": [{"lower": low, "upper": high}]}, "domain": {"step": step}}
    assert next_domain(release) == expected
    assert yaml.safe_load(expected)["upper"] == [pytest.approx(high)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"input": {"path": "a", "columns": "spent"}}, "input.columns is 'spent': it must be a list"),
        ({"input": {"path": "a", "columns": []}}, "input.columns"),
        ({"input": "a"}, "input is 'a'"),
        ({"domain": None}, "domain"),
        ({"domain": {"lower": ["2020-01-01"], "upper": ["2020-12-31"], "step": "1 day"}}, "are numbers"),
    ],
)
def test_what_is_refused_is_said(changed, said):
    job = {"task": "bounds", "input": {"path": "a", "columns": ["spent"]}, "privacy": PRIVACY, "output": "o"}
    with pytest.raises(JobError, match=said):
        check_raw({**job, **changed})
