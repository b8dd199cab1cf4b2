"""Every benchmark runs to its end with tiny settings: one that nobody runs breaks without a sign."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tests.benchmarks
from tests.benchmarks import screening

TINY = {
    "analysis": "--trials 2",
    "auto": "--tasks median --settings 1 --trials 2 --most 500 --workers 1",
    "bounding": "--rows 20000 --repetitions 1",
    "centers": "--runs 1 --peer-runs 0 --only letter",
    "describe": "",
    "groups": "medians",
    "lloyd_policies": "--only skin --output OUT",
    "memory": "bounds --rows 1000 2000 --only one-alone --check",
    "one_cluster": "--trials 1 --workers 1",
    "pass_cost": "--rows 20000 --row-groups 2 --repetitions 1",
    "prepared_pass": "--rows 20000 --repetitions 1",
    "real_columns": "--trials 1",
    "rectangles": "--runs 1 --rectangles 2",
    "scale": "--sizes 1000 2000 --only k_cover",
    "screening": "--runs 1 --data DATA",
    "sparse_table": "--rows 1000 --parts 1 2 --repetitions 1",
}
"""What makes each of them quick."""

LEFT_OUT = {
    "center_speed": "fits k-means five times, which takes half a minute",
    "engines": "starts Flink, which the tests of engines do",
    "intervals": "takes half a minute at one run of each cell",
    "ordered": "takes minutes at one trial",
    "questions": "takes a minute at two trials",
    "ranges": "takes minutes at one repetition",
    "solved": "takes minutes",
    "start_up": "starts commands, which other tests do",
    "subsamples": "takes a minute at one trial",
}


def test_every_benchmark_is_named() -> None:
    (folder,) = map(Path, tests.benchmarks.__path__)
    places = [place for place in folder.glob("*.py") if not place.stem.startswith("test_")]
    found = {place.stem for place in places if 'if __name__ == "__main__":' in place.read_text()}
    assert found == TINY.keys() | LEFT_OUT.keys()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with made-up rows for the benchmark that has no others."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for each in screening.ROWS:
        path = folder / f"outlier_{each.file}.parquet"
        columns = dict(pq.read_table(path).to_pydict()) if path.exists() else {}
        for name, low, high in zip(each.columns, each.grid.lower, each.grid.upper, strict=True):
            columns[name] = np.clip(rng.normal((low + high) / 2, (high - low) / 90, 3000), low, high)
        columns["outlier"] = np.zeros(3000, dtype=np.int64) + (np.arange(3000) < 30)
        pq.write_table(pa.table(columns), path)
    return folder


@pytest.mark.parametrize("name", TINY)
def test_it_runs_to_its_end(name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure that it should reach may be missed: nothing is measured here."""
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    options = TINY[name].replace("OUT", str(tmp_path)).replace("DATA", str(data)).split()
    command = [sys.executable, "-m", importlib.import_module(f"tests.benchmarks.{name}").__name__, *options]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in ran.stderr and ran.returncode in (0, 1), ran.stderr[-2000:]
    assert ran.stdout
