"""Measure how runs grow with their rows: seconds of the processor, and peak memory of all processes.

Each case is `shoal run` by the embedded runner, on made-up rows in one Parquet file, in a process of its own.
The memory is that of this process and all its children together, each shared page counted once (PSS), read
from the system every 50 ms. From the last size but one to the last one the table also has the slope, the
difference of the logarithms of processor seconds over that of rows, and how much more memory is taken.
`--repeat` runs each size so many times and takes the means. `--check` fails where a run takes more than a
gigabyte, a slope is above 1.05, or memory grows by a tenth where it should not. `--predict` also shows what
`shoal cost` predicts for each size, from two runs on rows that it makes up itself. To add a task, add a
`Case`. Run by `make bench-scale`.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from pipelines.job.job import check_job
from pipelines.run.cost import Cost, predict
from pipelines.run.usage import Usage, run_command
from tests.benchmarks.scale_rows import (
    ROW_GROUP,
    WIDE,
    Rows,
    classes,
    clumps,
    dense_edges,
    distinct,
    edges_of_hubs,
    edges_of_many_nodes,
    group_names,
    in_groups,
    line,
    nodes,
    one_person,
    piecewise,
    random_edges,
    visits,
)

SIZES = (1_000_000, 10_000_000, 100_000_000)
EDGES = (100_000, 1_000_000, 10_000_000)
MOST_MEGABYTES = 1000.0
MOST_SLOPE = 1.05
MOST_GROWTH = 0.1
_SHOAL = "from pipelines.cli import main; main()"


@dataclass(frozen=True)
class Case:
    """A task on rows of one kind.

    Args:
        rows: makes so many rows, by column, in pieces.
        job: fields of the job beside output, for so many of these rows; of the input all but the path.
        sizes: numbers of rows.
        keys: whether keys.parquet has the public keys of so many rows.
        grows: whether memory may grow, as all groups of an answer are held at once.
    """

    rows: Callable[[int], Iterator[Rows]]
    job: Callable[[int], dict[str, Any]]
    sizes: tuple[int, ...] = field(default=SIZES)
    keys: bool = False
    grows: bool = False


def by_group(n: int, public: bool, **params: Any) -> dict[str, Any]:
    """Return the job of counts and means of such groups."""
    return {
        "task": "statistics",
        "input": {"columns": ["x"]},
        "domain": {"lower": [0], "upper": [10_000], "step": 1},
        "params": {"measures": ["count", "mean"], **params},
        "group_by": {"columns": ["group"], "keys": "keys.parquet" if public else "private"},
    }


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
    upper = [WIDE - 1, 1][: len(columns)]
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


def questions(n: int) -> dict[str, Any]:
    """Return the job of eight questions for quantiles."""
    one = ordered("quantiles", probabilities=[0.1, 0.5, 0.9])(n)
    asked = {**one, "columns": one["input"]["columns"]}
    del asked["input"]
    return {"input": {}, "questions": {f"question-{i}": asked for i in range(8)}}


def bounds(_: int) -> dict[str, Any]:
    """Return the job of the bounds of a column, which needs no domain."""
    return {"task": "bounds", "input": {"columns": ["x"]}}


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
POINTS = piecewise(clumps(2))
CASES = {
    "one_cluster": Case(POINTS, plane("one_cluster", 2, target=0.03)),
    "one_cluster, small target": Case(POINTS, plane("one_cluster", 2, target=1000)),
    "one_cluster, small target, 1 column": Case(DISTINCT, ordered("one_cluster", step=1 << 10, target=1000)),
    "k_cover": Case(POINTS, plane("k_cover", 2, target=0.02, k=3)),
    "histogram, dense": Case(POINTS, plane("histogram", 2, cells=100)),
    "histogram, distinct values": Case(
        DISTINCT, ordered("histogram", cells=WIDE, method="sparse", parts=256)
    ),
    "bounds": Case(DISTINCT, bounds),
    "cdf": Case(DISTINCT, ordered("cdf", step=1 << 20)),
    "ranges": Case(POINTS, plane("ranges", 2)),
    "quantiles": Case(DISTINCT, ordered("quantiles", probabilities=[i / 10 for i in range(1, 10)])),
    "quantiles, 99": Case(DISTINCT, ordered("quantiles", probabilities=[i / 100 for i in range(1, 100)])),
    "quantiles of a thousand groups": Case(piecewise(classes), quantiles_by_group),
    "median": Case(DISTINCT, ordered("median")),
    "median, 2 columns": Case(POINTS, plane("median", 2)),
    "minimum": Case(DISTINCT, ordered("minimum")),
    "interior_point": Case(DISTINCT, ordered("interior_point")),
    "threshold": Case(DISTINCT, ordered("threshold", ("x", "label"))),
    "statistics": Case(DISTINCT, ordered("statistics", step=1 << 10, measures=["count", "mean"])),
    "statistics with quantiles": Case(
        DISTINCT,
        ordered("statistics", step=1 << 10, measures=[{"quantiles": [0.1, 0.5]}, "minimum"]),
    ),
    "eight questions": Case(DISTINCT, questions),
    "statistics by group, private": Case(in_groups, partial(by_group, public=False), SIZES[:2], grows=True),
    "statistics by group, private, in 64 parts": Case(in_groups, partial(by_group, public=False, parts=64)),
    "statistics by group, public": Case(
        in_groups, partial(by_group, public=True), SIZES[:2], keys=True, grows=True
    ),
    "k_means": Case(POINTS, plane("k_means", 2, k=10)),
    "k_means, 8 columns": Case(piecewise(clumps(8)), plane("k_means", 8, k=10)),
    "k_median": Case(POINTS, plane("k_median", 2, k=10)),
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


def write_rows(path: Path, pieces: Iterator[Rows]) -> None:
    """Write rows as a Parquet file."""
    writer: pq.ParquetWriter | None = None
    for piece in pieces:
        table = pa.table(dict(piece))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=ROW_GROUP)
    if writer is not None:
        writer.close()


def write_job(folder: Path, case: Case, size: int, rows: Path) -> Path:
    """Write the job file, and its public keys."""
    values = case.job(size)
    if case.keys:
        pq.write_table(pa.table({"group": group_names(size)}), folder / "keys.parquet")
        values["group_by"]["keys"] = str(folder / "keys.parquet")
    values |= {
        "input": {**values["input"], "path": str(rows)},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "output": str(folder / "out"),
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(values))
    return path


def measured(case: Case, size: int, rows: Path) -> Usage:
    """Run the job of a case to its end; end with its error where it fails."""
    with tempfile.TemporaryDirectory() as place:
        job = write_job(Path(place), case, size, rows)
        found = run_command([sys.executable, "-c", _SHOAL, "run", str(job)])
    if found.code:
        sys.exit(found.error)
    return found


def predicted(case: Case, sizes: Sequence[int]) -> list[Cost]:
    """Return what `shoal cost` predicts for the job of a case."""
    with tempfile.TemporaryDirectory() as place:
        rows = Path(place) / "rows.parquet"
        write_rows(rows, case.rows(min(sizes)))
        job = write_job(Path(place), case, min(sizes), rows)
        return predict(check_job(json.loads(job.read_text())), sizes)


def measure_all(cases: Mapping[str, Case], sizes: Sequence[int], repeat: int) -> dict[tuple[str, int], Usage]:
    """Run cases, print what each run takes, and return the means; cases share files of the same rows.

    Args:
        cases: which.
        sizes: numbers of rows; none for those of each case.
        repeat: how often each is run.
    """
    found: dict[tuple[str, int], Usage] = {}
    for make in dict.fromkeys(case.rows for case in cases.values()):
        sharing = {name: case for name, case in cases.items() if case.rows is make}
        for size in sizes or sorted({size for case in sharing.values() for size in case.sizes}):
            with tempfile.TemporaryDirectory() as place:
                rows = Path(place) / "rows.parquet"
                write_rows(rows, make(size))
                for name, case in sharing.items():
                    if sizes or size in case.sizes:
                        runs = [measured(case, size, rows) for _ in range(repeat)]
                        for run in runs:
                            print(name, f"{size:,}", *figures(run), flush=True)
                        found[name, size] = averaged(runs)
    return found


def averaged(runs: Sequence[Usage]) -> Usage:
    """Return the means of what runs take."""
    first = runs[0]
    return replace(
        first,
        processor=mean(run.processor for run in runs),
        seconds=mean(run.seconds for run in runs),
        memory=int(mean(run.memory for run in runs)),
    )


def growth(run: Usage, larger: Usage, times: float) -> tuple[float, float]:
    """Return the slope of processor time to a run of so many times as many rows, and how much more memory."""
    return log(larger.processor / run.processor) / log(times), larger.memory / run.memory - 1


def figures(run: Usage) -> list[str]:
    """Return processor seconds, seconds and megabytes of a run."""
    return [f"{run.processor:.1f}", f"{run.seconds:.1f}", f"{run.memory / 2**20:.0f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--sizes", type=lambda size: int(float(size)), nargs="*", help="numbers of rows")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each size, of which means are taken")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--predict", action="store_true", help="show what `shoal cost` predicts, too")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    cases = {name: case for name, case in CASES.items() if options.only in name}
    runs = measure_all(cases, options.sizes or (), options.repeat)
    table = Table("case", "rows", "CPU s", "s", "MB", "slope", "MB more", title="Runs as their rows grow")
    if options.predict:
        table.add_column("predicted CPU s, MB")
    wrong = []
    for name, case in cases.items():
        sizes = options.sizes or case.sizes
        expected = predicted(case, sizes) if options.predict else []
        for place, size in enumerate(sizes):
            grown = ["", ""]
            if runs[name, size].memory > MOST_MEGABYTES * 2**20:
                wrong.append(f"{name} takes {figures(runs[name, size])[-1]} MB")
            if 0 < place == len(sizes) - 1:
                slope, more = growth(runs[name, sizes[place - 1]], runs[name, size], size / sizes[place - 1])
                grown = [f"{slope:.2f}", f"{more:.1%}"]
                if slope > MOST_SLOPE:
                    wrong.append(f"{name} has a slope of {slope:.2f}")
                if more >= MOST_GROWTH and not case.grows:
                    wrong.append(f"memory of {name} grows by {more:.1%}")
            costs = [f"{cost.processor:.1f}, {cost.memory / 2**20:.0f}" for cost in expected[place:][:1]]
            table.add_row(name, f"{size:,}", *figures(runs[name, size]), *grown, *costs)
    Console(width=140).print(table)
    if options.check and wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
