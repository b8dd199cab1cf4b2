"""Runs that are killed, everywhere: one release, one charge, and no trace of another draw.

After each kill, whatever lies in the output folder is looked at, and the same run id is run again. The
release that was visible first stays; there is one charge; nothing else is left beside the release; rights are
right at every moment.
"""

import hashlib
import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from tests.engines.buckets import SERVERS, Bucket, new_bucket, open_bucket
from tests.engines.kills import Forks
from tests.engines.services import ObjectServer
from tests.pipelines.conftest import Bench, write_rows
from tests.pipelines.jobs import changes

KILLS = 10
"""Random moments for each kind of answer and of storage."""

_SLOW = (pytest.param(each, marks=pytest.mark.slow) for each in ("questions", "parts"))

TASKS = ("median", "histogram", *_SLOW)
"""One whose answer is JSON, one whose answer is a table, several questions, and one of a table in parts."""

IN_PARTS = {"params": {"cells": [4, 4], "method": "sparse", "parts": 3}}
TABLES = ["cells.parquet", "coarse.parquet"]
"""Of two of three questions."""

PARTS = [f"result/part-{number:05}.parquet" for number in range(3)]


class Runs:
    """Runs of one job, each with a ledger and an output of its own, on one kind of storage."""

    def __init__(self, bench: Bench, task: str, root: str) -> None:
        write_rows(bench.rows, np.random.default_rng(0).uniform(size=(50, 2)))
        self.bench, self.task, self.root = bench, task, root
        self.number = 0

    def begin(self) -> str:
        """Make a ledger; return the path of a new run's job file."""
        self.number += 1
        self.place = f"{self.root}/{self.number}"
        self.ledger = f"{self.place}/books/ledger.json"
        create_ledger(self.ledger, Ledger(epsilon=1.0, delta=1e-6))
        task = {"parts": "histogram", "questions": "median"}.get(self.task, self.task)
        asked = changes(task) | (IN_PARTS if self.task == "parts" else {})
        job = self.bench.changed(
            {
                **asked,
                "output": f"{self.place}/out",
                "privacy.ledger": self.ledger,
                "run_id": f"run-{self.number}",
            }
        )
        if self.task == "questions":
            asked = {"cells": "histogram", "middle": "median", "coarse": "histogram"}
            given = {name: self.bench.changed(changes(task)) for name, task in asked.items()}
            job = {
                **{key: job[key] for key in ("privacy", "output", "run_id")},
                "input": {"path": job["input"]["path"]},
                "questions": {
                    name: {
                        "columns": one["input"]["columns"],
                        **{key: one[key] for key in ("task", "domain", "params")},
                    }
                    for name, one in given.items()
                },
            }
        path = self.bench.folder / f"{self.number}.yaml"
        path.write_text(yaml.safe_dump(job))
        return str(path)

    @property
    def published(self) -> list[str]:
        """The files that are written once, and hold the whole release."""
        tables = {"histogram": ["result.parquet"], "questions": TABLES, "parts": PARTS}
        return tables.get(self.task, ["release.json"])

    def files(self) -> dict[str, bytes]:
        """Return every file that is there, hidden ones too."""
        raise NotImplementedError

    def look_after_a_kill(self) -> dict[str, bytes]:
        """Check what is to be seen after a kill; return what is published."""
        files = self.files()
        known = {"books/ledger.json", "books/.ledger.json.lock", "books/.ledger.json.draft"}
        known |= {f"out/{name}" for name in ("release.json", "report.html", "output.id", *self.published)}
        known |= {"out/result/_attempt.json"} if self.task == "parts" else set()
        assert set(files) <= known, set(files) - known
        self.look_at_rights()
        published = {name: files[f"out/{name}"] for name in self.published if f"out/{name}" in files}
        begun = {name for name in files if name.startswith("out/")} - {
            "out/output.id",
            "out/result/_attempt.json",
            *(f"out/{name}" for name in published),
        }
        assert len(published) == len(self.published) or not begun
        return published

    def look_at_rights(self) -> None:
        """Check the rights of what is to be seen."""

    def look_at_the_end(self, seen: dict[str, bytes]) -> None:
        """Check that there is one release, the one that was seen, with one charge, and nothing else."""
        files = self.files()
        files.pop("books/.ledger.json.lock", None)
        names = {"output.id", "release.json", "report.html", *self.published}
        names |= {"result/_attempt.json"} if self.task == "parts" else set()
        assert set(files) == {"books/ledger.json", *(f"out/{name}" for name in names)}
        assert seen == {name: files[f"out/{name}"] for name in seen}
        self.look_at_rights()
        release = files["out/release.json"]
        if self.task == "parts":
            listed = {part["name"]: part["sha256"] for part in json.loads(release)["table"]}
            assert listed == {name: hashlib.sha256(files[f"out/{name}"]).hexdigest() for name in PARTS}
        if self.task == "questions":
            answers = json.loads(release)["answers"]
            listed = {
                part["name"]: part["sha256"] for one in answers.values() for part in one.get("table", ())
            }
            assert listed == {name: hashlib.sha256(files[f"out/{name}"]).hexdigest() for name in TABLES}
            assert answers["middle"]["result"] is not None
        if self.task == "histogram":
            assert files["out/result.parquet"].count(b'"run_id"') >= 1
            assert json.dumps(json.loads(release)["result"]["total"]).encode() in files["out/result.parquet"]
        charges = read_ledger(self.ledger).charges
        assert [entry.release is not None for entry in charges] == [True]


