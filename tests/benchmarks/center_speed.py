"""Measure k-means on ten million rows of Parquet: Shoal's run against scikit-learn's MiniBatchKMeans.

Both read the same file and use one thread; reading is part of both. Each repetition starts both anew, each in
a process of its own, back to back; a process is timed after its imports. Shoal's is a whole run: `run_job`
from the job to the report, by Beam's embedded runner. With its defaults scikit-learn stops after seconds or
after minutes, by its seed: it has the seed that was the fastest of those tried. Run by `make bench-centers`.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import logging
import multiprocessing
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.cluster import MiniBatchKMeans

from core.centers.solver import squared_distances
from pipelines.job.job import check_job
from pipelines.run.run import run_job

K = 10
MOST_TIMES, MOST_MEGABYTES = 2.0, 1000.0
SEED = 0
_ROWS_A_PART = 1 << 16

Floats = NDArray[np.float64]
Run = Callable[[Path], Floats]


def write_table(path: Path, rows: int, row_groups: int) -> None:
    """Write `rows` rows of two float64 columns about ten centers in the unit square."""
    rng = np.random.default_rng(0)
    size = -(-rows // row_groups)
    middles = rng.uniform(0.1, 0.9, (K, 2))
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, size):
            n = min(size, rows - start)
            xy = middles[rng.integers(K, size=n)] + rng.normal(0, 0.03, (n, 2))
            writer.write_table(pa.table({"x": xy[:, 0], "y": xy[:, 1]}), row_group_size=size)


def job(path: Path) -> dict[str, Any]:
    """Return the job of the run."""
    return {
        "task": "k_means",
        "input": {"path": str(path), "columns": ["x", "y"]},
        "domain": {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-14},
        "privacy": {"epsilon": 1.0, "delta": 1e-9},
        "params": {"k": K, "method": "coreset"},
        "output": str(path.parent / "release"),
    }


def run_shoal(path: Path) -> Floats:
    """Run the job; return its centers."""
    options = ["--direct_num_workers=1", "--direct_running_mode=in_memory"]
    release = run_job(check_job(job(path)), beam_options=options)
    shutil.rmtree(path.parent / "release")
    return np.array(release["result"]["centers"])


def run_mini_batches(path: Path) -> Floats:
    """Read the file and fit scikit-learn's k-means of mini-batches with its defaults; return its centers."""
    table = pq.read_table(path, columns=["x", "y"], use_threads=False)
    points = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    return np.asarray(MiniBatchKMeans(K, random_state=SEED).fit(points).cluster_centers_)


def cost(path: Path, centers: Floats) -> float:
    """Mean squared distance to the nearest center."""
    total, rows = 0.0, 0
    for batch in pq.ParquetFile(path).iter_batches(_ROWS_A_PART, use_threads=False):
        points = np.stack([batch["x"].to_numpy(), batch["y"].to_numpy()], axis=1)
        total += float(squared_distances(points, centers).min(axis=1).sum())
        rows += len(points)
    return total / rows


@dataclass(frozen=True)
class Measured:
    """A run: seconds, those of the processor, peak resident megabytes, and its centers."""

    seconds: float
    processor: float
    megabytes: float
    centers: Floats


def _measured(run: Run, path: Path) -> Measured:
    logging.disable()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    start, busy = time.perf_counter(), time.process_time()
    centers = run(path)
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    # Not ru_maxrss, which a new process takes over from the one that starts it.
    status = Path("/proc/self/status").read_text()
    return Measured(seconds, processor, int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024, centers)


def measure(run: Run, path: Path) -> Measured:
    """Measure a run in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (run, path))


def main() -> None:
    """Measure and print the table; exit code 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--row-groups", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_table(path, args.rows, args.row_groups)
        pairs = [(measure(run_shoal, path), measure(run_mini_batches, path)) for _ in range(args.repetitions)]
        costs = [[cost(path, run.centers) for run in pair] for pair in pairs]
    ours, theirs = zip(*pairs, strict=True)
    times = median(mine.seconds / other.seconds for mine, other in pairs)
    megabytes = max(run.megabytes for run in ours)
    report = Table(title=f"k-means, k = {K}, {args.rows:,} rows x 2 of Parquet, one thread, medians")
    for heading in ("", "seconds", "of the processor", "peak memory", "mean squared distance"):
        report.add_column(heading, justify="right" if heading else "left")
    for name, runs, column in (("shoal run, embedded", ours, 0), ("MiniBatchKMeans", theirs, 1)):
        report.add_row(
            name,
            f"{median(run.seconds for run in runs):.2f}",
            f"{median(run.processor for run in runs):.2f}",
            f"{max(run.megabytes for run in runs):.0f} MB",
            f"{median(each[column] for each in costs):.6f}",
        )
    console = Console(width=110)
    console.print(report)
    kept = times <= MOST_TIMES and megabytes < MOST_MEGABYTES
    console.print(
        f"{times:.2f} times as long (at most {MOST_TIMES:g}), {megabytes:.0f} MB (below "
        f"{MOST_MEGABYTES:.0f}): {'kept' if kept else 'MISSED'}"
    )
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
