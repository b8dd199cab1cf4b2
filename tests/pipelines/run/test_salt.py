"""The secret salt of a run: drawn once and anew for each run, held by all that samples, shown by nothing."""

import base64
import importlib
import inspect
import logging
import pickle
import pkgutil
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import core
import pipelines
import transforms
from core.interior_point.rounds import FindInSample
from core.one_cluster.practical.locate import FindRadiusAndRegion
from pipelines.job.job import check_job
from pipelines.ledger.ledger import Ledger, create_ledger
from pipelines.run import run as runs
from tests.pipelines.conftest import Bench, planted
from tests.pipelines.jobs import LINE, REPLACED, changes
from transforms.bound_units import Bounding
from transforms.split_units import Splitting

UNIT = {"input.unit": "person"}
JOBS: dict[str, dict[str, Any]] = {
    "one_cluster": UNIT,
    "interior_point": {
        **changes("interior_point"),
        **LINE,
        **REPLACED,
        "params": {"method": "heavy_paths"},
        "domain.step": 2.0**-10,
    },
    "sample_and_aggregate": {
        **changes("sample_and_aggregate"),
        **UNIT,
        "input.columns": ["x"],
        "params": {
            "function": "tests.transforms.attacks:mean",
            "blocks": 20,
            "aggregator": "average",
            "outputs": {"lower": [0.0], "upper": [1.0], "step": 2.0**-10},
        },
    },
}
"""Jobs that use the salt for all that it is used for."""


@pytest.fixture
def bench(bench: Bench) -> Bench:
    rows = planted()
    people = pa.array([f"person {number % 3000}" for number in range(len(rows))])
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1], "person": people}), bench.rows)
    return bench


@pytest.fixture
def salts(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every salt that a run draws from the system's generator."""
    drawn: list[bytes] = []
    secret = runs.secret_salt

    def noted() -> bytes:
        drawn.append(secret())
        return drawn[-1]

    monkeypatch.setattr(runs, "secret_salt", noted)
    return drawn


def traces(salt: bytes) -> tuple[bytes, ...]:
    """Return the salt in every form in which a text or a file may hold it, whole or in halves."""
    found = [salt, salt.hex().encode(), repr(salt)[2:-1].encode(), str(list(salt))[1:-1].encode()]
    found += [base64.b64encode(salt)[:-2], base64.urlsafe_b64encode(salt)[:-2]]
    for order in ("little", "big"):
        found += [str(int.from_bytes(part, order)).encode() for part in (salt, salt[:8], salt[8:])]
    return tuple(found)


def shown(text: str, folder: Path) -> bytes:
    """Return all that a run has left: what it said, and each name and content of a file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    left = b"".join(str(path).encode() + path.read_bytes() for path in files)
    return left + text.encode()


@pytest.mark.parametrize("task", JOBS)
def test_the_salt_of_a_run_reaches_no_output(
    bench: Bench,
    salts: list[bytes],
    task: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture,
) -> None:
    ledger = str(bench.folder / "books" / "ledger.json")
    given = {**JOBS[task], "privacy.ledger": ledger, "privacy.delta": 1e-6}
    create_ledger(
        ledger,
        Ledger(
            epsilon=5.0,
            delta=1e-3,
            unit=given.get("input.unit"),
            neighbors=given.get("privacy.neighbors", "add_or_remove_one"),
        ),
    )
    with caplog.at_level(logging.DEBUG):
        result = bench.run(given, "--json-logs")
    assert result.exit_code == 0, result.output
    assert len(salts) == 1
    captured = capfd.readouterr()
    left = shown(result.output + caplog.text + captured.out + captured.err, bench.folder)
    assert b'"charges"' in left and b"release.json" in left
    assert not any(trace in left for trace in traces(salts[0]))


def test_the_salt_of_a_run_that_fails_reaches_no_output_and_a_retry_has_another(
    bench: Bench, salts: list[bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The step that fails says all it knows."""
    text = {"run_id": "monday", **UNIT}

    def fail(self: FindRadiusAndRegion, block: Any, state: None) -> Any:
        salt = self.samples[0].salt
        raise RuntimeError(f"{self!r} {salt!r} {salt.hex()}")

    with monkeypatch.context() as broken, caplog.at_level(logging.DEBUG):
        broken.setattr(FindRadiusAndRegion, "summarize", fail)
        result = bench.run(text, "--json-logs", "--", "--direct_running_mode=in_memory")
    assert result.exit_code == 1
    assert not any(trace in shown(result.output + caplog.text, bench.folder) for trace in traces(salts[0]))
    assert bench.run(text).exit_code == 0
    assert bench.run(text).exit_code == 0  # it returns the release, and draws no salt
    assert len(salts) == len(set(salts)) == 2


@pytest.mark.parametrize("task", JOBS)
def test_no_two_runs_share_a_salt_and_none_follows_from_public_values(bench: Bench, task: str) -> None:
    """Everything public is equal: the job, its run id, its input, its folder and the time."""
    job = check_job(bench.changed({**JOBS[task], "run_id": "monday"}))
    clock = runs.now()
    prepared = [runs.prepare_run(job, clock=lambda: clock) for _ in range(3)]
    found = {one.salt for one in prepared}
    assert len(found) == 3
    assert all(len(salt) == 16 for salt in found)


def test_salts_come_from_the_secure_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("secrets.token_bytes", lambda size: asked.append(size) or bytes(range(size)))
    assert runs.secret_salt() == bytes(range(16))
    assert asked == [16]


@pytest.mark.parametrize("task", JOBS)
def test_all_that_samples_in_a_run_has_its_salt(
    bench: Bench, salts: list[bytes], task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounds, the rows that units keep and the blocks: none has a salt of its own, or none at all."""
    job = check_job(bench.changed({**JOBS[task], "run_id": "monday"}))
    held: list[bytes] = []
    for kind, of in ((Splitting, "__init__"), (Bounding, "__init__"), (FindInSample, "__init__")):
        made = getattr(kind, of)

        def noted(self: Any, *args: Any, made: Any = made, **kwargs: Any) -> None:
            made(self, *args, **kwargs)
            held.append(self.salt)

        monkeypatch.setattr(kind, of, noted)
    prepared = runs.prepare_run(job)
    runs.build_pipeline(prepared, runs.delivery_of(job), prepared.plan.rounds)
    assert salts == [prepared.salt]
    assert held and set(held) == {prepared.salt}
    if task != "sample_and_aggregate":  # whose average samples no answers
        assert prepared.salt in pickle.dumps(prepared.plan.rounds)
    assert repr(prepared.salt) not in repr(prepared)


def test_no_object_shows_its_salt_in_its_text() -> None:
    """Every dataclass with a salt leaves it out of its repr, which messages and logs may quote."""
    found = 0
    for package in (core, transforms, pipelines):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if kind.__module__ != module.name or not is_dataclass(kind):
                    continue
                secret = [field for field in fields(kind) if field.name == "salt"]
                found += len(secret)
                assert not any(field.repr for field in secret), kind
    assert found >= 6


def test_salts_are_spread_evenly() -> None:
    """Each of 128 bits of 2,000 salts is set in half of them: 8 sigma, of flake rate 128 * 1.3e-15."""
    drawn = np.array([np.frombuffer(runs.secret_salt(), dtype=np.uint8) for _ in range(2000)])
    ones = np.unpackbits(drawn, axis=1).sum(axis=0)
    assert abs(ones - 1000.0).max() <= 8 * np.sqrt(2000 / 4)
