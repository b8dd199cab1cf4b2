"""Statistics by group on real data, beside a baseline by hand and PipelineDP at the same budget and bounds.

The baseline splits epsilon evenly between count and sum, gives each Laplace noise, and divides them. Errors
are medians over runs of the median over the released groups: of a count in rows, of a sum and a mean in parts
of the column's largest value.

A second table has the median as the only measure, beside the task `quantiles` on the rows of each group, and
the exact median by numpy. Its errors are medians over runs of the mean over the released groups: of the
rank in rows, and of the value in parts of the largest one.

PipelineDP runs on its local backend, and where rows have units also on Beam's in-process runner.

What bounds on contributions leave out is part of an error. Run by `make bench-groups`; SHOAL_DATA names the
folder of the datasets, and PIPELINEDP a Python that has PipelineDP 0.3.1. Rows a second are of one process,
with the bounds on contributions.
"""

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.quantiles.params import Quantiles
from core.quantiles.task import QUANTILES
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise
from pipelines.job.job import check_job
from pipelines.plan import make_plan
from tests.benchmarks.pipelinedp_peer import NotThere, aggregate
from transforms.bound_units import Bounding, bound_in_memory
from transforms.contributions import Contributing
from transforms.open_source import open_source
from transforms.read_blocks import read_in_memory

