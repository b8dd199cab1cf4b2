"""The terminal of whoever submits a job sees how far it is, with workers in other processes."""

import os
import re
from pathlib import Path

import pytest

from tests.engines.flink import FLINK_OPTIONS, FlinkCluster, JobServer
from tests.engines.services import HOST, PYTHON_WORKER, Prism, WorkerPool
from tests.pipelines.conftest import Bench, planted, write_rows
from tests.pipelines.console.test_progress import SHOAL, moves, see

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A job of at least two rounds on 300 row groups."""
    bench = Bench(tmp_path)
    write_rows(bench.rows, planted(n=300_000, t=60_000))
    bench.job["params"]["target"] = 60_000
    return bench


def bar(bench: Bench, *options: str) -> list[str]:
    """Run the job, and return the numbers of pieces that its bar showed, in order.

    The bar shows none before a piece is done. How many it shows depends on how long the job takes.
    """
    command = [str(SHOAL), "run", bench.write(bench.job), "--runner", *options]
    seen, code = see(command, os.environ | PYTHON_WORKER)
    assert code == 0, seen[-3:]
    assert bench.release()["outcome"] == "released"
    shown = moves(seen)
    assert all(re.search(r": \d+ of 300 row groups \(step \d of \d\)$", each) for each in shown)
    steps = [int(each[-7]) for each in shown]
    assert steps == sorted(steps)
    return shown


def test_prism(prism: Prism, worker_pool: WorkerPool, bench: Bench) -> None:
    workers = "--environment_type=EXTERNAL", f"--environment_config={worker_pool.address}"
    assert bar(bench, "PrismRunner", "--", f"--job_endpoint={prism.endpoint}", *workers)


def test_flink(flink: FlinkCluster, job_server: JobServer, process_workers: list[str], bench: Bench) -> None:
    """Flink tells what a subtask has done when it ends, and only where the job names its address."""
    flink.resize(1)
    address = f"--flink_master={HOST}:{flink.rest_port}"
    options = [f"--job_endpoint={job_server.endpoint}", address, *FLINK_OPTIONS, *process_workers]
    assert bar(bench, "FlinkRunner", "--", *options)
