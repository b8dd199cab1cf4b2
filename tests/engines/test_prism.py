"""Beam's own local runner gives what memory gives, bit for bit."""

from pathlib import Path

import pytest

from tests.engines.cluster_job import ClusterJob, Submission, assert_equal
from tests.engines.fetch import have
from tests.engines.services import Prism

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def small_job(tmp_path_factory: pytest.TempPathFactory) -> ClusterJob:
    return ClusterJob.make(tmp_path_factory.mktemp("rows"), rows=200_000)


def test_started_by_beam(prism: Prism, small_job: ClusterJob, tmp_path: Path) -> None:
    options = ["--runner=PrismRunner", f"--prism_location={have('prism')}"]
    [got] = Submission(small_job, tmp_path / "out", options).wait()
    assert_equal(got, small_job.run_in_memory())
