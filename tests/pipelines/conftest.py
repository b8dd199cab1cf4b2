"""A small job that works, for the tests to run and to spoil."""

import copy
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.run import joint_run, run
from pipelines.simulation import simulate
from tests.core.seeded import SeededNoise

CENTER, RADIUS = (0.3125, 0.6875), 0.01


def write_rows(path: Path, rows: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1]}), path, row_group_size=1000)


def planted(n: int = 4000, t: int = 1500) -> np.ndarray:
    rng = np.random.default_rng(7)
    angle, length = rng.uniform(0, 2 * np.pi, t), RADIUS * np.sqrt(rng.uniform(size=t))
    ball = np.array(CENTER) + np.stack([np.cos(angle), np.sin(angle)], axis=1) * length[:, None]
    return np.concatenate([ball, rng.uniform(size=(n - t, 2))])


class Bench:
    """A folder with rows and a job, and the command to run on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = folder / "rows" / "part.parquet"
        write_rows(self.rows, planted())
        self.job: dict[str, Any] = {
            "task": "one_cluster",
            "input": {"path": str(folder / "rows"), "columns": ["x", "y"], "checks": 0.0},
            "domain": {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-12},
            "privacy": {"epsilon": 1.0, "delta": 1e-6},
            "params": {"target": 1500},
            "output": str(folder / "out"),
        }

    def changed(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the job with dotted keys set; ... removes one."""
        job = copy.deepcopy(self.job)
        for key, value in changes.items():
            *parents, last = key.split(".")
            part = job
            for parent in parents:
                part = part[parent]
            part.pop(last, None) if value is ... else part.__setitem__(last, value)
        return job

    def write(self, job: Mapping[str, Any] | str) -> str:
        path = self.folder / "job.yaml"
        path.write_text(job if isinstance(job, str) else yaml.safe_dump(dict(job)))
        return str(path)

    def shoal(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    def run(self, changes: Mapping[str, Any] | None = None, *arguments: str) -> Result:
        return self.shoal("run", self.write(self.changed(changes or {})), *arguments)

    def release(self, output: str = "out") -> dict[str, Any]:
        return json.loads((self.folder / output / "release.json").read_text())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and simulations draw noise of fixed seeds, each of its own, and fixed salts: no test flakes."""
    seeds = itertools.count()
    for module in (run, joint_run, simulate):
        monkeypatch.setattr(module, "SecureNoise", lambda: SeededNoise(next(seeds)))
    for module in (run, joint_run):
        monkeypatch.setattr(module, "secret_salt", lambda: next(seeds).to_bytes(16, "little"))


Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """Check that a result is a refusal: exit code, one sentence, nothing written; return the sentence."""

    def check(result: Result, code: int = 2) -> str:
        assert result.exit_code == code, result.output
        said = result.stderr.strip()
        assert "\n" not in said
        assert "Traceback" not in said
        assert said.startswith("shoal: ")
        assert said.endswith(".")
        assert result.stdout == ""
        assert not (tmp_path / "out").exists()
        return said

    return check


@pytest.fixture(autouse=True)
def few_values_are_held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tests of all settings, values of larger groups are passed over, as those of millions of rows are."""
    if request.module.__name__.rpartition(".")[2].startswith("test_every_"):
        for module in ("ranks", "stored_totals"):
            monkeypatch.setattr(f"core.statistics.{module}.HELD", 32)
        monkeypatch.setattr("core.quantiles.wide.HELD", 32)