class LocalRuns(Runs):
    def files(self) -> dict[str, bytes]:
        place = Path(self.place)
        return {
            str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()
        }

    def look_at_rights(self) -> None:
        for path in Path(self.place).rglob("*"):
            mode = path.stat().st_mode & 0o777
            if path.name.endswith(".draft"):
                assert mode & 0o177 in (0, 0o44)
            elif path.is_file():
                assert mode == 0o644, path


class CloudRuns(Runs):
    def __init__(self, bench: Bench, task: str, bucket: Bucket) -> None:
        super().__init__(bench, task, bucket.root)
        self.bucket = bucket

    def files(self) -> dict[str, bytes]:
        prefix = f"{self.place.removeprefix(self.bucket.root)[1:]}/"
        names = [name for name in self.bucket.names() if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.bucket.get(name) for name in names}


@pytest.fixture(params=["local", *(pytest.param(kind, marks=pytest.mark.engine) for kind in SERVERS)])
def place(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def runs(
    tmp_path: Path,
    connect: Callable[[Mapping[str, str]], None],
    object_servers: Callable[[str], ObjectServer],
    place: str,
    task: str,
) -> Runs:
    bench = Bench(tmp_path / "bench")
    if place == "local":
        return LocalRuns(bench, task, str(tmp_path / "runs"))
    server = object_servers(place)
    connect(server.environment)
    return CloudRuns(bench, task, open_bucket(new_bucket(server)))


@pytest.fixture
def forks(runs: Runs, tmp_path: Path) -> Iterator[Forks]:
    with Forks(tmp_path, {}) as taking:
        yield taking


def kill_at_every(runs: Runs, forks: Forks, what: str, **order: Any) -> int:
    """Kill a run at its first, second, ... step until one gets through; return how many were killed."""
    number = 1
    while True:
        job = runs.begin()
        killed = forks.run(job, **{what: number}, **order)
        seen = {} if order.get("named") else runs.look_after_a_kill()
        forks.run(job, **order)
        runs.look_at_the_end(seen)
        if not killed:
            return number - 1
        number += 1


BEFORE_CALLS = (
    *((task, False) for task in ("median", "questions", "parts")),
    ("median", True),
    pytest.param("histogram", False, marks=pytest.mark.audit),
    *(pytest.param(task, True, marks=pytest.mark.audit) for task in ("histogram", "questions", "parts")),
)
"""Files that have names while they are written take twice as many calls, at each of which a run is killed."""


@pytest.mark.parametrize(("task", "named"), BEFORE_CALLS)
@pytest.mark.parametrize("place", ["local"])
def test_a_kill_before_every_call_to_the_system(runs: LocalRuns, forks: Forks, named: bool) -> None:
    assert kill_at_every(runs, forks, "call", named=named) >= 30


@pytest.mark.engine
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("place", SERVERS)
def test_a_kill_after_every_request(runs: CloudRuns, forks: Forks) -> None:
    assert kill_at_every(runs, forks, "request") >= 15


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", [*(pytest.param(task, marks=pytest.mark.audit) for task in ("median", "histogram")), "parts"]
)
def test_kills_at_random_moments(runs: Runs, forks: Forks) -> None:
    """The real pipeline. Moments are uniform over the time that a run takes, which is measured first.

    The shorter of two runs counts, so that most moments come before the end: if two in three do, all of 10
    miss once in 50,000 times.
    """
    takes = math.inf
    for _ in range(2):
        start = time.monotonic()
        forks.run(runs.begin(), beam=True)
        takes = min(takes, time.monotonic() - start)
    seed = int.from_bytes(os.urandom(4), "big")
    moments, killed = random.Random(seed), 0
    for _ in range(KILLS):
        job = runs.begin()
        killed += forks.run(job, beam=True, seconds=moments.uniform(0, takes))
        seen = runs.look_after_a_kill()
        forks.run(job, beam=True)
        runs.look_at_the_end(seen)
    assert killed >= 1, seed
