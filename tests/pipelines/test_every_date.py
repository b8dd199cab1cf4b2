"""A job on dates makes the draws and the answer of the job on the whole steps of the same rows, as dates."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.instants import TICKS
from core.marks import translate
from core.plan import Plan, Tabular
from core.rounds import run_in_memory
from core.times import Times
from pipelines.dates import as_text
from pipelines.job.job import Job, check_job
from pipelines.plan import make_plan
from pipelines.release import answered, complete_release, draft_release, made_table, with_checks
from pipelines.report.report import render
from pipelines.report.summary import summary
from pipelines.table import table_of
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import SALT, changed_job
from tests.pipelines.jobs import changes
from transforms.bound_units import Bounding, bound_in_memory
from transforms.count_outside import outside
from transforms.open_source import open_source
from transforms.read_blocks import Reader, list_row_groups, read_blocks, to_block

N, LAST = 3000, 1000
"""Rows, and the last point of an axis."""

DATES = (["1899-12-31", "1902-09-27"], "1 day", pa.date32())
MINUTES = (
    ["2013-03-30T20:00:00Z", "2013-04-10T06:00:00Z"],
    "15 minutes",
    pa.timestamp("us", "Europe/Berlin"),
)
NANOSECONDS = (["1969-12-31T23:59:59.9", "1969-12-31T23:59:59.902"], "2 microseconds", pa.timestamp("ns"))
KINDS = {"dates": DATES, "minutes": MINUTES, "nanoseconds": NANOSECONDS}

YEAR = {"lower": ["2013-01-01"], "upper": ["2013-12-31"], "step": "1 day"}

TASKS_OF_ROWS = [name for name, task in TASKS.items() if task.times and not task.subsamples]

CASES = sorted(
    {(task, list(KINDS)[number % 3]) for number, task in enumerate(TASKS_OF_ROWS)}
    | {(task, kind) for task in ("histogram", "quantiles") for kind in KINDS}
)
"""Each task on one kind of dates, and two on all."""

PARAMS: dict[str, dict[str, Any]] = {
    "cdf": {"ranges": [[250, 500], [0, 1000]]},
    "ranges": {"ranges": [[[250, 500], [0, 1000]]]},
    "statistics": {"measures": ["count", "mean", "variance", "minimum", {"quantiles": [0.25, 0.5]}]},
    "median": {"scale_share": 0.2},
    "histogram": {"cells": [10, 7]},
}
POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("histogram", {"distance": 30}),
    ("histogram", {"distance": [30, 0]}),
    ("histogram", {"partition": [100, 50]}),
    ("histogram", {"graph": [[[1, 2], [300, 400]]]}),
    ("histogram", {"secrets": "full", "constraints": [{"lower": [0, 0], "upper": [500, 400], "count": 100}]}),
    ("cdf", {"distance": 30}),
    ("cdf", {"partition": [100]}),
    ("k_means", {"distance": [30, 0]}),
    ("threshold", {"distance": [30, 0]}),
]


def in_steps(task: str) -> dict[str, Any]:
    """Return a job on whole numbers from 0 to LAST."""
    job = changed_job(changes(task))
    axes = len(job["input"]["columns"])
    labeled = TASKS[task].labels
    upper = [LAST] * axes if not labeled else [LAST, 1]
    job["domain"] = {"lower": [0] * axes, "upper": upper, "step": 1}
    job["params"] = {**job["params"], **PARAMS.get(task, {})}
    return job


def in_dates(job: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the same job with dates and durations."""
    (low, high), step, _ = KINDS[kind]
    axes = len(job["input"]["columns"])
    labels = [1] if TASKS[job["task"]].labels else []
    bounds = {"lower": [low] * axes, "upper": [high] * axes, "step": step}
    for axis in labels:
        bounds["lower"][axis], bounds["upper"][axis] = 0, 1
    times = Times.of(**bounds)

    def positions(value: Any) -> Any:
        if isinstance(value, list):
            return [positions(each) for each in value]
        return times.position(value, 0)

    def lengths(value: Any) -> Any:
        if isinstance(value, list):
            return [each if axis in labels else times.length(each) for axis, each in enumerate(value)]
        return times.length(value)

    job = json.loads(json.dumps(job))
    job["domain"] = bounds
    if "ranges" in job["params"]:
        job["params"]["ranges"] = positions(job["params"]["ranges"])
    policy = job["privacy"].get("policy") or {}
    for key in ("distance", "partition"):
        if key in policy:
            policy[key] = lengths(policy[key])
    if "graph" in policy:
        policy["graph"] = positions(policy["graph"])
    for known in policy.get("constraints", []):
        known["lower"], known["upper"] = positions(known["lower"]), positions(known["upper"])
    return job


