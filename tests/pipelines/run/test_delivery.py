"""A worker that writes a release also marks its charge and writes the report: nobody may wait for it."""

import copy
import hashlib
import inspect
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.console.events import Events
from pipelines.job.job import check_raw
from pipelines.ledger.ledger import Ledger, create_ledger, now, read_ledger
from pipelines.release import identify_output
from pipelines.run import delivery as writers
from pipelines.run import run as runs
from pipelines.run.delivery import Delivery, check_folder
from pipelines.storage.folder import StorageError
from pipelines.storage.locate import open_folder
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import LINE, changes
from tests.pipelines.test_output_id import WRITERS
from transforms.plain_errors import RoundError

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
    stored = runs.run_job(job, events=Events(log, now))
    assert stored == json.loads((out / "release.json").read_text())
    told = [json.loads(line) for line in log.getvalue().splitlines()]
    told = [(line["event"], line.get("outcome")) for line in told if line["event"] != "round_released"]
    steps = ("planned", "started", "submitted")
    assert told == [*((step, None) for step in steps), ("stored", stored["outcome"])]


def test_a_worker_looks_for_the_folder_that_was_charged(tmp_path: Path) -> None:
    """A run without a ledger has none, whatever an earlier run left there."""
    folder = open_folder(str(tmp_path))
    charged = identify_output(folder)
    for its in (None, charged):
        check_folder(Delivery(folder, "monday", "hash", None, output_id=its))
    for other in (tmp_path / "elsewhere", tmp_path):
        with pytest.raises(StorageError, match=r"submitted the run: if it was removed .* put it back"):
            its = charged if other != tmp_path else "0" * 32
            check_folder(Delivery(open_folder(str(other)), "monday", "hash", None, output_id=its))


def test_no_writer_quotes_what_fails_it() -> None:
    """Where a worker writes, its errors come to the submitting process by the text of a traceback alone."""

    class Failing:
        def read(self, name: str) -> bytes:
            raise ValueError("row 0.777")

    delivery: Any = Delivery(Failing(), "monday", "hash", None)
    for name in WRITERS:
        step = getattr(writers, name)
        given = dict.fromkeys(inspect.signature(step).parameters, (0, None)) | {"delivery": delivery}
        with pytest.raises(RoundError, match=r"^Write failed with ValueError at"):
            step(**given)


@pytest.mark.parametrize("kind", ["groups", "questions"])
@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
def test_public_keys_are_pickled_for_other_processes_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str
) -> None:
    """Steps of this process have them. Those of a process that lacks them could not begin."""
    pq.write_table(pa.table({"x": [0.5], "y": [0.5], "city": ["a"]}), bench.rows)
    given = copy.deepcopy(KINDS[kind])
    (given["questions"]["histogram"] if kind == "questions" else given).update(BY_CITY)
    prepare, prepared, seen = runs.prepare_run, list[Any](), list[bool]()

    def prepare_run(*arguments: Any) -> Any:
        prepared.append(prepare(*arguments))
        return prepared[0]

    def submit(*_: Any) -> bool:
        source = prepared[0].source if kind == "groups" else prepared[0].sources["histogram"]
        seen.append(b'["b"]' in pickle.dumps(source.groups.labels))
        return False

    monkeypatch.setattr(runs, "prepare_run", prepare_run)
    monkeypatch.setattr(runs, "submit", submit)
    job: Any = check_raw(bench.changed(given))
    assert runs.run_job(job, beam_options=[f"--direct_running_mode={mode}"]) is None
    assert seen == [mode == "multi_processing"]
