"""A pipeline that fails: a release that it left counts, and the error says what running again costs."""

import pytest

from pipelines.errors import RunError
from pipelines.job.job import check_job
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.run import run as runs

MEDIAN = {
    "task": "median",
    "params": {},
    "domain": {"lower": [0.0], "upper": [1.0], "step": 2.0**-16},
    "input.columns": ["x"],
    "run_id": "monday",
}


@pytest.mark.parametrize("charged", [False, True])
def test_a_release_that_a_failed_pipeline_left_is_the_one_of_the_run(bench, monkeypatch, charged):
    """Without one, whoever is charged is told that another try costs nothing more, and nobody else is."""
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=1.0, delta=1e-5))
    job = check_job(bench.changed({**MEDIAN, **({"privacy.ledger": path} if charged else {})}))
    submit, run = runs.submit, [False]

    def broken(*arguments):
        if run[0]:
            submit(*arguments)
        raise RunError("The pipeline failed.")

    monkeypatch.setattr(runs, "submit", broken)
    with pytest.raises(RunError) as failed:
        runs.run_job(job)
    assert ("again with run_id monday, which costs nothing more" in str(failed.value)) == charged
    assert not (bench.folder / "out" / "release.json").exists()
    run[0] = True
    released = runs.run_job(job)
    assert released is not None and released["outcome"] == "released"
    assert released == bench.release()
    charges = read_ledger(path).charges
    assert [entry.release is not None for entry in charges] == [True] * charged
