"""Measure how runs grow with their rows: seconds of the processor, and peak memory of all processes.

Each case is `shoal run` by the embedded runner, on made-up rows in one Parquet file, in a process of its own.
The memory is that of this process and all its children together, each shared page counted once (PSS), read
from the system every 50 ms. `--check` fails where a run takes more than a gigabyte. `--predict` also shows
what `shoal cost` predicts for each size, from two runs on rows that it makes up itself. To add a task, add a
`Case`. Run by `make bench-scale`.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from pipelines.job.job import check_job
from pipelines.run.cost import Cost, predict
from pipelines.run.usage import Usage, run_command

SIZES = (1_000_000, 10_000_000, 100_000_000)
EDGES = (100_000, 1_000_000, 10_000_000)
MOST_MEGABYTES = 1000.0
_ROW_GROUP = 1 << 20
_SHOAL = "from pipelines.cli import main; main()"
_SPREAD = 0x9E3779B97F4A7C15
_WIDE = 1 << 40

Rows = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A task on rows of one kind.

    Args:
        rows: makes so many rows, by column, in pieces.
        job: fields of the job beside output, for so many of these rows; of the input all but the path.
        sizes: numbers of rows.
        keys: whether keys.parquet has the public keys of so many rows.
    """

    rows: Callable[[int], Iterator[Rows]]
    job: Callable[[int], dict[str, Any]]
    sizes: tuple[int, ...] = field(default=SIZES)
    keys: bool = False


def piecewise(make: Callable[[int, int], Rows]) -> Callable[[int], Iterator[Rows]]:
    """Return what makes rows in pieces, given what makes a piece from its first row and its length."""

    def rows(n: int) -> Iterator[Rows]:
        for first in range(0, n, _ROW_GROUP):
            yield make(first, min(_ROW_GROUP, n - first))

    return rows


