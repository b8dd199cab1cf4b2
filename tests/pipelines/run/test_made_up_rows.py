"""Made-up rows and the trials on them are those of the job, whatever it says of its rows."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.job.job import check_job
from pipelines.run import cost
from pipelines.run.cost import Cost, made_up, predict, trial
from pipelines.run.usage import Usage, run_command
from pipelines.tasks import TASKS
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes

RUNS = (2_000_000, 8_000_000)
OF_RUNS = {
    "median": {"input.checks": 0.25},
    "histogram": {"input.count": "n", "input.types": {"x": "number"}},
    "sample_and_aggregate": {"input.types": {"x": "number"}},
}
"""What a job says of rows that have it no more, or still."""


@pytest.mark.parametrize("task", TASKS)
def test_a_trial_asks_the_same_of_rows_that_need_no_preparation(bench: Bench, task: str) -> None:
    """Its shares for checks are those of the job, and each row is one record of a type that is known."""
    asked = bench.changed({**changes(task), **OF_RUNS.get(task, {})})
    if "checks" in asked["input"] and task != "median":
        del asked["input"]["checks"]  # the default
    for checks in [{}] if TASKS[task].subsamples else [{}, {"checks": 0.0}]:
        job = check_job({**asked, "input": asked["input"] | checks})
        tried = check_job(trial(job, bench.folder))
        assert (tried.count, tried.input.types, tried.checks) == (None, None, job.checks)
        places = {"input": {"path", "types", "count"}, "output": True, "run_id": True}
        assert tried.model_dump(exclude=places) == job.model_dump(exclude=places)


def test_every_made_up_row_is_written_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """In row groups, of which none repeats another one: equal rows would be too cheap."""
    monkeypatch.setattr(cost, "_ROW_GROUP", 100)
    path = bench.folder / "made.parquet"
    cost._write_rows(check_job(bench.changed({**changes("median"), "input.unit": "who"})), path, 250)
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [100, 100, 50]
    rows = file.read()
    assert sorted(Counter(rows["who"].to_pylist()).values()) == [10] * 25
    assert len(rows["x"].unique()) == 250


def test_rows_of_a_function_lie_within_its_bounds(bench: Bench) -> None:
    bounds = [[-50.0, -49.0], [1000.0, 3000.0]]
    job = check_job(bench.changed({**changes("sample_and_aggregate"), "input.bounds": bounds}))
    for column, (low, high) in zip(made_up(job, 0, 500).values(), bounds, strict=True):
        assert low <= column.min() < low + 0.1 * (high - low)
        assert high >= column.max() > high - 0.1 * (high - low)


AXES: dict[str, tuple[dict[str, Any], Any]] = {
    "wgs84": ({"geography": "wgs84"}, pa.float64()),
    "part of the earth": ({"geography": "wgs84", "lower": [40, 170], "upper": [50, -170]}, pa.float64()),
    "days": ({"lower": ["2020-01-01"], "upper": ["2020-12-31"], "step": "1 day"}, pa.date32()),
    "hours": (
        {"lower": ["2020-01-01T00:00:00"], "upper": ["2020-12-31T00:00:00"], "step": "1 hour"},
        pa.timestamp("s"),
    ),
    "hours of a zone": (
        {"lower": ["2020-01-01T00:00:00Z"], "upper": ["2020-12-31T00:00:00Z"], "step": "1 hour"},
        pa.timestamp("s", "UTC"),
    ),
    "whole numbers": ({"lower": [0], "upper": [10], "step": 1}, pa.int64()),
    "whole steps": ({"lower": [0.5], "upper": [10.5], "step": 1}, pa.float64()),
}


@pytest.mark.parametrize("axis", AXES)
def test_rows_fill_axes_of_every_kind(bench: Bench, axis: str) -> None:
    """All of them, up to both ends, and with the type of the column in a file."""
    domain, kind = AXES[axis]
    task = "one_cluster" if "geography" in domain else "median"
    names = ["lat", "lon"] if "geography" in domain else ["t"]
    job = check_job(bench.changed({**changes(task), "domain": domain, "input.columns": names}))
    rows = {name: pa.array(values) for name, values in made_up(job, 0, 4000).items()}
    assert {name: values.type for name, values in rows.items()} == dict.fromkeys(names, kind)
    for place, name in enumerate(names):
        numbers = rows[name].cast(pa.timestamp("s")) if pa.types.is_temporal(kind) else rows[name]
        values = numbers.cast(pa.int64() if pa.types.is_temporal(kind) else pa.float64()).to_numpy()
        low, high = _ends(job, place)
        assert low <= values.min() < low + 0.02 * (high - low) and (values <= high).all()
        assert values.max() > high - 0.02 * (high - low)


def _ends(job: Any, axis: int) -> tuple[float, float]:
    grid = job.grid
    if grid.geography is not None:
        earth = grid.geography
        return ((earth.south, earth.north), (earth.west, earth.west + earth.width))[axis]
    if grid.times is None:
        return float(grid.lower[axis]), float(grid.upper[axis])
    first, last = (
        grid.times.instants(np.array([0, grid.extents[axis]]), axis).astype("datetime64[s]").astype(np.int64)
    )
    return float(first), float(last)


@pytest.mark.parametrize(
    ("asked", "meet", "passes"),
    [
        (changes("one_cluster"), False, 4),
        ({**changes("one_cluster"), "input.unit": "who"}, True, 1),
        (changes("sample_and_aggregate"), True, 1),
    ],
    ids=["rows", "units", "blocks"],
)
def test_only_rows_that_must_meet_are_shuffled(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], meet: bool, passes: int
) -> None:
    """Those of a unit, and those of a block, which wait on disk; others may have temporary files, too."""
    small, large = (
        Usage(*used, 0, "") for used in ((2.0, 9.0, 10**8, 16 * 10**6), (20.0, 9.0, 10**8, 64 * 10**6))
    )
    runs = dict(zip(RUNS, (small, large), strict=True))
    monkeypatch.setattr(cost, "try_rows", lambda job, n: runs[n])
    (found,) = predict(check_job(bench.changed(asked)), (98_000_000,), RUNS)
    assert found.disk == pytest.approx(98 * 8e6) and found.shuffled == (found.disk if meet else 0)
    assert found.rows_read == 98_000_000 * passes
    assert found.processor == pytest.approx(98 * 3.0)  # a run of no rows takes no less than no time


def test_every_figure_of_a_cost_is_shown() -> None:
    costs = [Cost(1000, 4000, 0, 4.5, 3.9, 5.6, 2e8, 7e9), Cost(2000, 8000, 0, 9.5, 8.1, 11, 3e8, 9e5)]
    cells = [list(column.cells) for column in cost.table(costs).columns]
    assert cells == [
        ["1,000", "2,000"],
        ["4,000", "8,000"],
        ["4.5 (3.9 to 5.6)", "9.5 (8.1 to 11)"],
        ["200 MB", "300 MB"],
        ["7,000 MB", "none"],
    ]


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    """Three processes have 100 MB together. Files in memory are none on the disk of temporary files."""
    fork = "import os, time\nx = os.urandom(1 << 20) * 100\nos.fork()\nos.fork()\ntime.sleep(.4)"
    used = run_command(["sh", "-c", f"python3 -c '{fork}'; true"])
    assert used.code == 0 and 100 << 20 < used.memory < 200 << 20
    held = 'import os, time\nf = os.memfd_create("f")\nos.write(f, bytes(9 << 20))\ntime.sleep(.3)'
    assert run_command(["sh", "-c", f"python3 -c '{held}'; true"]).disk == 0
