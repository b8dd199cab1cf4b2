"""Predict what runs of a job cost on this machine, from two runs on made-up rows.

The rows are made from the public domain, so they are nobody's data. No row of the input is read, nothing
is charged, and nothing is written but temporary files.

The model, for n rows:

- Processor seconds are start + n * each: two constants, which the two runs measure. The same run takes up to
  a tenth more or less from one time to the next, so there is a range: what the constants would be then.
- Temporary files are on the line through both runs, too. Where rows must meet, as many bytes go through the
  shuffle of an engine.
- Memory is the peak of all processes together. Where it did not grow with n, or by no more than counts of a
  bounded number of cells take, it is that of the larger run. Where it did, it is on the line through both
  runs. Below the smaller run it is at least proportional to n, because memory may grow faster than the line
  there, and at least what a run on a few rows takes.
- Passes follow from the plan: one for each round and look, see `core.rounds.Looking`. Rows that must meet,
  those of a unit or of a block, are read once and go through the runner; the passes read what was made of
  them. Otherwise every pass reads the rows, or what the first one kept (see `transforms.read_once`), and only
  aggregates go through the runner.
"""

import itertools
import json
import os
import signal
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich import box
from rich.table import Table

from core.domain import Grid
from pipelines.answers.text import number
from pipelines.errors import JobError
from pipelines.job.job import Job, RowsJob
from pipelines.job.questions import QuestionsJob, as_questions
from pipelines.job.subsamples_job import SubsamplesJob
from pipelines.joint_plan import planned_as
from pipelines.run.temporary import check_temporary
from pipelines.run.usage import Usage, run_command
from transforms.group_keys import GroupKeys
from transforms.list_files import InputError
from transforms.open_source import open_files

ROWS = (1_000_000, 10_000_000, 100_000_000)
TRIALS = (1 << 21, 1 << 23)
"""Rows of the two runs. Both have several row groups, so that what workers hold of one is no growth."""

PER_UNIT = 10
"""Rows of each made-up unit."""

GROUPS = 1000
"""Made-up private keys."""

CLUSTERED = ("one_cluster", "k_cover", "k_means", "k_median", "ranges")
"""Tasks that are asked where rows are dense in some places: half of their made-up rows lie in ten clumps."""

_CLUMPS, _WIDTH = 10, 0.02  # clumps, and their standard deviation as a part of the domain
_ROW_GROUP = 1 << 20
_SMALLEST_GROWTH = 150e6  # bytes between the two runs; what noisy counts take grows so much, and then stops
_VARIES = (0.9, 1.1)  # what a run takes from one time to the next, in parts of what it takes
_START = 250e6  # bytes of a run on a few rows


@dataclass(frozen=True)
class Cost:
    """What a run over so many rows costs.

    Args:
        rows: number of rows.
        rows_read: rows that all passes together read, from storage or from what the first one kept.
        shuffled: bytes of rows that go through the shuffle of an engine. Aggregates are not included.
        processor: seconds of the processor, of all processes.
        processor_low: the same, at least, where the two runs took as long as they usually do.
        processor_high: the same, at most.
        memory: peak bytes of all processes together.
        disk: peak bytes of temporary files.
    """

    rows: int
    rows_read: int
    shuffled: float
    processor: float
    processor_low: float
    processor_high: float
    memory: float
    disk: float