def rows(job: Job) -> dict[str, Any]:
    """Return columns of steps of rows, of which some are out of bounds, and some null."""
    rng, columns = np.random.default_rng(3), {}
    for axis, name in enumerate(job.input.columns):
        dense = rng.normal(400 - 100 * axis, 12, N // 2)
        steps = np.rint(np.concatenate([dense, rng.uniform(-20, LAST + 20, N - N // 2)])).astype(np.int64)
        columns[name] = [None if i % 50 == axis else step for i, step in enumerate(steps.tolist())]
    if TASKS[job.task].labels:
        first, second = job.input.columns
        columns[second] = [None if x is None else int(x > 300) for x in columns[first]]
    return columns


def write(path: Path, columns: Mapping[str, Any], times: Times | None, kind: Any) -> None:
    table = {}
    for axis, (name, steps) in enumerate(columns.items()):
        if times is None or times.lower[axis] is None:
            table[name] = pa.array(steps, pa.int64())
            continue
        low, unit = times.lower[axis], "D" if kind == pa.date32() else kind.unit
        at = [None if each is None else (low + each * times.step) * TICKS[times.tick] for each in steps]
        ticks = [None if each is None else each // TICKS[unit] for each in at]
        table[name] = pa.array(ticks, pa.int32() if unit == "D" else pa.int64()).cast(kind)
    pq.write_table(pa.table(table), path, row_group_size=2500)


def run(job: Job, path: Path) -> tuple[Plan, Any]:
    source = open_source(str(path), job.input.columns, times=job.grid.times)
    plan, reader = make_plan(job, SALT), Reader.of(source, job.grid, bool(job.checks))
    blocks = [b for file in source.files for at in list_row_groups(file) for b in read_blocks(reader, at)]
    return plan, run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(7))


def at_points(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table whose cells end at points of the grid, as those of dates do."""
    ends = {name for name in table if name.startswith(("lower_", "upper_"))}
    return {name: np.ceil(table[name] - 1e-9) if name in ends else table[name] for name in table}


def check_same(tmp_path: Path, job: dict[str, Any], kind: str) -> tuple[Any, str, str]:
    """Check a job on numbers against the same one on dates; return its release, its report and its lines."""
    numbers, dates = check_job(job), check_job(in_dates(job, kind))
    times = dates.grid.times
    assert times is not None
    for name, each in (("numbers", numbers), ("dates", dates)):
        write(tmp_path / f"{name}.parquet", rows(each), each.grid.times, KINDS[kind][2])
    plan, found = run(numbers, tmp_path / "numbers.parquet")
    dated, same = run(dates, tmp_path / "dates.parquet")
    assert (dated.mechanisms, dated.spend, dated.method) == (plan.mechanisms, plan.spend, plan.method)
    assert dated.promises == plan.promises and dated.alternatives == plan.alternatives
    draft, same = with_checks(draft_release(dates, dated), same)
    counts, found = with_checks(draft_release(numbers, plan), found)
    assert draft.get("checks") == counts.get("checks")
    result, columns = found.result(numbers.grid), made_table(same, dates.grid) or {}
    assert result is not None
    answer = answered(same, dates.grid)["result"]
    assert answer == as_text(type(result), asdict(result), times) and not numbers_in(answer, type(result))
    if isinstance(found, Tabular):
        known = at_points(found.table(numbers.grid) or {})
        expected = table_of(found, known, dates.grid)
        assert len(columns) and pa.table(dict(columns)).equals(pa.table(expected))
    release = json.loads(complete_release(draft, same, dates.grid))
    read = {name: pa.table(dict(columns))[name].to_numpy() for name in columns}
    answers = TASKS[release["task"]].answers.answer(release, read or None)
    return release, render(release, read or None), "\n".join(summary(release, answers))


def numbers_in(value: Any, kind: Any) -> list[Any]:
    """Return the marked values of an answer that are finite numbers, and not text."""
    found = []
    translate(kind, value, lambda mark, axis, each: found.append(each))
    return [each for each in found if not isinstance(each, str) and math.isfinite(each)]


@pytest.mark.parametrize("task, kind", CASES)
def test_dates_are_the_steps_of_numbers(tmp_path: Path, task: str, kind: str) -> None:
    release, page, lines = check_same(tmp_path, in_steps(task), kind)
    (low, high), step, _ = KINDS[kind]
    assert (release["domain"]["lower"][0], release["domain"]["upper"][0]) == (low, high)
    assert f"{low} to {high}" in page and f"step {step}" in page
    assert not re.search(r"[ \"]nan[ \"]", page) and lines


PLAIN = {
    "alpha",
    "box_standard_error",
    "count",
    "data",
    "mean_error",  # times half of a column's range
    "kolmogorov_records",
    "low",
    "high",
    "population",
    "probabilities",
    "radius_factor",
    "range_error",
    "range_standard_error",
    "standard_error",
    "sum_error",  # sums of dates are refused
    "typical_rank_error",
    "value",
    "error",
}
"""Floats of answers that are neither positions nor distances, or say by `marks` what they are."""


@pytest.mark.parametrize("task", TASKS_OF_ROWS)
def test_every_float_of_an_answer_is_marked_or_known_to_be_plain(task: str) -> None:
    found = import_module(TASKS[task].promises.__module__)
    internal = ("Range", "Reading", "Asked")  # of no answer
    for kind in vars(found).values():
        if not is_dataclass(kind) or kind.__module__ != found.__name__ or hasattr(kind, "result"):
            continue
        if kind.__name__ not in internal:
            for name, hint in get_type_hints(kind, include_extras=True).items():
                marked = "Mark." in str(hint)
                assert marked or "float" not in str(hint) or name in PLAIN, (kind, name)
                assert not marked or name not in PLAIN - {"low", "high", "value"}, (kind, name)


@pytest.mark.parametrize("task, policy", POLICIES)
def test_policies_are_those_of_numbers(tmp_path: Path, task: str, policy: dict[str, Any]) -> None:
    job = in_steps(task)
    job["privacy"] |= {"neighbors": "replace_one", "policy": policy}
    check_same(tmp_path, job, "dates")


def test_rows_out_of_bounds_are_counted_as_numbers_are(tmp_path: Path) -> None:
    job = in_steps("histogram")
    job["input"]["checks"] = 0.1
    for kind in KINDS:
        check_same(tmp_path, job, kind)


def test_units_are_those_of_numbers(tmp_path: Path) -> None:
    """The record of a unit is that of its steps: the mean, the extremes, the last by the axis itself."""
    for keep in ("one", "last", "mean", "min", "max"):
        job = in_steps("median")
        order = {"order": "x"} if keep == "last" else {}
        job["input"] |= {"unit": "u", "keep": keep, **order}
        found = []
        for each in (job, in_dates(job, "minutes")):
            checked = check_job(each)
            steps, path = rows(checked), tmp_path / "rows.parquet"
            write(path, steps, checked.grid.times, MINUTES[2])
            table = pq.read_table(path)
            pq.write_table(table.append_column("u", pa.array(np.arange(N) % 700)), path)
            source = open_source(str(path), ["x"], "u", checked.order, times=checked.grid.times)
            bounding = Bounding.of(source, checked.grid, keep, SALT)
            blocks = list(bound_in_memory(source, bounding))
            found.append(np.concatenate([block.points for block in blocks]))
        assert 600 < len(found[0]) == len(found[1]) and (found[0] == found[1]).all()


def test_nulls_and_every_type_of_a_date_are_read(tmp_path: Path) -> None:
    days = [None, -(2**31), 2**31 - 1, 15705, 15706, 15707, 16070, 16071, -1, 0]
    dates = pa.array(days, pa.int32()).cast(pa.date32())
    whole = [None if day is None else 86_400_000 * day + (day > 0) * 86_399_999 for day in days]
    expected = [0, 364, 0, 0, 1, 364, 364, 0, 0]
    grid = check_job(in_dates(in_steps("median"), "dates") | {"domain": YEAR}).grid
    for column in (dates, pa.array(whole, pa.int64()).cast(pa.date64(), safe=False)):
        batch = pa.record_batch({"x": column})
        block = to_block(Reader(("x",), grid), batch, np.arange(10, dtype=np.uint64))
        assert block.points[:, 0].tolist() == expected and block.ids.tolist() == list(range(1, 10))
        left_out, moved = outside(batch, ["x"], grid)
        assert left_out.tolist() == [True] + 9 * [False]
        assert moved.tolist() == [False, True, True, True, False, False, False, True, True, True]
