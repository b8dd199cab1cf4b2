"""A pipeline that is executed again without its release samples other records."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import shoal.beam
from core.one_cluster.practical.locate import PoissonSample
from core.rounds import Block
from pipelines.console.quiet import quiet
from pipelines.job.job import check_raw
from pipelines.ledger.ledger import Ledger, create_ledger
from pipelines.plan import make_plan
from pipelines.run.delivery import delivery_of
from transforms import hold_batches

USERS = 4000
RNG = np.random.default_rng(3)
ROWS = pa.table(
    {
        "x": RNG.permutation(USERS),
        "user": [f"user-{number}" for number in range(USERS)],
        "city": np.where(np.arange(USERS) % 2, "Bern", "Ulm"),
    }
)
CLUSTER = {
    "task": "one_cluster",
    "domain": {"lower": [0], "upper": [USERS - 1], "step": 1},
    "params": {"target": 80_000},  # of so many records, a small sample is enough
}
INPUT = {"columns": ["x"]}
GROUPS = {"columns": ["city"], "keys": ["Bern", "Ulm"]}
JOBS: dict[str, dict[str, Any]] = {
    "rows": {**CLUSTER, "input": INPUT},
    "units": {**CLUSTER, "input": {**INPUT, "unit": "user"}},
    "groups of units": {
        **CLUSTER,
        "input": {**INPUT, "unit": "user"},
        "group_by": GROUPS,
        "contributions": {"groups": 1, "rows": 1},
    },
    "questions about units": {
        "input": {"unit": "user"},
        "questions": {name: {**CLUSTER, **INPUT} for name in ("one", "two")},
    },
}


def test_names_are_drawn_where_no_ledger_forbids_a_second_release(tmp_path: Path) -> None:
    """Each time other ones, which no text of the step shows."""
    ledger = str(tmp_path / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=5.0, delta=1e-3))
    job = {**JOBS["rows"], "privacy": {"epsilon": 1.0, "delta": 1e-6}, "output": str(tmp_path / "out")}
    drawn = []
    for privacy in (job["privacy"], {**job["privacy"], "ledger": ledger}):
        checked = check_raw({**job, "input": {**INPUT, "path": "/rows"}, "privacy": privacy, "run_id": "a"})
        plan, delivery = make_plan(checked, bytes(16)), delivery_of(checked)
        drawn += [shoal.beam._names(shoal.beam._charged(delivery, checked, plan)) for _ in range(2)]
    assert list(map(len, drawn)) == [16, 16, 0, 0]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("kind", JOBS)
def test_a_second_execution_samples_other_records(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value is one record. Of a sample at rate q, another one shares the part q: 0.2 or less here.

    Fewer than 100 records are sampled with a probability below 1e-12, and a half is shared below 1e-10.
    """
    sampled: dict[tuple[int, bytes], set[int]] = {}
    whole = PoissonSample.of

    def sample(self: PoissonSample, block: Block) -> Any:
        found = whole(self, block)
        sampled.setdefault((self.tweak, self.salt), set()).update(found[:, 0].tolist())
        return found

    monkeypatch.setattr(PoissonSample, "of", sample)
    monkeypatch.setattr(hold_batches, "SHARDS", 1)  # or rows would most likely get other numbers
    out = tmp_path / "out"
    job = {**JOBS[kind], "privacy": {"epsilon": 1.0, "delta": 1e-6}, "output": str(out), "run_id": "nightly"}
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create(ROWS.to_batches()) | shoal.beam.Answer(job, ROWS.schema)
    executions = []
    for _ in range(2):
        sampled.clear()
        with quiet():
            pipeline.run().wait_until_finish()
        executions.append({use: set(records) for use, records in sampled.items()})
        for file in out.glob("re*"):  # the release and its report
            file.unlink()
    first, second = executions
    assert first.keys() == second.keys()  # the same salts
    for use, records in first.items():
        assert len(records) >= 100
        assert len(records & second[use]) < len(records) / 2