def predict(
    job: Job | QuestionsJob, rows: Sequence[int] = ROWS, trials: tuple[int, int] = TRIALS
) -> list[Cost]:
    """Predict what `job` costs for each number of rows.

    Args:
        job: the checked job.
        rows: numbers of rows.
        trials: rows of the smaller and of the larger run.

    Raises:
        JobError: there is no number of rows, or one below 1; or a run fails; or the machine is not Linux.
    """
    if sys.platform != "linux":
        raise JobError(
            f"shoal cost measures memory in /proc of Linux, and this machine is {sys.platform}: predict the "
            "cost on a machine or in a container with Linux."
        )
    check_temporary()
    if not rows or not 1 <= min(rows) <= max(rows) < 1 << 53:
        raise JobError(f"--rows is {', '.join(map(str, rows))}: give whole numbers from 1 to 2^53 - 1.")
    passes = planned_as(job)[1]["needs"]["passes"]
    questions = _questions(job)
    meet = any(each.unit is not None or isinstance(each, SubsamplesJob) for each in questions)
    few, many = (try_rows(job, n) for n in trials)
    costs = []
    for n in rows:
        disk = _line(n, trials, (few.disk, many.disk))
        seconds = [
            _line(n, trials, (few.processor * less, many.processor * more))
            for less, more in itertools.product(_VARIES, _VARIES)
        ]
        costs.append(
            Cost(
                n,
                n * (1 if meet else passes),
                disk if meet else 0,
                _line(n, trials, (few.processor, many.processor)),
                min(seconds),
                max(seconds),
                _memory(n, trials, (few.memory, many.memory)),
                disk,
            )
        )
    return costs


def _line(n: int, trials: tuple[int, int], figures: tuple[float, float]) -> float:
    """Return start + n * each, neither below 0, from the rows and the figures of two runs."""
    each = max(0.0, figures[1] - figures[0]) / (trials[1] - trials[0])
    return max(0.0, figures[1] - each * trials[1]) + each * n


def _memory(n: int, trials: tuple[int, int], peaks: tuple[float, float]) -> float:
    """Return the peak memory for n rows, from the rows and the peaks of two runs."""
    if peaks[1] - peaks[0] <= _SMALLEST_GROWTH:
        return peaks[1]
    growth = (peaks[1] - peaks[0]) / (trials[1] - trials[0])
    line = peaks[1] + growth * (n - trials[1])
    return line if n >= trials[0] else max(line, peaks[0] * n / trials[0], min(peaks[0], _START))


def _questions(job: Job | QuestionsJob) -> list[Job]:
    """Return each question as a job of its own."""
    return [*job.jobs.values()] if isinstance(job, QuestionsJob) else [job]


def try_rows(job: Job | QuestionsJob, rows: int) -> Usage:
    """Run the job on so many made-up rows, in a process of its own.

    Raises:
        JobError: the run fails.
    """
    with ExitStack() as stack:
        try:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-cost-")))
            _write_rows(job, place / "rows.parquet", rows)
            (place / "job.json").write_text(json.dumps(trial(job, place)))
        except OSError as error:
            raise JobError(
                f"{rows:,} made-up rows could not be written to {tempfile.gettempdir()} "
                f"({os.strerror(error.errno or 0)}): let TMPDIR be a folder with room."
            ) from None
        usage = run_command([sys.executable, "-m", "shoal", "run", str(place / "job.json")])
    if usage.code < 0:
        raise JobError(
            f"A run on made-up rows was ended by {signal.Signals(-usage.code).name}: where memory is full, "
            "the system does so."
        )
    if usage.code:
        raise JobError(f"A run on made-up rows failed. {usage.error.removeprefix('shoal: ').strip()}")
    return usage


def trial(job: Job | QuestionsJob, folder: Path) -> dict[str, Any]:
    """Return the values of a job like `job`, that reads made-up rows in `folder` and charges no ledger.

    These rows have the columns that the task uses, so nothing is derived or joined, no row is
    left out, and each is one record.
    """
    if isinstance(job, QuestionsJob):
        asked = {name: {**_values(each), "share": job.shares[name]} for name, each in job.jobs.items()}
        values: dict[str, Any] = as_questions(asked)
    else:
        values = _values(job)
    values["input"] |= {"path": str(folder / "rows.parquet")}
    return {**values, "output": str(folder / "out"), "run_id": "trial"}


