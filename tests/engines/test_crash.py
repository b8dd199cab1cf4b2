"""A submitting process that dies at any moment: one release, one charge, and the noise seen first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from tests.engines.crash import MOMENTS
from tests.pipelines.conftest import Bench


@pytest.fixture
def bench(tmp_path) -> Bench:
    bench = Bench(tmp_path)
    bench.job["privacy"]["ledger"] = str(tmp_path / "ledger.json")
    create_ledger(bench.job["privacy"]["ledger"], Ledger(epsilon=1.0, delta=1e-6))
    return bench


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_crash_leaves_what_a_second_run_completes(bench, moment):
    path = bench.write(bench.job)
    crashed = subprocess.run([sys.executable, "-m", "tests.engines.crash", moment, "run", path], check=False)
    assert crashed.returncode == -signal.SIGKILL
    release = bench.folder / "out" / "release.json"
    seen = release.read_bytes() if release.exists() else None
    charged = len(read_ledger(bench.job["privacy"]["ledger"]).charges)
    assert charged == (moment != "before_charge")
    assert (seen is not None) == (moment in MOMENTS[MOMENTS.index("after_link") :])
    left = {path.name for path in (bench.folder / "out").glob("*")}  # hidden ones too
    assert left <= {"output.id"} | ({"release.json", "report.html"} if seen is not None else set())

    again = bench.shoal("run", path)
    assert again.exit_code == 0, again.output
    assert seen in (None, release.read_bytes())
    assert set(os.listdir(bench.folder / "out")) == {"output.id", "release.json", "report.html"}
    charges = read_ledger(bench.job["privacy"]["ledger"]).charges
    assert [entry.release is not None for entry in charges] == [True]
    third = bench.shoal("run", path)
    assert third.stdout == again.stdout
    assert Path(release).read_bytes() == (seen or release.read_bytes())