def distinct(first: int, n: int) -> Rows:
    """Make integers below 2^40 that all differ, in no order: an odd factor permutes them; and labels."""
    x = (np.arange(first, first + n, dtype=np.uint64) * np.uint64(_SPREAD) & np.uint64(_WIDE - 1)).astype(
        np.int64
    )
    noise = np.random.default_rng(first).random(n) < 0.1
    return {"x": x, "label": (x > _WIDE // 3) ^ noise}


def visits(first: int, n: int) -> Rows:
    """Make such integers of people, who have ten each."""
    return {**distinct(first, n), "person": np.arange(first, first + n) // 10}


def classes(first: int, n: int) -> Rows:
    """Make such integers in a thousand groups."""
    return {**distinct(first, n), "group": np.arange(first, first + n) % 1000}


def one_person(first: int, n: int) -> Rows:
    """Make such integers, of which 90% are those of one person, as of a placeholder."""
    rows = visits(first, n)
    return {**rows, "person": np.where(rows["x"] % 10 < 9, -1, rows["person"])}


def in_groups(n: int) -> Iterator[Rows]:
    """Make values of n / 10 groups, each with about ten rows."""
    names = group_names(n)
    for first in range(0, n, _ROW_GROUP):
        rng, here = np.random.default_rng(first), min(_ROW_GROUP, n - first)
        yield {"x": rng.integers(0, 10_001, here), "group": names[rng.integers(0, len(names), here)]}


def group_names(n: int) -> NDArray[np.str_]:
    """Return the names of n / 10 groups."""
    return np.char.add("group-", np.char.zfill(np.arange(n // 10).astype(np.str_), 8))


def by_group(n: int, public: bool, **params: Any) -> dict[str, Any]:
    """Return the job of counts and means of such groups."""
    return {
        "task": "statistics",
        "input": {"columns": ["x"]},
        "domain": {"lower": [0], "upper": [10_000], "step": 1},
        "params": {"measures": ["count", "mean"], **params},
        "group_by": {"columns": ["group"], "keys": "keys.parquet" if public else "private"},
    }


def clumps(axes: int) -> Callable[[int, int], Rows]:
    """Return what makes points of the unit cube, half of them in ten clumps."""

    def make(first: int, n: int) -> Rows:
        rng = np.random.default_rng(first)
        centers = np.random.default_rng(0).uniform(0.2, 0.8, (10, axes))
        points = rng.random((n, axes))
        dense = centers[rng.integers(0, 10, n // 2)] + rng.normal(0, 0.02, (n // 2, axes))
        points[: n // 2] = dense
        return {f"x{axis}": points[:, axis] for axis in range(axes)}

    return make


def line(first: int, n: int) -> Rows:
    """Make two features and a target that is a linear function of them, with noise."""
    rng = np.random.default_rng(first)
    a, b = rng.random((2, n))
    return {"a": a, "b": b, "y": a + 2 * b + rng.normal(0, 0.1, n)}


def random_edges(m: int) -> Iterator[Rows]:
    """Make m edges between m / 10 nodes, all pairs alike."""
    yield between(nodes(m), m)


def edges_of_many_nodes(m: int) -> Iterator[Rows]:
    """Make m edges between m / 4 nodes, all pairs alike."""
    yield between(m // 4, m)


def between(n: int, m: int) -> Rows:
    """Make m edges between n nodes, all pairs alike."""
    return weighted(*np.random.default_rng(0).integers(0, n, (2, m)))


def edges_of_hubs(m: int) -> Iterator[Rows]:
    """Make m edges between m / 10 nodes, where node number i has a share of i^-0.7 of the ends."""
    likely = np.cumsum(np.arange(1.0, nodes(m) + 1) ** -0.7)
    u, v = np.searchsorted(likely / likely[-1], np.random.default_rng(0).random((2, m)))
    yield weighted(u, v)


def dense_edges(m: int) -> Iterator[Rows]:
    """Make m of the edges between 5,000 nodes."""
    u, v = np.triu_indices(5000, 1)
    some = np.random.default_rng(0).permutation(len(u))[:m]
    yield weighted(u[some], v[some])


def nodes(m: int) -> int:
    """Return the number of nodes of m edges."""
    return max(100, m // 10)


def weighted(u: NDArray[np.int64], v: NDArray[np.int64]) -> Rows:
    """Give edges random weights."""
    return {"u": u, "v": v, "weight": np.random.default_rng(1).integers(0, 1001, len(u))}


def graph(task: str, number: Callable[[int], int] = nodes, **params: Any) -> Callable[[int], dict[str, Any]]:
    """Return what makes the job of a task on a graph of so many nodes."""

    def job(m: int) -> dict[str, Any]:
        upper = [1000] if task == "mst_cost" else []
        axes, last = 2 + len(upper), number(m) - 1
        domain = {"lower": [0] * axes, "upper": [last, last, *upper], "step": 1}
        return {
            "task": task,
            "input": {"columns": ["u", "v", "weight"][:axes]},
            "domain": domain,
            "params": params,
        }

    return job


def ordered(
    task: str, columns: tuple[str, ...] = ("x",), unit: str | None = None, step: int = 1, **params: Any
) -> Callable[[int], dict[str, Any]]:
    """Return what makes the job of a task on values below 2^40."""
    upper = [_WIDE - 1, 1][: len(columns)]
    job = {
        "task": task,
        "input": {"columns": [*columns], **({} if unit is None else {"unit": unit})},
        "domain": {"lower": [0] * len(columns), "upper": upper, "step": step},
        "params": params,
    }
    return lambda _: job


def quantiles_by_group(n: int) -> dict[str, Any]:
    """Return the job of three quantiles of each of a thousand groups."""
    job = ordered("quantiles", probabilities=[0.1, 0.5, 0.9])(n)
    return {**job, "group_by": {"columns": ["group"], "keys": list(range(1000))}}


def plane(
    task: str, axes: int, target: float | None = None, **params: Any
) -> Callable[[int], dict[str, Any]]:
    """Return what makes the job of a task on the unit cube.

    Args:
        task: which.
        axes: number of columns.
        target: how many rows a ball should hold, or which part of the rows where it is below 1.
        params: others.
    """

    def job(n: int) -> dict[str, Any]:
        own = {} if target is None else {"target": int(target if target >= 1 else target * n)}
        return {
            "task": task,
            "input": {"columns": [f"x{axis}" for axis in range(axes)]},
            "domain": {"lower": [0.0] * axes, "upper": [1.0] * axes, "step": 2.0**-20},
            "params": params | own,
        }

    return job


def fits(n: int) -> dict[str, Any]:
    """Return the job of a regression in a thousand blocks."""
    outputs = {"lower": [-10.0, -10.0], "upper": [10.0, 10.0], "step": 1e-6}
    limits = {"time_limit": 60.0, "memory_limit": 1000}
    function = {"function": "shoal.analyses.regression:linear", "blocks": 1000, "outputs": outputs}
    return {
        "task": "sample_and_aggregate",
        "input": {"columns": ["a", "b", "y"]},
        "params": function | limits,
    }


DISTINCT = piecewise(distinct)
CASES = {
    "one_cluster": Case(piecewise(clumps(2)), plane("one_cluster", 2, target=0.03)),
    "one_cluster, small target": Case(piecewise(clumps(2)), plane("one_cluster", 2, target=1000)),
    "one_cluster, small target, 1 column": Case(DISTINCT, ordered("one_cluster", step=1 << 10, target=1000)),
    "k_cover": Case(piecewise(clumps(2)), plane("k_cover", 2, target=0.02, k=3)),
    "histogram, dense": Case(piecewise(clumps(2)), plane("histogram", 2, cells=100)),
    "histogram, distinct values": Case(
        DISTINCT, ordered("histogram", cells=_WIDE, method="sparse", parts=256)
    ),
    "cdf": Case(DISTINCT, ordered("cdf", step=1 << 20)),
    "ranges": Case(piecewise(clumps(2)), plane("ranges", 2)),
    "quantiles": Case(DISTINCT, ordered("quantiles", probabilities=[i / 10 for i in range(1, 10)])),
    "quantiles, 99": Case(DISTINCT, ordered("quantiles", probabilities=[i / 100 for i in range(1, 100)])),
    "quantiles of a thousand groups": Case(piecewise(classes), quantiles_by_group),
    "median": Case(DISTINCT, ordered("median")),
    "median, 2 columns": Case(piecewise(clumps(2)), plane("median", 2)),
    "minimum": Case(DISTINCT, ordered("minimum")),
    "interior_point": Case(DISTINCT, ordered("interior_point")),
    "threshold": Case(DISTINCT, ordered("threshold", ("x", "label"))),
    "statistics": Case(DISTINCT, ordered("statistics", step=1 << 10, measures=["count", "mean"])),
    "statistics with quantiles": Case(
        DISTINCT,
        ordered("statistics", step=1 << 10, measures=[{"quantiles": [0.1, 0.5]}, "minimum"]),
    ),
    "statistics by group, private": Case(in_groups, partial(by_group, public=False), SIZES[:2]),
    "statistics by group, private, in 64 parts": Case(in_groups, partial(by_group, public=False, parts=64)),
    "statistics by group, public": Case(in_groups, partial(by_group, public=True), SIZES[:2], keys=True),
    "k_means": Case(piecewise(clumps(2)), plane("k_means", 2, k=10)),
    "k_means, 8 columns": Case(piecewise(clumps(8)), plane("k_means", 8, k=10)),
    "k_median": Case(piecewise(clumps(2)), plane("k_median", 2, k=10)),
    "sample_and_aggregate": Case(piecewise(line), fits),
    "median of people": Case(piecewise(visits), ordered("median", unit="person")),
    "median of people, of whom one has most rows": Case(
        piecewise(one_person), ordered("median", unit="person")
    ),
    "triangles, random": Case(random_edges, graph("triangles"), EDGES),
    "triangles, hubs": Case(edges_of_hubs, graph("triangles"), EDGES),
    "triangles, 5,000 nodes": Case(dense_edges, graph("triangles", lambda _: 5000), EDGES),
    "mst_cost, random": Case(random_edges, graph("mst_cost"), EDGES),
    "mst_cost, many nodes": Case(edges_of_many_nodes, graph("mst_cost", lambda m: m // 4), EDGES),
    "mst_cost, 5,000 nodes": Case(dense_edges, graph("mst_cost", lambda _: 5000), EDGES),
    "mst_cost by smooth sensitivity, random": Case(random_edges, graph("mst_cost", method="smooth"), EDGES),
    "mst_cost by smooth sensitivity, 5,000 nodes": Case(
        dense_edges, graph("mst_cost", lambda _: 5000, method="smooth"), EDGES
    ),
}


def write(folder: Path, case: Case, size: int) -> Path:
    """Write rows and the job file."""
    writer: pq.ParquetWriter | None = None
    for piece in case.rows(size):
        table = pa.table(dict(piece))
        writer = writer or pq.ParquetWriter(folder / "rows.parquet", table.schema)
        writer.write_table(table, row_group_size=_ROW_GROUP)
    if writer is not None:
        writer.close()
    values = case.job(size)
    if case.keys:
        pq.write_table(pa.table({"group": group_names(size)}), folder / "keys.parquet")
        values["group_by"]["keys"] = str(folder / "keys.parquet")
    values |= {
        "input": {**values["input"], "path": str(folder / "rows.parquet")},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "output": str(folder / "out"),
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(values))
    return path


def measured(job: Path) -> Usage:
    """Run a job to its end; end with its error where it fails."""
    found = run_command([sys.executable, "-c", _SHOAL, "run", str(job)])
    if found.code:
        sys.exit(found.error)
    return found


def predicted(case: Case, sizes: Sequence[int]) -> list[Cost]:
    """Return what `shoal cost` predicts for the job of a case."""
    with tempfile.TemporaryDirectory() as place:
        job = write(Path(place), case, min(sizes))
        return predict(check_job(json.loads(job.read_text())), sizes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--sizes", type=lambda size: int(float(size)), nargs="*", help="numbers of rows")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--predict", action="store_true", help="show what `shoal cost` predicts, too")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    headers = ["case", "rows", "CPU s", "s", "MB", *(["predicted CPU s", "MB"] if options.predict else [])]
    table = Table(*headers, title="Runs as their rows grow")
    largest = 0.0
    for name, case in CASES.items():
        if options.only not in name:
            continue
        sizes = options.sizes or case.sizes
        expected = predicted(case, sizes) if options.predict else [None] * len(sizes)
        for size, cost in zip(sizes, expected, strict=True):
            with tempfile.TemporaryDirectory() as place:
                found = measured(write(Path(place), case, size))
            megabytes = found.memory / 2**20
            largest = max(largest, megabytes)
            figures = [f"{found.processor:.1f}", f"{found.seconds:.1f}", f"{megabytes:.0f}"]
            if cost is not None:
                figures += [f"{cost.processor:.1f}", f"{cost.memory / 2**20:.0f}"]
            table.add_row(name, f"{size:,}", *figures)
            print(name, f"{size:,}", *figures, flush=True)
    Console(width=120).print(table)
    if options.check and largest > MOST_MEGABYTES:
        sys.exit(f"A run takes {largest:.0f} MB, more than {MOST_MEGABYTES:.0f}.")


if __name__ == "__main__":
    main()