def _values(job: Job) -> dict[str, Any]:
    """Return the values of a job file of one question, without what prepares rows, and without a ledger."""
    values = job.model_dump(mode="json", include=set(job.model_fields_set), exclude_unset=True)
    for key in ("types", "where", "derive", "join", "count"):
        values["input"].pop(key, None)
    if isinstance(job, RowsJob):
        values["input"]["checks"] = job.checks  # a job without counts is dumped without the share
    values["privacy"].pop("ledger", None)
    code = getattr(job.params, "code", None)
    if code is not None:  # of which the values have a digest
        values["params"]["code"] = code
    return values


def _write_rows(job: Job | QuestionsJob, path: Path, rows: int) -> None:
    writer: pq.ParquetWriter | None = None
    for first in range(0, rows, _ROW_GROUP):
        table = pa.table(dict(made_up(job, first, min(_ROW_GROUP, rows - first))))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=_ROW_GROUP)
    if writer is not None:
        writer.close()


def made_up(job: Job | QuestionsJob, first: int, rows: int) -> Mapping[str, Any]:
    """Make rows from `first` on: uniform over the domain, or for a function within `input.bounds`.

    For tasks of `CLUSTERED` every second row lies in a clump.
    A unit has ten rows, one after the other; it is a text, unless the input is on this machine and has other
    values there. A column that orders rows is their number. Keys of groups are
    the public ones, or a thousand private ones. Where a column has several uses, or is in several questions,
    public keys say what is in it; else values, other keys, and last order and units; and of these the first
    question that has it. Keys that are values are whole numbers.
    """
    asked = _questions(job)
    uses = [_columns_by_use(each, first, rows) for each in asked]
    columns: dict[str, Any] = {}
    for same_use in zip(*uses, strict=True):
        for own in same_use:
            columns = {**own, **columns}
    keys = [name for each in asked if each.group_keys is not None for name in each.group_keys.columns]
    for name in keys:
        if getattr(columns[name], "dtype", None) == np.float64:
            columns[name] = columns[name].astype(np.int64)
        kinds = {pa.array(own[name]).type for use in uses for own in use if name in own}
        if any(map(pa.types.is_string, kinds)) and any(map(pa.types.is_temporal, kinds)):
            columns[name] = _as_times(columns[name], kinds)
    return columns


def _as_times(values: Any, kinds: Collection[pa.DataType]) -> pa.Array:
    """Return times, or dates as text, as the type of an axis, or else as dates, which are keys cut or not."""
    axes = [kind for kind in kinds if pa.types.is_temporal(kind) and kind != pa.timestamp("s")]
    days = np.asarray(values).astype("datetime64[D]")
    return pa.array(days).cast(axes[0] if axes else pa.date32())


@cache
def _has_text(path: str, column: str) -> bool:
    """Return whether a column is text in the files at a path, as far as they are on this machine."""
    if "://" not in path:
        with suppress(InputError):
            found = [schema for schema in open_files(path)[1] if schema.get_field_index(column) >= 0]
            kinds = [schema.field(column).type for schema in found]
            return all(pa.types.is_large_string(kind) or pa.types.is_string(kind) for kind in kinds)
    return True


def _units(job: Job, numbers: NDArray[np.int64]) -> Any:
    """Return units of these numbers, as texts or as they are."""
    if not _has_text(job.input.path, str(job.unit)):
        return numbers
    names, places = np.unique(numbers, return_inverse=True)
    return pa.array(np.char.mod("unit %010d", names)).take(pa.array(places))


