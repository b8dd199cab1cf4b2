"""Shoal on macOS, as far as Linux can show it, and what a run writes to standard error."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.tasks import TASKS
from tests.pipelines.as_on_macos import PACKAGES, PROGRAMS
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import LINE, changes

ROOT = Path(__file__).parents[2]
FUNCTION = "sample_and_aggregate"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What macOS told; see `tests.pipelines.as_on_macos`."""
    bench = Bench(tmp_path_factory.mktemp("macos"))
    run = bench.changed({"task": "median", **LINE, "params": {}})
    jobs = {task: bench.changed(changes(task)) for task in TASKS}
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipelines.as_on_macos", json.dumps([jobs, run, FUNCTION])],
        check=True,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    return json.loads(done.stdout)


def test_every_module_can_be_imported_on_macos(told: dict[str, Any]) -> None:
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    packages = {name.removesuffix(".__init__") for name in names if name.endswith(".__init__")}
    modules = {name for name in names if not name.endswith("__init__")} - PROGRAMS
    nested = {name for name in packages if "." in name}
    assert set(told["imported"]) == modules | nested


def test_every_task_is_planned_on_macos_and_rows_are_read(told: dict[str, Any]) -> None:
    assert set(told["planned"]) == set(TASKS)
    refused = {task for task, sentences in told["refusals"].items() if sentences}
    assert refused == {FUNCTION}
    assert told["released"] == "released"


def test_what_needs_linux_says_so_in_one_sentence(told: dict[str, Any]) -> None:
    function = (
        "params.function runs in processes that need Linux, and this machine is darwin: run the job on a "
        "machine or in a container with Linux. Its plan is the same anywhere."
    )
    assert told["function"] == function
    assert told["refusals"][FUNCTION] == [function]
    assert told["cost"] == (
        "shoal cost measures memory in /proc of Linux, and this machine is darwin: predict the cost on a "
        "machine or in a container with Linux."
    )


@pytest.mark.parametrize("how", ["command", "python"])
def test_a_run_writes_nothing_to_standard_error(how: str, bench: Bench) -> None:
    """Also none of the warnings that Beam and its clients give when they are imported."""
    job = json.dumps(bench.changed({"task": "median", **LINE, "params": {}}))
    (bench.folder / "job.json").write_text(job)
    called = "import json, shoal, sys; print(shoal.run(json.load(open(sys.argv[1]))))"
    program = ["-c", called] if how == "python" else ["-m", "shoal", "run"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    done = subprocess.run(
        [sys.executable, *program, str(bench.folder / "job.json")],
        check=False,
        capture_output=True,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"value ")
