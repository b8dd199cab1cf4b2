"""Engines for the tests, started once. A part that is not here skips the test, but fails it where CI=true."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.engines.cluster_job import ClusterJob
from tests.engines.fetch import MissingPart
from tests.engines.flink import FlinkCluster, JobServer
from tests.engines.golden import Trace
from tests.engines.process_worker import write_script
from tests.engines.services import FakeGcs, Prism, WorkerPool


@contextmanager
def parts_are_here() -> Iterator[None]:
    """Skip, or fail in CI, where a part is missing."""
    try:
        yield
    except MissingPart as error:
        tell = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        tell(str(error))


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[FakeGcs]:
    with parts_are_here(), FakeGcs() as server:
        yield server


@pytest.fixture(scope="session")
def prism() -> Iterator[Prism]:
    with parts_are_here(), Prism() as server:
        yield server


@pytest.fixture(scope="session")
def flink() -> Iterator[FlinkCluster]:
    with parts_are_here(), FlinkCluster(task_managers=1, slots=2) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def job_server(flink: FlinkCluster) -> Iterator[JobServer]:
    with parts_are_here(), JobServer(flink) as server:
        yield server


@pytest.fixture(scope="session")
def worker_pool() -> Iterator[WorkerPool]:
    with WorkerPool() as pool:
        yield pool


@pytest.fixture(scope="session")
def process_workers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options by which every TaskManager starts workers of its own."""
    script = write_script(tmp_path_factory.mktemp("worker"))
    return ["--environment_type=PROCESS", f"--environment_config={json.dumps({'command': str(script)})}"]


@pytest.fixture(scope="session")
def cluster_job(tmp_path_factory: pytest.TempPathFactory) -> ClusterJob:
    return ClusterJob.make(tmp_path_factory.mktemp("rows"), rows=2_000_000)


@pytest.fixture(scope="session")
def expected(cluster_job: ClusterJob) -> Trace:
    return cluster_job.run_in_memory()
