"""`shoal run` on a real Flink cluster: everything on object storage, and processes that die."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.storage.local_folder import LocalFolder
from tests.engines.buckets import Bucket
from tests.engines.flink import FlinkCluster, JobServer
from tests.engines.services import PYTHON_WORKER, ObjectServer, wait_until
from tests.engines.test_object_storage import Cloud
from tests.pipelines.conftest import Bench, planted, write_rows

pytestmark = [pytest.mark.engine, pytest.mark.slow]

OPTIONS = ["--parallelism=2", "--environment_cache_millis=60000"]


class Site:
    """A bench whose jobs run on the cluster, each in a process of its own."""

    def __init__(self, bench: Bench, server: JobServer, environment: dict[str, str]) -> None:
        self.bench, self.environment, self.ledgers = bench, environment, 0
        self.options = ["--runner", "FlinkRunner", "--", f"--job_endpoint={server.endpoint}", *OPTIONS]

    def open_ledger(self) -> None:
        """Give the jobs from here on a ledger with room for one of them."""
        self.ledgers += 1
        path = str(self.bench.folder / f"ledger-{self.ledgers}.json")
        create_ledger(path, Ledger(epsilon=1.0, delta=1e-6))
        self.bench.job["privacy"]["ledger"] = path

    def start(self, *workers: str, moment: str | None = None) -> subprocess.Popen:
        """Run the bench's job; die at `moment` where one is given."""
        crash = [sys.executable, "-m", "tests.engines.crash", str(moment)]
        command = crash if moment else [str(Path(sys.executable).parent / "shoal")]
        path = self.bench.write(self.bench.job)
        return subprocess.Popen(
            [*command, "run", path, *self.options, *workers],
            env=os.environ | PYTHON_WORKER | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *workers: str) -> str:
        """Run the bench's job to its end; return what it says."""
        process = self.start(*workers)
        said, complaint = process.communicate(timeout=300)
        assert process.returncode == 0, complaint
        return said


@pytest.fixture
def site(tmp_path: Path, job_server: JobServer) -> Site:
    bench = Bench(tmp_path)
    site = Site(bench, job_server, {})
    site.open_ledger()
    return site


def one_release_one_charge(bench: Bench) -> bytes:
    """Check that there is one of each, and return the release."""
    charges = read_ledger(bench.job["privacy"]["ledger"]).charges
    assert [entry.release is not None for entry in charges] == [True]
    folder = bench.folder / "out"
    assert sorted(path.name for path in folder.iterdir()) == ["output.id", "release.json", "report.html"]
    return (folder / "release.json").read_bytes()


def test_everything_on_object_storage(
    flink: FlinkCluster,
    job_server: JobServer,
    server: ObjectServer,
    bucket: Bucket,
    tmp_path: Path,
) -> None:
    flink.resize(1)
    cloud = Cloud(tmp_path, bucket)
    site = Site(cloud, job_server, dict(server.environment))
    said = site.run("--environment_type=LOOPBACK")
    assert f"{bucket.root}/releases/monday/release.json" in said
    assert cloud.release()["outcome"] == "released"
    assert [entry.release is not None for entry in cloud.charges()] == [True]
    assert site.run("--environment_type=LOOPBACK") == said


PEOPLE = 3000


@pytest.mark.parametrize("task", ["histogram", "sample_and_aggregate"])
def test_rows_of_people(flink: FlinkCluster, site: Site, process_workers: list[str], task: str) -> None:
    """Every person has three rows: counted are people, or one is in a subsample of each of two cities."""
    flink.resize(2)
    rng = np.random.default_rng(5)
    person = rng.permutation(np.repeat(np.arange(PEOPLE), 3))
    x = rng.uniform(size=len(person))
    falls = rng.integers(0, 2, len(x)) == 1
    y = np.clip(np.where(falls, 1 - x, x) + rng.normal(scale=0.05, size=len(x)), 0, 1)
    columns = {"x": x, "y": y, "person": person, "city": np.where(falls, "down", "up")}
    pq.write_table(pa.table(columns), site.bench.rows, row_group_size=1000)
    site.bench.job |= {"task": task, "params": {"cells": [16]}}
    site.bench.job["input"]["unit"] = "person"
    site.bench.job["privacy"] |= {"epsilon": 20.0, "ledger": None}
    if task == "histogram":
        site.bench.job["input"]["columns"] = ["x"]
        site.bench.job["domain"] = {"lower": [0], "upper": [1], "step": 2.0**-12}
    else:
        del site.bench.job["input"]["checks"]
        del site.bench.job["domain"]
        site.bench.job["params"] = {
            "function": "shoal.analyses.association:correlation",
            "blocks": 60,
            "aggregator": "median",
            "outputs": {"lower": [-1.0], "upper": [1.0], "step": 2.0**-10},
        }
        site.bench.job["group_by"] = {"columns": ["city"], "keys": ["up", "down"]}
        site.bench.job["contributions"] = {"groups": 2}
        # noise of scale 2/3 makes none of 60 blocks more than the 12 that may fail with probability 6e-9
        site.bench.job["privacy"]["epsilon"] = 100.0
    site.run(*process_workers)
    release = site.bench.release()
    if task == "histogram":
        assert abs(release["result"]["total"] - PEOPLE) < 100  # noise of scale 1/20
    else:
        for group, there in zip(release["groups"], (~falls, falls), strict=True):
            assert abs(group["result"]["value"][0] - np.corrcoef(x[there], y[there])[0, 1]) < 0.1


def test_a_task_manager_dies(flink: FlinkCluster, site: Site, process_workers: list[str]) -> None:
    write_rows(site.bench.rows, planted(n=400_000, t=40_000))
    site.bench.job["params"]["target"] = 40_000
    for _ in range(4):  # a job may be just between two stages, or need nothing more of what died
        flink.resize(2)
        site.open_ledger()
        before = flink.last_job()
        process = site.start(*process_workers)
        wait_until(lambda seen=before: flink.last_job() != seen, 300, "the job is not on the cluster")
        wait_until(lambda: flink.progress() >= 1 / 3, 300, "the job gets nowhere")
        flink.kill_task_manager()
        _, complaint = process.communicate(timeout=300)
        assert process.returncode == 0, complaint
        one_release_one_charge(site.bench)
        if flink.failures():
            return
        shutil.rmtree(site.bench.folder / "out")
    pytest.fail("no job noticed")


@pytest.mark.parametrize("moment", ["after_charge", "before_wait", "after_run"])
def test_the_submitting_process_dies(
    flink: FlinkCluster, site: Site, process_workers: list[str], moment: str
) -> None:
    """Its job may go on without it: still one release, the one that was seen first."""
    flink.resize(1)
    crashed = site.start(*process_workers, moment=moment)
    crashed.communicate(timeout=300)
    assert crashed.returncode == -signal.SIGKILL
    again = site.run(*process_workers)
    release = one_release_one_charge(site.bench)
    idle = time.monotonic() + 60
    while flink.ask("overview").get("jobs-running") and time.monotonic() < idle:
        time.sleep(0.5)
    assert one_release_one_charge(site.bench) == release
    assert site.run(*process_workers) == again
    assert LocalFolder(str(site.bench.folder / "out")).read("release.json") == release
