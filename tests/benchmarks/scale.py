"""Measure how runs grow with their rows: seconds of the processor, and peak memory of all processes.

Each case is `shoal run` by the embedded runner, on made-up rows in one Parquet file, in a process of its own.
The memory is that of this process and all its children together, each shared page counted once (PSS), read
from the system every 50 ms. `--check` fails where a run takes more than a gigabyte. To add a task, add a
`Case`. Run by `make bench-scale`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

SIZES = (100_000, 1_000_000, 10_000_000)
MOST_MEGABYTES = 1000.0
_ROW_GROUP = 1 << 20
_SHOAL = "from pipelines.cli import main; main()"

Rows = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A task on rows of one kind.

    Args:
        rows: makes so many rows, by column.
        job: fields of the job beside input and output, for these rows.
        sizes: numbers of rows.
    """

    rows: Callable[[int], Rows]
    job: Callable[[Rows], dict[str, Any]]
    sizes: tuple[int, ...] = field(default=SIZES)


def random_edges(m: int) -> Rows:
    """Make m edges between m / 10 nodes, all pairs alike."""
    u, v = np.random.default_rng(0).integers(0, max(100, m // 10), (2, m))
    return weighted(u, v)


def edges_of_hubs(m: int) -> Rows:
    """Make m edges between m / 10 nodes, where node number i has a share of i^-0.7 of the ends."""
    likely = np.cumsum(np.arange(1.0, max(100, m // 10) + 1) ** -0.7)
    u, v = np.searchsorted(likely / likely[-1], np.random.default_rng(0).random((2, m)))
    return weighted(u, v)


def dense_edges(m: int) -> Rows:
    """Make m of the edges between 5,000 nodes."""
    u, v = np.triu_indices(5000, 1)
    some = np.random.default_rng(0).permutation(len(u))[:m]
    return weighted(u[some], v[some])


def weighted(u: NDArray[np.int64], v: NDArray[np.int64]) -> Rows:
    """Give edges random weights."""
    return {"u": u, "v": v, "weight": np.random.default_rng(1).integers(0, 1001, len(u))}


def graph(task: str, **params: Any) -> Callable[[Rows], dict[str, Any]]:
    """Return what makes the job of a task on a graph."""

    def job(rows: Rows) -> dict[str, Any]:
        last, upper = int(max(rows["u"].max(), rows["v"].max())), [1000] if task == "mst_cost" else []
        axes = 2 + len(upper)
        domain = {"lower": [0] * axes, "upper": [last, last, *upper], "step": 1}
        return {"task": task, "domain": domain, "params": params}

    return job


CASES = {
    "triangles, random": Case(random_edges, graph("triangles")),
    "triangles, hubs": Case(edges_of_hubs, graph("triangles")),
    "triangles, 5,000 nodes": Case(dense_edges, graph("triangles")),
    "mst_cost, random": Case(random_edges, graph("mst_cost")),
    "mst_cost, 5,000 nodes": Case(dense_edges, graph("mst_cost")),
    "mst_cost by smooth sensitivity, random": Case(random_edges, graph("mst_cost", method="smooth")),
    "mst_cost by smooth sensitivity, 5,000 nodes": Case(dense_edges, graph("mst_cost", method="smooth")),
}


@dataclass(frozen=True)
class Measured:
    """What a run took: seconds of the processor, seconds, and peak megabytes of all processes."""

    processor: float
    seconds: float
    megabytes: float


def write(folder: Path, case: Case, size: int) -> Path:
    """Write rows and the job file."""
    rows = case.rows(size)
    values = case.job(rows)
    columns = [*rows][: len(values["domain"]["lower"])]
    pq.write_table(pa.table(dict(rows)), folder / "rows.parquet", row_group_size=_ROW_GROUP)
    values |= {
        "input": {"path": str(folder / "rows.parquet"), "columns": columns},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "output": str(folder / "out"),
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(values))
    return path


def measured(job: Path) -> Measured:
    """Run a job to its end.

    Raises:
        subprocess.CalledProcessError: it ends with an error.
    """
    command, peak = [sys.executable, "-c", _SHOAL, "run", str(job)], 0
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while True:
            peak = max(peak, sum(memory(each) for each in descendants(process.pid)))
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            time.sleep(0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measured(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, peak / 2**20)


def descendants(process: int) -> list[int]:
    """Return a process, its children, and theirs."""
    found = [process]
    for each in found:
        try:
            for thread in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
        except OSError:  # it has ended
            continue
    return found


def memory(process: int) -> int:
    """Return the memory of a process in bytes, of shared pages its part; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--sizes", type=lambda size: int(float(size)), nargs="*", help="numbers of rows")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    table = Table("case", "rows", "CPU s", "s", "MB", title="Runs as their rows grow")
    largest = 0.0
    for name, case in CASES.items():
        for size in (options.sizes or case.sizes) if options.only in name else ():
            with tempfile.TemporaryDirectory() as place:
                found = measured(write(Path(place), case, size))
            largest = max(largest, found.megabytes)
            figures = f"{found.processor:.1f}", f"{found.seconds:.1f}", f"{found.megabytes:.0f}"
            table.add_row(name, f"{size:,}", *figures)
            print(name, f"{size:,}", *figures, flush=True)
    Console(width=120).print(table)
    if options.check and largest > MOST_MEGABYTES:
        sys.exit(f"A run takes {largest:.0f} MB, more than {MOST_MEGABYTES:.0f}.")


if __name__ == "__main__":
    main()
