"""What pip installs runs on Flink: the submitting process and its workers have no other copy of Shoal."""

from pathlib import Path

import pytest

from tests.deploy.installed import install
from tests.engines.flink import FLINK_OPTIONS, FlinkCluster, JobServer

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_the_wheel_runs_on_flink(flink: FlinkCluster, job_server: JobServer, tmp_path: Path) -> None:
    flink.resize(1)
    installed = install(tmp_path)
    installed.run("shoal", "demo")
    job = str(installed.project / "demo-out" / "job.yaml")
    options = ("--environment_type=LOOPBACK", f"--job_endpoint={job_server.endpoint}", *FLINK_OPTIONS)
    ran = installed.run(
        "shoal", "run", job, "--set", "run_id=flink", "--runner", "FlinkRunner", "--", *options
    )
    assert "center" in ran.stdout
