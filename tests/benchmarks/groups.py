"""Statistics by group on real data, beside a baseline by hand, PipelineDP and OpenDP, all at the same budget.

The baseline splits epsilon evenly between count and sum, gives each Laplace noise, and divides them. Errors
are medians over runs of the mean over groups: of a count in rows, of a sum in parts of the column's largest
value, and so of a mean, where a group weighs as many as its rows. Private groups are compared where every way
finds them in all of its runs, so that errors are over the same groups in every run; ways that mostly find
none are left out of that.

Behind ± is the standard error of the median over the runs: 1.25 times that of their mean, as for a normal
distribution.

A second table has the median as the only measure, beside the task `quantiles` on the rows of each group, and
the exact median by numpy. Its errors are medians over runs of the mean over the released groups: of the
rank in rows, and of the value in parts of the largest one.

PipelineDP runs on its local backend, and up to three times on Beam's in-process runner, which is compared
with three times `run_job` of Shoal on its own: plan, pipeline, release and report, without the imports. Both
make these runs in one process.

What bounds on contributions leave out is part of an error. Run by `make bench-groups`; SHOAL_DATA names the
folder of the datasets, and PIPELINEDP and OPENDP may name a Python that has the peer. A peer that has made
three runs, or one on Beam, makes no more after PEER_SECONDS of the processor (200). Arguments are words in
the names of cases; `--table totals` or `--table medians` prints one table alone. Rows a second are of one
process, with the bounds on contributions; OpenDP's processor time is that of all its threads.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
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
from pipelines.run.run import run_job
from tests.benchmarks.opendp_peer import OPENDP
from tests.benchmarks.peer_process import NotThere, Peer
from tests.benchmarks.pipelinedp_peer import PIPELINEDP
from transforms.bound_units import Bounding, bound_in_memory
from transforms.contributions import Contributing
from transforms.open_source import open_source
from transforms.read_blocks import read_in_memory

RUNS = 20
RUNS_ON_BEAM = 3
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
    Case("visitors by place, public", "visits", ("cell",), "visits", 20.0, False, "user", 5, 10),
    Case("check-ins by day", "checkins_gowalla", ("day",), "hour", 24.0, False, "user", 30, 5),
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
    if case.file == "checkins_gowalla":
        seconds = rows.column("ts").to_numpy()
        rows = rows.append_column("hour", pa.array(seconds // 3600 % 24))
        rows = rows.append_column("day", pa.array(seconds // 86400))
    names = [*case.keys, case.value, *([case.unit] if case.unit else [])]
    rows = rows.select(list(dict.fromkeys(names))).drop_null()
    path = folder / "rows.parquet"
    pq.write_table(rows, path, row_group_size=1 << 17)
    return path, rows


def labels(case: Case, rows: pa.Table) -> NDArray[np.str_]:
    """Return the key of each row as JSON."""
    columns = [rows.column(name).to_pylist() for name in case.keys]
    return np.array([json.dumps(list(key), separators=(",", ":")) for key in zip(*columns, strict=True)])


Found = Mapping[str, Sequence[float]]
"""Count, sum and mean of each released key of a run."""


@dataclass(frozen=True)
class Truth:
    """Exact count and sum of each key."""

    keys: NDArray[np.str_]
    counts: Floats
    sums: Floats
    high: float

    def errors(self, found: Found, compared: set[str]) -> tuple[float, float, float]:
        """Return the errors of those compared groups that a run found; see the top of this file."""
        there = sorted(set(found) & compared)
        if not there:
            return (np.nan, np.nan, np.nan)
        place = np.searchsorted(self.keys, there)
        true_counts, true_sums = self.counts[place], self.sums[place]
        counts, sums, means = np.array([found[key] for key in there], dtype=float).T
        of_means = np.abs(means - true_sums / true_counts) / self.high
        return (
            float(np.abs(counts - true_counts).mean()),
            float(np.abs(sums - true_sums).mean() / self.high),
            float(np.average(of_means, weights=true_counts)),
        )


def in_common(ways: Iterable[Sequence[Found]]) -> set[str]:
    """Return the groups that every way finds in all of its runs, but for ways that mostly find none."""
    serving = [runs for runs in ways if np.median([len(found) for found in runs])]
    found = [set(run) for runs in serving for run in runs]
    return set.intersection(*found) if found else set()


def job_of(case: Case, path: Path, keys: list[str], measures: list[Any], output: str) -> dict[str, Any]:
    """Return the job of a case."""
    listed: Any = "private" if case.private else [json.loads(label) for label in keys]
    raw: dict[str, Any] = {
        "task": "statistics",
        "input": {"path": str(path), "columns": [case.value], "checks": 0.0},
        "domain": {"lower": [0.0], "upper": [case.high], "step": case.high / 10_000},
        "privacy": {"epsilon": EPSILON, "delta": DELTA},
        "params": {"measures": measures},
        "group_by": {"columns": list(case.keys), "keys": listed},
        "output": output,
    }
    if case.unit:
        raw["input"]["unit"] = case.unit
        raw["contributions"] = {"groups": case.groups, "rows": case.rows}
    return raw


def released(
    case: Case, path: Path, keys: list[str], measures: list[Any]
) -> tuple[list[tuple[Any, dict[str, Any]]], float]:
    """Return found keys and table of each run, and the processor seconds of one pass and release.

    Where rows have units, every run chooses others of their rows.
    """
    job = check_job(job_of(case, path, keys, measures, "/nowhere/out"))
    source = open_source(str(path), job.input.columns, job.unit, groups=job.group_keys)
    runs, taken = [], []
    for number in range(RUNS):
        plan = make_plan(job, bytes([number] * 16))
        started = time.process_time()
        if case.unit:
            bounding = Bounding.of(source, job.grid, "one", bytes([number] * 16))
            contributing = Contributing.of(source, bounding, case.groups, case.rows)
            blocks = list(bound_in_memory(source, contributing))
        else:
            blocks = list(read_in_memory(source, job.grid))
        found = run_in_memory(plan.rounds, blocks, plan.start, SecureNoise())
        taken.append(time.process_time() - started)
        runs.append((np.char.decode(found.labels), found.table(job.grid) or {}))
    return runs, float(np.median(taken))


def shoal(case: Case, path: Path, keys: list[str]) -> tuple[list[Found], float]:
    """Return what each run finds, and the processor seconds of one pass and release."""
    tables, seconds = released(case, path, keys, ["count", "sum", "mean"])
    runs: list[Found] = []
    for there, table in tables:
        values = [np.nan_to_num(table[name]) for name in ("count", "sum", "mean")] if table else []
        runs.append(dict(zip(there.tolist(), zip(*values, strict=True), strict=True)) if table else {})
    return runs, seconds


def shoal_on_beam(case: Case, path: Path, keys: list[str], folder: Path) -> tuple[list[Found], float]:
    """Return what each run of the whole job finds, and the processor seconds of one."""
    runs: list[Found] = []
    taken = []
    for number in range(RUNS_ON_BEAM):
        out = folder / f"out{number}"
        job = check_job(job_of(case, path, keys, ["count", "sum", "mean"], str(out)))
        started = time.process_time()
        run_job(job)
        taken.append(time.process_time() - started)
        stored = out / "result.parquet"
        if not stored.exists():
            runs.append({})
            continue
        table = pq.read_table(stored)
        values = [np.nan_to_num(table.column(name).to_numpy()) for name in ("count", "sum", "mean")]
        runs.append(dict(zip(labels(case, table), zip(*values, strict=True), strict=True)))
    return runs, float(np.median(taken))


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
            peers, seconds = peer_runs(PIPELINEDP, case, rows, keys, list(truth.values), noise, ["MEDIAN"])
        except NotThere as error:
            print(error, file=sys.stderr)
            continue
        runs = [(len(run), truth.errors(run, [value for (value,) in run.values()])) for run in peers]
        show(case.name, f"PipelineDP, {noise}", runs, len(rows) / seconds)


def by_hand(case: Case, truth: Truth) -> list[Found]:
    """Return what a baseline finds, without units."""
    rng = np.random.default_rng(0)
    runs: list[Found] = []
    for _ in range(RUNS):
        counts = truth.counts + rng.laplace(0, 2 / EPSILON, len(truth.keys))
        sums = truth.sums + rng.laplace(0, 2 / EPSILON * case.high, len(truth.keys))
        means = np.clip(sums / np.maximum(counts, 1), 0, case.high)
        runs.append(dict(zip(truth.keys.tolist(), zip(counts, sums, means, strict=True), strict=True)))
    return runs


def peer_runs(
    peer: Peer,
    case: Case,
    rows: pa.Table,
    keys: NDArray[np.str_],
    public: list[str],
    noise: str,
    metrics: list[str],
    beam: bool = False,
) -> tuple[list[Found], float]:
    """Return the metrics of the keys that each run of a peer finds, and the processor seconds of one.

    With `beam` PipelineDP is on Beam's in-process runner, for fewer runs.
    """
    unit = rows.column(case.unit).to_pylist() if case.unit else list(range(len(rows)))
    asked = {
        "metrics": metrics,
        "noise": noise,
        "epsilon": EPSILON,
        "delta": DELTA,
        "units": case.unit is not None,
        "groups": case.groups,
        "rows": case.rows,
        "low": 0.0,
        "high": case.high,
        "public": None if case.private else public,
        "runs": RUNS_ON_BEAM if beam else RUNS,
        "least": 1 if beam else 3,
        "seconds": int(os.environ.get("PEER_SECONDS", "200")),
        "beam": beam,
    }
    columns = {"unit": unit, "key": keys.tolist(), "value": rows.column(case.value).to_pylist()}
    done = peer.run(columns, asked)
    return [run["groups"] for run in done], float(np.median([run["seconds"] for run in done]))


PEERS = (
    ("PipelineDP, laplace", PIPELINEDP, "laplace", False),
    ("PipelineDP, gaussian", PIPELINEDP, "gaussian", False),
    ("OpenDP, laplace", OPENDP, "laplace", False),
    ("OpenDP, gaussian", OPENDP, "gaussian", False),
    ("PipelineDP on Beam", PIPELINEDP, "laplace", True),
)
"""Ways to answer a question with a peer: name, peer, noise, and whether it is on Beam."""


def totals(case: Case, folder: Path) -> None:
    """Print the rows of the first table."""
    path, rows = load(case, folder)
    keys = labels(case, rows)
    values = np.clip(rows.column(case.value).to_numpy().astype(float), 0, case.high)
    there, place = np.unique(keys, return_inverse=True)
    counts, sums = (np.bincount(place, each).astype(float) for each in (np.ones(len(rows)), values))
    truth = Truth(there, counts, sums, case.high)
    public = truth.keys.tolist()
    ways: dict[str, tuple[list[Found], float | None]] = {"Shoal": shoal(case, path, public)}
    if not case.private and not case.unit:
        ways["even split by hand"] = by_hand(case, truth), None
    for name, peer, noise, beam in PEERS:
        try:
            ways[name] = peer_runs(peer, case, rows, keys, public, noise, ["COUNT", "SUM", "MEAN"], beam)
        except NotThere as error:
            print(error, file=sys.stderr)
    ways["Shoal on Beam"] = shoal_on_beam(case, path, public, folder)
    compared = in_common(runs for name, (runs, _) in ways.items() if "Beam" not in name)
    for name, (runs, seconds) in ways.items():
        errors = [(len(found), truth.errors(found, compared)) for found in runs]
        show(case.name, name, errors, None if seconds is None else len(rows) / seconds)


def show(name: str, how: str, runs: list[Any], rate: float | None) -> None:
    """Print one row of the table."""
    found = np.median([found for found, _ in runs])
    shown = "" if rate is None else f"{rate:,.0f}"
    figures = " | ".join(map(median_of, zip(*(errors for _, errors in runs), strict=True)))
    print(f"| {name} | {how} | {len(runs)} | {found:.0f} | {figures} | {shown} |", flush=True)


def median_of(errors: Sequence[float]) -> str:
    """Return the median over the runs that found a group, with its standard error."""
    there = [error for error in errors if not np.isnan(error)]
    if not there:
        return "nan"
    if len(there) == 1:
        return f"{there[0]:.3g}"
    off = math.sqrt(math.pi / 2) * float(np.std(there, ddof=1)) / math.sqrt(len(there))
    return f"{np.median(there):.3g} ± {off:.1g}"


def main() -> None:
    """Print two tables, or one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*", help="in the names of cases; without any, all cases")
    parser.add_argument("--table", choices=("totals", "medians"), help="which table; without it, both")
    asked = parser.parse_args()
    chosen = [case for case in CASES if not asked.words or any(word in case.name for word in asked.words)]
    if asked.table != "medians":
        print("| data | by | runs | keys found | count | sum / largest | mean / largest | rows a second |")
        print("|---|---|---|---|---|---|---|---|")
        for case in chosen:
            with tempfile.TemporaryDirectory() as folder:
                totals(case, Path(folder))
    if asked.table != "totals":
        print("\n| data | median by | runs | keys found | rank, rows | value / largest | rows a second |")
        print("|---|---|---|---|---|---|---|")
        for case in chosen:
            with tempfile.TemporaryDirectory() as folder:
                path, rows = load(case, Path(folder))
                values = np.clip(rows.column(case.value).to_numpy().astype(float), 0, case.high)
                medians(case, path, rows, labels(case, rows), values)


if __name__ == "__main__":
    main()
