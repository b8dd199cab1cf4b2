"""Nothing large passes through the embedded runner, which would hold several copies of it until it ends."""

import json
from pathlib import Path

import apache_beam.runners.portability.fn_api_runner.execution as beams
import pytest

from pipelines.job.job import check_job
from pipelines.run.run import run_job
from tests.benchmarks import scale

ROWS, EDGES = 100_000, 20_000
MOST = {"histogram, distinct values": 1 << 20, "statistics by group, private, in 64 parts": 1 << 20}
"""Bytes of an element at most, where there are places of 64 parts in it."""

ASKED = {
    **scale.CASES,
    "99 quantiles": scale.Case(
        scale.DISTINCT, scale.ordered("quantiles", probabilities=[i / 100 for i in range(1, 100)])
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED)
def test_elements_are_places_where_what_is_large_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """States, looks, aggregates, rows of units and of blocks wait in files; elements say where."""
    sizes: list[int] = []
    append, append_state = beams.ListBuffer.append, beams.WindowGroupingBuffer.append
    monkeypatch.setattr(
        beams.ListBuffer, "append", lambda self, data: sizes.append(len(data)) or append(self, data)
    )
    monkeypatch.setattr(
        beams.WindowGroupingBuffer,
        "append",
        lambda self, data: sizes.append(len(data)) or append_state(self, data),
    )
    monkeypatch.setattr(scale, "_ROW_GROUP", 1 << 15)
    case = ASKED[asked]
    job = scale.write(tmp_path, case, EDGES if case.sizes == scale.EDGES else ROWS)
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    run_job(check_job(json.loads(job.read_text())), "FnApiRunner", options)
    assert sizes and max(sizes) <= MOST.get(asked, 1 << 16)
