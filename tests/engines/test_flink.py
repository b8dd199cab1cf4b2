"""A real Flink cluster gives what memory gives, bit for bit, wherever its Python workers come from."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from core.one_cluster.found import Found
from tests.engines.cluster_job import GRID, ClusterJob, Submission, assert_equal
from tests.engines.flink import FLINK_OPTIONS, FlinkCluster, JobServer
from tests.engines.golden import Trace
from tests.engines.services import WorkerPool, wait_until

Submit = Callable[..., Submission]

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_the_job_is_not_trivial(cluster_job: ClusterJob, expected: Trace) -> None:
    cells, *tallies = expected.aggregates
    assert len(cluster_job.source.files) == 4
    assert len(cells.samples) == 2 and all(len(sample) > 100 for sample in cells.samples)
    assert all(each.totals.any() for each in tallies)
    assert isinstance(expected.state, Found)
    center = GRID.restore(expected.state.center)
    assert np.abs(center - [0.3, 0.7]).max() < 0.001
    assert 150_000 < expected.state.count < 210_000


@pytest.fixture
def submit(job_server: JobServer, cluster_job: ClusterJob, tmp_path: Path) -> Iterator[Submit]:
    """Start the job; the arguments say where its Python workers come from."""
    with ExitStack() as stack:

        def start(*environment: str) -> Submission:
            options = ["--runner=PortableRunner", f"--job_endpoint={job_server.endpoint}", *FLINK_OPTIONS]
            output = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
            submission = Submission(cluster_job, output, [*options, *environment])
            stack.callback(submission.stop)
            return submission

        yield start


def test_loopback(flink: FlinkCluster, submit: Submit, expected: Trace) -> None:
    flink.resize(1)
    [got] = submit("--environment_type=LOOPBACK").wait()
    assert_equal(got, expected)


def test_external(flink: FlinkCluster, submit: Submit, worker_pool: WorkerPool, expected: Trace) -> None:
    flink.resize(1)  # two would share the pool, and each stop the workers of the other
    [got] = submit("--environment_type=EXTERNAL", f"--environment_config={worker_pool.address}").wait()
    assert_equal(got, expected)


def test_process_on_two_task_managers(
    flink: FlinkCluster, submit: Submit, process_workers: list[str], expected: Trace
) -> None:
    flink.resize(2)
    [got] = submit(*process_workers).wait()
    assert_equal(got, expected)
    assert len(flink.task_managers_of_last_job()) == 2


def test_a_task_manager_is_killed(
    flink: FlinkCluster, submit: Submit, process_workers: list[str], expected: Trace
) -> None:
    for _ in range(4):  # a job may be just between two stages, or need nothing more of what died
        flink.resize(2)
        before = flink.last_job()
        submission = submit(*process_workers)
        wait_until(lambda seen=before: flink.last_job() != seen, 300, "the job is not on the cluster")
        wait_until(lambda: flink.progress() >= 1 / 3, 300, "the job gets nowhere")
        flink.kill_task_manager()
        states = submission.wait()
        assert states  # a worker that is run again may keep the last state again
        for got in states:
            assert_equal(got, expected)
        if flink.failures():
            return
    pytest.fail("no job noticed")
