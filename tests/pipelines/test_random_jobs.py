"""Two thousand random jobs: each is planned, or refused in sentences, and nothing is written or charged."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.console.printable import CONTROL
from pipelines.tasks import TASKS
from tests.pipelines.conftest import planted
from tests.pipelines.jobs import JOBS
from tests.pipelines.random_jobs import Generator, contents

SEED = int(os.environ.get("SHOAL_JOBS_SEED", "0"))
JOBS_IN_ALL = int(os.environ.get("SHOAL_JOBS", "500"))
"""By hand, more jobs of another seed may be tried."""

DRY_RUNS = 10
"""One job in so many is tried with its input."""


def test_every_task_has_a_job_to_spoil():
    assert JOBS.keys() == TASKS.keys()


@pytest.mark.slow
def test_random_jobs(bench, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(bench.folder)
    rows = planted(200, 100)
    columns = {"x": rows[:, 0], "y": rows[:, 1], "w": rows[:, 0], "who": np.arange(200) // 2}
    pq.write_table(pa.table(columns), bench.rows)
    jobs = Generator(bench, SEED)
    before = contents(bench.folder)
    path = tmp_path_factory.mktemp("jobs") / "job.yaml"
    planned, wrong = 0, []
    for i in range(JOBS_IN_ALL):
        text = jobs.text()
        path.write_bytes(text.encode(errors="surrogatepass"))
        command = ["run", str(path), "--dry-run"] if i % DRY_RUNS == 0 else ["plan", str(path)]
        result = bench.shoal(*command)
        problem = complaint(result, text)
        if problem:
            wrong.append(f"{i} {command[0]}: {problem}\n{text[:1500]}\n")
        planned += result.exit_code == 0
    assert not wrong, "\n".join(wrong)
    assert contents(bench.folder) == before
    assert JOBS_IN_ALL / 20 < planned < JOBS_IN_ALL / 2


def complaint(result, text: str) -> str:
    """Return what is wrong with the answer to a job, or nothing."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return repr(result.exception)
    if result.exit_code == 0:
        warned = result.stderr.startswith("shoal: A run here would be refused. ")  # its ledger is missing
        return "" if result.stdout and (warned or not result.stderr) else f"says {result.stderr}"
    lines = result.stderr.removesuffix("\n").split("\n")
    sound = (
        (result.exit_code == 2 or (result.exit_code == 3 and "ledger" in text))
        and not result.stdout
        and lines[0].startswith("shoal: ")
        and all(line.endswith(".") and len(line) < 500 and not CONTROL.search(line) for line in lines)
    )
    return "" if sound else f"exit code {result.exit_code}: {result.stderr[:1000]!r}"
