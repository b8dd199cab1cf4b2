"""A worker that writes a release also marks its charge and writes the report: nobody may wait for it."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.console.events import Events
from pipelines.job.job import check_raw
from pipelines.ledger.ledger import Ledger, create_ledger, now, read_ledger
from pipelines.run import run as runs
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import LINE, changes

BY_CITY = {"group_by": {"columns": ["city"], "keys": ["a", "b"]}}
PARTS = {"cells": [8, 8], "method": "sparse", "parts": 2}
QUESTIONS = {
    name: {
        "task": name,
        "columns": ["x"],
        "domain": {"lower": [0], "upper": [1], "step": 0.25},
        "params": {} if name == "median" else {"cells": [4]},
    }
    for name in ("median", "histogram")
}
KINDS: dict[str, dict[str, Any]] = {
    "one answer": changes("median"),
    "parts": {**changes("histogram"), "params": PARTS},
    "groups": {**changes("histogram"), **LINE, **BY_CITY, "params": {"cells": [4]}},
    "groups in one pass": {**changes("median"), **BY_CITY},
    "questions": dict.fromkeys(("task", "domain", "params", "input.columns", "input.checks"), ...)
    | {"questions": QUESTIONS},
}
"""Every way in which a release is written."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_finishes_a_run_that_was_only_submitted(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    rows = np.random.default_rng(1).uniform(size=(2, 300))
    pq.write_table(pa.table({"x": rows[0], "y": rows[1], "city": ["a", "b", "b"] * 100}), bench.rows)
    ledger = str(tmp_path / "books" / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=1.0, delta=1e-5))
    given = {**KINDS[kind], "privacy.ledger": ledger, "run_id": "monday"}
    job: Any = check_raw(bench.changed(given))
    submit, log = runs.submit, io.StringIO()
    monkeypatch.setattr(runs, "submit", lambda *arguments: submit(*arguments) and False)
    assert runs.run_job(job, events=Events(log, now)) is None
    out = tmp_path / "out"
    assert (out / "report.html").exists()
    (charge,) = read_ledger(ledger).charges
    assert charge.release == hashlib.sha256((out / "release.json").read_bytes()).hexdigest()
    assert runs.run_job(job, events=Events(log, now)) == json.loads((out / "release.json").read_text())
    told = [json.loads(line)["event"] for line in log.getvalue().splitlines()]
    assert [event for event in told if event != "round_released"] == ["planned", "started", "submitted", "stored"]
