"""Values are rounded to the step before they are counted: a plan says so, since promises are about these."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.job.job import check_job
from pipelines.notes import notes
from pipelines.plan import describe, make_plan
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import changes


def said_of(changed):
    """Return the promises and the notes of a plan."""
    job = check_job(changed_job(changed))
    plan = make_plan(job, bytes(16))
    promises = TASKS[job.task].answers.promises(describe(job, plan))
    return promises, notes(job, plan)


@pytest.mark.parametrize("task", [task for task in TASKS if not TASKS[task].subsamples])
def test_a_plan_says_that_values_are_rounded(task):
    _, noted = said_of({**changes(task), "privacy.epsilon": 5.0})
    assert sum("are rounded to the step of the domain" in note for note in noted) == 1


def test_means_of_units_are_rounded_and_the_plan_says_so(bench):
    """Every unit has the mean 13/3. On a grid of whole numbers the released mean is 4, without noise."""
    unit = {"task": "statistics", "input.unit": "who", "input.keep": "mean", "input.columns": ["x"]}
    unit |= {"domain": {"lower": [1], "upper": [5], "step": 1}, "params": {"measures": ["sum", "mean"]}}
    promises, noted = said_of({**unit, "privacy.epsilon": 5.0})
    words = "with values, and means of units, rounded to the step and moved to the bounds"
    assert [words in each for each in promises] == [True, True]
    assert any("replaced by their mean, which is rounded to the step, too" in note for note in noted)
    path = bench.folder / "units.parquet"
    pq.write_table(pa.table({"who": [i // 3 for i in range(3000)], "x": [4.0, 4.0, 5.0] * 1000}), path)
    result = bench.run({**unit, "privacy.epsilon": 50.0, "input.path": str(path)})
    assert result.exit_code == 0, result.output
    _, mean = bench.release()["result"]["values"]
    assert abs(mean["value"] - 4) < 0.01