def _columns_by_use(job: Job, first: int, rows: int) -> list[dict[str, Any]]:
    """Return the made-up columns of one question by their use, the one that decides first; see `made_up`."""
    rng, names = np.random.default_rng(first), job.input.columns
    numbers = np.arange(first, first + rows)
    if isinstance(job, SubsamplesJob):
        bounds = job.input.bounds or ((0.0, 1.0),) * len(names)
        values = {name: rng.uniform(*ends, rows) for name, ends in zip(names, bounds, strict=True)}
    else:
        where = _places(job.task, len(names), rows, rng)
        values = {name: _on_axis(job.grid, axis, where[axis]) for axis, name in enumerate(names)}
    others = {} if job.order is None else {job.order: numbers}
    if job.unit is not None:
        others.setdefault(job.unit, _units(job, numbers // PER_UNIT))
    keys = {} if job.group_keys is None else _made_up_keys(job.group_keys, rows, rng)
    given = job.group_keys
    public = given is not None and given.labels is not None and not any(given.truncate)
    return [keys if public else {}, values, keys, others]


def _made_up_keys(keys: GroupKeys, rows: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Make key columns: public keys, or as many private ones as `GROUPS`, each equally often."""
    day = np.datetime64("2000-01-01")
    if keys.labels is not None:
        known = [json.loads(label) for label in keys.labels]
    else:
        known = [[str(day + i) if cut else f"key {i}" for cut in keys.truncate] for i in range(GROUPS)]
    numbers, columns = rng.integers(0, len(known), rows), {}
    for place, (column, cut) in enumerate(zip(keys.columns, keys.truncate, strict=True)):
        values = np.array([key[place] for key in known])
        columns[column] = (values.astype("datetime64[s]") if cut else values)[numbers]
    return columns


def _places(task: str, axes: int, rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return places as parts of the domain, from 0 on and below 1: shape (axes, rows)."""
    where = rng.random((axes, rows))
    if task in CLUSTERED:
        middles = np.random.default_rng(0).uniform(0.2, 0.8, (axes, _CLUMPS))
        near = where[:, ::2]
        near[:] = middles[:, rng.integers(0, _CLUMPS, near.shape[1])] + rng.normal(0, _WIDTH, near.shape)
    return np.clip(where, 0.0, np.nextafter(1.0, 0.0))


def _on_axis(grid: Grid, axis: int, where: NDArray[np.float64]) -> Any:
    earth = grid.geography
    if earth is not None:
        low, high = ((earth.south, earth.north), (earth.west, earth.west + earth.width))[axis]
        return low + where * (high - low)
    steps = np.minimum((where * (grid.extents[axis] + 1)).astype(np.int64), grid.extents[axis])
    if grid.times is not None and grid.times.lower[axis] is not None:
        instants = grid.times.instants(steps, axis)
        return pa.array(instants, pa.timestamp(grid.times.tick, "UTC")) if grid.times.zoned else instants
    if not grid.wide:
        if float(grid.step).is_integer():
            values = np.asarray(steps * grid.step + grid.lower[axis])
            return values.astype(np.int64) if float(grid.lower[axis]).is_integer() else values
        # multiples of a fraction would be smaller in a file than other numbers
        return np.asarray(grid.lower[axis] + where * (grid.upper[axis] - grid.lower[axis]))
    lowest = np.array(grid.lower[axis], dtype=np.int64 if grid.upper[axis] < 1 << 63 else np.uint64)
    return np.asarray(steps.astype(lowest.dtype) * lowest.dtype.type(grid.step) + lowest)


def as_values(costs: Sequence[Cost]) -> list[dict[str, float]]:
    """Return the costs as JSON values."""
    return [vars(cost) for cost in costs]


def table(costs: Sequence[Cost]) -> Table:
    """Return the costs as a table."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("rows", "rows read", "CPU seconds", "peak memory", "TMPDIR"):
        shown.add_column(header, justify="right")
    for cost in costs:
        low, high = number(cost.processor_low, 2), number(cost.processor_high, 2)
        shown.add_row(
            f"{cost.rows:,}",
            f"{cost.rows_read:,}",
            f"{number(cost.processor, 3)} ({low} to {high})",
            f"{number(cost.memory / 1e6, 3)} MB",
            f"{number(cost.disk / 1e6, 3)} MB" if cost.disk >= 1e6 else "none",
        )
    return shown
