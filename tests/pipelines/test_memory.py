"""Neither a unit with most of the rows nor distinct values take more memory than other rows."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

ROWS = 6_000_000
MOST = 700
"""MB. With all rows of the unit, or all values, in memory these runs took from 828 to 1,400."""

COUNTED = {
    "params": {"measures": ["count", "mean"]},
    "group_by": {"columns": ["g"], "keys": "private"},
    "contributions": {"groups": 2, "rows": 5},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of rows, of which 90% are those of unit 0."""
    folder = tmp_path_factory.mktemp("heavy")
    rng = np.random.default_rng(0)
    names = np.array([f"group {i}" for i in range(20)])
    for part in range(6):
        n = ROWS // 6
        table = {
            "u": np.where(rng.random(n) < 0.9, 0, rng.integers(1, 100_000, n)),
            "x": rng.random(n),
            "t": rng.integers(0, 1 << 40, n),
            "g": names[rng.integers(0, 20, n)],
        }
        pq.write_table(pa.table(table), folder / f"{part}.parquet")
    return folder


def resident(pid: int) -> int:
    """Return the peak of what a process has in memory, MB; `resource` has that of its parent, too."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) >> 10 if found else 0


@pytest.mark.parametrize("how", ["one", "last", "sum", "statistics", "values", "values by group"])
def test_memory_of_a_run(folder: Path, tmp_path: Path, how: str) -> None:
    job: dict[str, Any] = {
        "task": "median" if how in ("one", "last", "sum") else "statistics",
        "input": {"path": str(folder), "columns": ["x"], "unit": "u"},
        "domain": {"lower": [0], "upper": [1], "step": 1e-6},
        "privacy": {"epsilon": 1.0, "delta": 1e-8},
        "output": str(tmp_path / "out"),
    }
    if how == "statistics":
        job |= COUNTED
    elif how.startswith("values"):
        del job["input"]["unit"]
        job["domain"]["step"] = 2.0**-30
        job["params"] = {"measures": ["count", {"quantiles": [0.1, 0.5]}, "maximum"]}
        if how != "values":
            job["group_by"] = {"columns": ["g"], "keys": "private"}
    else:
        job["input"] |= {"keep": how} | ({"order": "t"} if how == "last" else {})
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    command = [
        sys.executable,
        "-c",
        "from pipelines.cli import main; main()",
        "run",
        str(tmp_path / "job.yaml"),
    ]
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.02)
    assert process.returncode == 0
    assert json.loads((tmp_path / "out" / "release.json").read_text())["result"]
    assert 100 < peak < MOST
