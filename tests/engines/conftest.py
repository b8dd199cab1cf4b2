"""Engines for the tests, started once. A part that is not here skips the test, but fails it where CI=true."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache

import pytest

from tests.engines.buckets import SERVERS, Bucket, forget_clients, new_bucket, open_bucket
from tests.engines.cluster_job import ClusterJob
from tests.engines.fetch import MissingPart
from tests.engines.flink import FlinkCluster, JobServer
from tests.engines.golden import Trace
from tests.engines.process_worker import write_script
from tests.engines.services import ObjectServer, Prism, WorkerPool


@contextmanager
def parts_are_here() -> Iterator[None]:
    """Skip, or fail in CI, where a part is missing."""
    try:
        yield
    except MissingPart as error:
        tell = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        tell(str(error))


@pytest.fixture(scope="session")
def object_servers() -> Iterator[Callable[[str], ObjectServer]]:
    """Return what gives the server of a kind of `SERVERS`, which is started when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def start(kind: str) -> ObjectServer:
            with parts_are_here():
                return stack.enter_context(SERVERS[kind]())

        yield start


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, object_servers: Callable[[str], ObjectServer]) -> ObjectServer:
    """A server of each kind of object storage."""
    return object_servers(request.param)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Return what points this process at a server; it is pointed away again afterwards."""

    def at(settings: Mapping[str, str]) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        forget_clients()

    yield at
    forget_clients()


@pytest.fixture
def bucket(server: ObjectServer, connect: Callable[[Mapping[str, str]], None]) -> Bucket:
    """A new bucket, empty, on a server of each kind."""
    connect(server.environment)
    return open_bucket(new_bucket(server))


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
