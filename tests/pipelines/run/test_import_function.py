"""A function that cannot be imported is told by a plan, and refused by a run."""

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.run.import_function import import_function
from tests.pipelines.jobs import changes

WRONG = {
    "shoal.analyses.nowhere:linear": "ModuleNotFoundError",
    "shoal.analyses.regression:cubic": "AttributeError",
}


def given(function: str) -> dict:
    job = changes("sample_and_aggregate")
    return {**job, "params": {**job["params"], "function": function}}


@pytest.mark.parametrize("function", WRONG)
def test_a_plan_says_what_a_run_refuses(bench, refused, function):
    changed = given(function)
    planned = bench.shoal("plan", bench.write(bench.changed(changed)), "--json")
    assert planned.exit_code == 0 and '"method"' in planned.stdout
    ran = refused(bench.run(changed))
    problem = ran.removeprefix("shoal: ")
    assert planned.stderr == f"shoal: A run here would be refused. {problem}\n"
    assert f"params.function is {function}, but that cannot be imported: {WRONG[function]}" in problem
    with pytest.raises(JobError, match=WRONG[function]):
        import_function(check_job(bench.changed(changed)).task_params.untrusted())


def test_a_function_that_exists_is_not_mentioned(bench):
    changed = given("shoal.analyses.association:correlation")
    planned = bench.shoal("plan", bench.write(bench.changed(changed)))
    assert (planned.exit_code, planned.stderr) == (0, "")
