"""Storage that fails between charge and release: exit code 1, then the same id finishes, charged once."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.job.job import check_job
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.run import run as runs
from pipelines.storage import object_folder
from tests.engines.buckets import open_bucket
from tests.engines.conftest import parts_are_here
from tests.engines.services import FakeGcs
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes


@pytest.fixture(params=["median", "histogram"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    ledger = str(tmp_path / "ledger.json")
    bench.job = bench.changed({**changes(request.param), "privacy.ledger": ledger, "run_id": "monday"})
    create_ledger(ledger, Ledger(epsilon=1.0, delta=1e-6))
    return bench


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mounts = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mounts, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def outputs(bench: Bench) -> set[str]:
    """Return the names of what a run leaves."""
    table = {"result.parquet"} if bench.job["task"] == "histogram" else set()
    return {"output.id", "release.json", "report.html"} | table


def after_charge(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` once, when a run has been charged."""
    charge, left = runs.charge_run, [act]

    def charged(*arguments: object) -> object:
        entry = charge(*arguments)
        if left:
            left.pop()()
        return entry

    monkeypatch.setattr(runs, "charge_run", charged)


def fails_and_finishes(bench: Bench, says: str, mend: Callable[[], object], output: Path) -> None:
    """Run twice, mended in between: exit codes 1 and 0, one charge, one release and nothing else."""
    failed = bench.run()
    assert failed.exit_code == 1, failed.output
    assert says in failed.stderr
    assert "The run is charged: once that is mended, run it again with run_id " in failed.stderr
    assert failed.stderr.strip().count("\n") == 0
    assert [path.name for path in output.iterdir()] == ["output.id"]
    assert [entry.release for entry in read_ledger(bench.job["privacy"]["ledger"]).charges] == [None]
    mend()
    again = bench.run()
    assert again.exit_code == 0, again.output
    assert set(os.listdir(output)) == outputs(bench)
    charges = read_ledger(bench.job["privacy"]["ledger"]).charges
    assert [entry.release is not None for entry in charges] == [True]


def test_a_full_disk(bench, disk, monkeypatch):
    bench.job["output"] = str(disk / "out")
    filler = disk / "filler"

    def fill() -> None:
        with pytest.raises(OSError, match="No space"), filler.open("wb") as file:
            file.write(bytes(1 << 20))

    after_charge(monkeypatch, fill)
    fails_and_finishes(bench, "No space left on device", filler.unlink, disk / "out")


def test_a_file_that_may_not_be_that_large(bench, monkeypatch):
    """What a quota does, where no file system can be mounted."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        after_charge(monkeypatch, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1])))
        fails_and_finishes(
            bench,
            "cannot be written (File too large)",
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before),
            bench.folder / "out",
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_becomes_read_only(bench, disk, monkeypatch):
    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)

    bench.job["output"] = str(disk / "out")
    after_charge(monkeypatch, lambda: remount("ro"))
    fails_and_finishes(bench, "Read-only file system", lambda: remount("rw"), disk / "out")


def test_a_disk_that_is_read_only_from_the_start(bench, disk):
    """It is found before anything is charged, and then the job is wrong."""
    bench.job["output"] = str(disk / "out")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    refused = bench.run()
    assert (refused.exit_code, "Read-only file system" in refused.stderr) == (2, True)
    assert read_ledger(bench.job["privacy"]["ledger"]).charges == ()


def test_a_clock_that_is_set_back(bench, monkeypatch):
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    job = check_job(bench.job)

    def fail() -> None:
        raise KeyboardInterrupt

    after_charge(monkeypatch, fail)
    with pytest.raises(KeyboardInterrupt):
        runs.run_job(job, clock=lambda: noon)
    assert runs.run_job(job, clock=lambda: noon - timedelta(days=400))["run_id"] == "monday"
    (charge,) = read_ledger(job.privacy.ledger).charges
    assert (charge.at, charge.release is not None) == (noon, True)


@pytest.mark.engine
def test_a_network_that_is_cut(bench, connect, monkeypatch):
    """The server of the release is gone once the run is charged; rows and ledger are elsewhere."""
    monkeypatch.setattr(object_folder, "WAIT", 2.0)
    with parts_are_here(), FakeGcs() as server:
        connect(server.environment)
        server.create_bucket("cut")
        bucket = open_bucket("gs://cut")
        bench.job["output"] = "gs://cut/out"
        after_charge(monkeypatch, lambda: connect(server.settings("http://127.0.0.1:9")))
        failed = bench.run()
        assert failed.exit_code == 1, failed.output
        assert "bucket cut did not respond" in failed.stderr
        connect(server.environment)
        assert bucket.names() == ["out/output.id"]
        again = bench.run()
        assert again.exit_code == 0, again.output
        names = {name.removeprefix("out/") for name in bucket.names()}
        assert names == outputs(bench)
        charges = read_ledger(bench.job["privacy"]["ledger"]).charges
        assert [entry.release is not None for entry in charges] == [True]