RUNS, PEER_RUNS = 20, 3
EPSILON, DELTA = 1.0, 1e-6
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One question: rows with a key and a value, and who they belong to.

    Args:
        name: of the row.
        file: of the dataset.
        keys: key columns.
        value: column.
        high: its upper bound; the lower one is 0.
        private: whether keys are private.
        unit: column, or None.
        groups: of a unit.
        rows: of a unit in a group.
    """

    name: str
    file: str
    keys: tuple[str, ...]
    value: str
    high: float
    private: bool = False
    unit: str | None = None
    groups: int = 1
    rows: int = 1


CASES = (
    Case("flights by origin", "flights_nyc13", ("origin",), "distance", 5000.0),
    Case("flights by carrier and day", "flights_nyc13", ("carrier", "day"), "distance", 5000.0, True),
    Case("adult by education", "adult", ("education_num",), "hours_per_week", 100.0),
    Case("adult by age, private", "adult", ("age",), "hours_per_week", 100.0, True),
    Case(
        "planes by carrier and day",
        "flights_nyc13",
        ("carrier", "day"),
        "distance",
        5000.0,
        True,
        "tailnum",
        30,
        2,
    ),
    Case("visitors by place of 1 degree", "visits", ("cell",), "visits", 20.0, True, "user", 5, 10),
)


def load(case: Case, folder: Path) -> tuple[Path, pa.Table]:
    """Write the rows of a case, without nulls, and return them."""
    data = Path(os.environ.get("SHOAL_DATA", "/data"))
    if case.file == "visits":
        rows = pq.read_table(data / "visits_gowalla.parquet")
        lat, lon = (np.floor(rows.column(name).to_numpy()).astype(np.int64) for name in ("lat", "lon"))
        rows = rows.append_column("cell", pa.array(lat * 360 + lon))
    else:
        rows = pq.read_table(data / f"{case.file}.parquet")
    names = [*case.keys, case.value, *([case.unit] if case.unit else [])]
    rows = rows.select(list(dict.fromkeys(names))).drop_null()
    path = folder / "rows.parquet"
    pq.write_table(rows, path, row_group_size=1 << 17)
    return path, rows


def labels(case: Case, rows: pa.Table) -> NDArray[np.str_]:
    """Return the key of each row as JSON."""
    columns = [rows.column(name).to_pylist() for name in case.keys]
    return np.array([json.dumps(list(key), separators=(",", ":")) for key in zip(*columns, strict=True)])


@dataclass(frozen=True)
class Truth:
    """Exact count and sum of each key."""

    keys: NDArray[np.str_]
    counts: Floats
    sums: Floats
    high: float

    def errors(self, keys: Any, counts: Any, sums: Any, means: Any) -> tuple[float, float, float]:
        """Return the median errors of the released groups."""
        place = np.searchsorted(self.keys, keys)
        true_counts, true_sums = self.counts[place], self.sums[place]
        off = (
            np.abs(counts - true_counts),
            np.abs(sums - true_sums) / self.high,
            np.abs(means - true_sums / true_counts) / self.high,
        )
        return tuple(float(np.median(each)) for each in off)  # type: ignore[return-value]


def released(
    case: Case, path: Path, keys: list[str], measures: list[Any]
) -> tuple[list[tuple[Any, dict[str, Any]]], float]:
    """Return found keys and table of each run, and the processor seconds of one pass and release."""
    grid = {"lower": [0.0], "upper": [case.high], "step": case.high / 10_000}
    listed: Any = "private" if case.private else [json.loads(label) for label in keys]
    raw: dict[str, Any] = {
        "task": "statistics",
        "input": {"path": str(path), "columns": [case.value], "checks": 0.0},
        "domain": grid,
        "privacy": {"epsilon": EPSILON, "delta": DELTA},
        "params": {"measures": measures},
        "group_by": {"columns": list(case.keys), "keys": listed},
        "output": "/nowhere/out",
    }
    if case.unit:
        raw["input"]["unit"] = case.unit
        raw["contributions"] = {"groups": case.groups, "rows": case.rows}
    job = check_job(raw)
    plan = make_plan(job, bytes(16))
    source = open_source(str(path), job.input.columns, job.unit, groups=job.group_keys)
    started = time.process_time()
    if case.unit:
        bounding = Bounding.of(source, job.grid, "one", bytes(16))
        contributing = Contributing.of(source, bounding, case.groups, case.rows)
        blocks = list(bound_in_memory(source, contributing))
    else:
        blocks = list(read_in_memory(source, job.grid))
    found = run_in_memory(plan.rounds, blocks, plan.start, SecureNoise())
    seconds = time.process_time() - started
    runs = []
    for _ in range(RUNS):
        found = run_in_memory(plan.rounds, blocks, plan.start, SecureNoise())
        runs.append((np.char.decode(found.labels), found.table(job.grid) or {}))
    return runs, seconds


def shoal(case: Case, path: Path, truth: Truth) -> tuple[list[Any], float]:
    """Return the errors and found keys of each run, and the processor seconds of one pass and release."""
    tables, seconds = released(case, path, truth.keys.tolist(), ["count", "sum", "mean"])
    runs = []
    for keys, table in tables:
        if not table:
            runs.append((0, math_nan()))
            continue
        known = np.nan_to_num(table["mean"])
        runs.append((len(keys), truth.errors(keys, table["count"], table["sum"], known)))
    return runs, seconds


@dataclass(frozen=True)
class Sorted:
    """The sorted values of each key."""

    values: dict[str, Floats]
    high: float

    @classmethod
    def of(cls, keys: NDArray[np.str_], values: Floats, high: float) -> "Sorted":
        """Sort the values by key."""
        order = np.lexsort((values, keys))
        there, starts = np.unique(keys[order], return_index=True)
        parts = np.split(values[order], starts[1:])
        return cls(dict(zip(there.tolist(), parts, strict=True)), high)

    def errors(self, keys: Any, medians: Any) -> tuple[float, float]:
        """Return the mean errors of the released medians, in rows and in parts of the largest value."""
        ranks, off = [], []
        step = self.high / 10_000
        for key, median in zip(keys, np.rint(np.asarray(medians) / step) * step, strict=True):
            here = self.values[key]
            below, upto = np.searchsorted(here, median, "left"), np.searchsorted(here, median, "right")
            ranks.append(max(0.0, below - len(here) / 2, len(here) / 2 - upto))
            off.append(abs(median - here[(len(here) - 1) // 2]) / self.high)
        return (float(np.mean(ranks)), float(np.mean(off))) if ranks else (np.nan, np.nan)


def medians_alone(case: Case, truth: Sorted) -> list[Any]:
    """Return the errors of the task `quantiles` on the rows of each key, each time with all of epsilon."""
    grid, step = Grid((0.0,), (case.high,), case.high / 10_000), case.high / 10_000
    alone = Quantiles((0.5,))
    neighbors, budget = Neighbors("add_or_remove_one"), Budget(EPSILON, DELTA)
    plan = QUANTILES.plan(grid, alone, budget, neighbors, bytes(16))
    runs = []
    for _ in range(RUNS):
        found = []
        for values in truth.values.values():
            points = np.rint(values / step).astype(np.int64)[:, None]
            block = Block(points, np.arange(len(points), dtype=np.uint64))
            found.append(run_in_memory(plan.rounds, [block], plan.start, SecureNoise()).steps[0] * step)
        runs.append((len(found), truth.errors(truth.values, found)))
    return runs


def medians(case: Case, path: Path, rows: pa.Table, keys: NDArray[np.str_], values: Floats) -> None:
    """Print the rows of the second table."""
    truth = Sorted.of(keys, np.rint(values / (case.high / 10_000)) * (case.high / 10_000), case.high)
    tables, seconds = released(case, path, list(truth.values), [{"quantiles": [0.5]}])
    runs = [(len(k), truth.errors(k, table.get("quantile_0.5", ()))) for k, table in tables]
    show(case.name, "Shoal", runs, len(rows) / seconds)
    started = time.process_time()
    exact = Sorted.of(keys, values, case.high)
    done = time.process_time() - started
    show(case.name, "exact, by numpy", [(len(exact.values), (0.0, 0.0))], len(rows) / done)
    if not case.private:
        show(case.name, "`quantiles` alone on each group", medians_alone(case, truth), None)
    for noise in ("laplace", "gaussian"):
        try:
            peers, seconds = peer_runs(case, rows, keys, list(truth.values), noise, ["MEDIAN"])
        except NotThere as error:
            print(error, file=sys.stderr)
            continue
        runs = [(len(run), truth.errors(run, [value for (value,) in run.values()])) for run in peers]
        show(case.name, f"PipelineDP, {noise}", runs, len(rows) / seconds)


def math_nan() -> tuple[float, float, float]:
    """Return errors of no group."""
    return (np.nan, np.nan, np.nan)


def by_hand(case: Case, truth: Truth) -> list[Any]:
    """Return the errors of the baseline on bounded totals, whose bias it is not charged with."""
    rng = np.random.default_rng(0)
    scale = 2 * case.groups * case.rows / EPSILON
    runs = []
    for _ in range(RUNS):
        counts = truth.counts + rng.laplace(0, scale, len(truth.keys))
        sums = truth.sums + rng.laplace(0, scale * case.high, len(truth.keys))
        means = np.clip(sums / np.maximum(counts, 1), 0, case.high)
        runs.append((len(truth.keys), truth.errors(truth.keys, counts, sums, means)))
    return runs


def peer_runs(
    case: Case,
    rows: pa.Table,
    keys: NDArray[np.str_],
    public: list[str],
    noise: str,
    metrics: list[str],
    beam: bool = False,
) -> tuple[list[dict[str, list[float]]], float]:
    """Return the metrics of the keys that each run of PipelineDP finds, and the processor seconds of one.

    With `beam` there is one run, on Beam's in-process runner, and otherwise several on the local backend.
    """
    unit = rows.column(case.unit).to_pylist() if case.unit else list(range(len(rows)))
    asked = {
        "metrics": metrics,
        "noise": noise,
        "epsilon": EPSILON,
        "delta": DELTA,
        "groups": case.groups,
        "rows": case.rows,
        "low": 0.0,
        "high": case.high,
        "public": None if case.private else public,
        "runs": 1 if beam else PEER_RUNS,
        "beam": beam,
    }
    python = os.environ.get("PIPELINEDP")
    columns = {"unit": unit, "key": keys.tolist(), "value": rows.column(case.value).to_pylist()}
    done = aggregate(columns, asked, None if python is None else Path(python))
    return [run["groups"] for run in done], min(run["seconds"] for run in done)


def peer(
    case: Case, rows: pa.Table, keys: NDArray[np.str_], truth: Truth, noise: str, beam: bool
) -> tuple[list[Any], float]:
    """Return the errors and found keys of PipelineDP, and its processor seconds of one run."""
    done, seconds = peer_runs(case, rows, keys, truth.keys.tolist(), noise, ["COUNT", "SUM", "MEAN"], beam)
    found = []
    for groups in done:
        there = sorted(groups)
        values = np.array([groups[key] for key in there]).reshape(-1, 3)
        errors = truth.errors(np.array(there, dtype=str), *values.T) if there else math_nan()
        found.append((len(there), errors))
    return found, seconds


def show(name: str, how: str, runs: list[Any], rate: float | None) -> None:
    """Print one row of the table."""
    errors = np.median([errors for _, errors in runs], axis=0)
    found = np.median([found for found, _ in runs])
    shown = "" if rate is None else f"{rate:,.0f}"
    figures = " | ".join(f"{error:.3g}" for error in errors)
    print(f"| {name} | {how} | {found:.0f} | {figures} | {shown} |", flush=True)


def main() -> None:
    """Print two tables; arguments name cases."""
    chosen = [case for case in CASES if not sys.argv[1:] or any(word in case.name for word in sys.argv[1:])]
    print("| data | by | keys found | count | sum / largest | mean / largest | rows a second |")
    print("|---|---|---|---|---|---|---|")
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder:
            path, rows = load(case, Path(folder))
            keys = labels(case, rows)
            values = np.clip(rows.column(case.value).to_numpy().astype(float), 0, case.high)
            there, place = np.unique(keys, return_inverse=True)
            truth = Truth(there, np.bincount(place).astype(float), np.bincount(place, values), case.high)
            runs, seconds = shoal(case, path, truth)
            show(case.name, "Shoal", runs, len(rows) / seconds)
            if not case.private and not case.unit:
                show(case.name, "even split by hand", by_hand(case, truth), None)
            peers = [("laplace", False), ("gaussian", False), *([("laplace", True)] if case.unit else [])]
            for noise, beam in peers:
                try:
                    runs, seconds = peer(case, rows, keys, truth, noise, beam)
                except NotThere as error:
                    print(error, file=sys.stderr)
                    continue
                where = " on Beam" if beam else ""
                show(case.name, f"PipelineDP, {noise}{where}", runs, len(rows) / seconds)
    print("\n| data | median by | keys found | rank, rows | value / largest | rows a second |")
    print("|---|---|---|---|---|---|")
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder:
            path, rows = load(case, Path(folder))
            values = np.clip(rows.column(case.value).to_numpy().astype(float), 0, case.high)
            medians(case, path, rows, labels(case, rows), values)


if __name__ == "__main__":
    main()
