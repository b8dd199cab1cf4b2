"""Time the same 1-cluster job on the embedded runner, and on Flink with one TaskManager and with two.

Everything is on this machine, so a second TaskManager helps only where cores are left for it. Each engine
runs the job once to warm up, and then is timed, all in a process of its own as `shoal run` would be. A small
table shows what a job costs whatever its rows. Run by `make bench-engines`, after `make engines`.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from tests.engines.cluster_job import ClusterJob, Submission, assert_equal
from tests.engines.fetch import MissingPart
from tests.engines.flink import FLINK_OPTIONS, FlinkCluster, JobServer
from tests.engines.process_worker import write_script

EMBEDDED = ("--runner=FnApiRunner", "--direct_running_mode=multi_threading", "--direct_num_workers=2")


def seconds(job: ClusterJob, options: Sequence[str], folder: Path, repetitions: int) -> float:
    """Return the median time of a run after one that is not counted; each must give what memory gives."""
    expected = job.run_in_memory()
    times = []
    for number in range(repetitions + 1):
        start = time.perf_counter()
        for got in Submission(job, folder / f"out-{number}", options).wait():
            assert_equal(got, expected)
        times.append(time.perf_counter() - start)
    return median(times[1:])


def measure(jobs: Sequence[ClusterJob], folder: Path, repetitions: int) -> dict[str, list[float]]:
    """Return the seconds of every job on every engine."""
    made = 0

    def each(options: Sequence[str]) -> list[float]:
        nonlocal made
        times = []
        for job in jobs:
            made += 1
            (place := folder / f"run-{made}").mkdir()
            times.append(seconds(job, options, place, repetitions))
        return times

    rows = {"embedded, two threads": each(EMBEDDED)}
    with FlinkCluster(task_managers=1) as cluster, JobServer(cluster) as server:
        environment = json.dumps({"command": str(write_script(folder))})
        options = [
            "--runner=PortableRunner",
            f"--job_endpoint={server.endpoint}",
            *FLINK_OPTIONS,
            "--environment_type=PROCESS",
            f"--environment_config={environment}",
        ]
        rows["Flink, one TaskManager"] = each(options)
        cluster.resize(2)
        rows["Flink, two TaskManagers"] = each(options)
    return rows


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = [ClusterJob.make(folder / str(rows), rows) for rows in (args.rows, 10_000)]
        try:
            rows = measure(jobs, folder, args.repetitions)
        except MissingPart as error:
            print(error)
            return 1
    report = Table(title=f"1-cluster of five rounds, {args.rows:,} rows x 2, {os.cpu_count()} cores")
    for heading in ("engine", "seconds", "10,000 rows", "the rows alone", "over embedded"):
        report.add_column(heading, justify="left" if heading == "engine" else "right")
    (base, _), *_ = rows.values()
    for engine, (whole, small) in rows.items():
        cells = (f"{whole:.1f}", f"{small:.1f}", f"{whole - small:.1f}", f"{whole - base:+.1f} s")
        report.add_row(engine, *cells)
    _, (one, _), (two, _) = rows.values()
    report.add_section()
    report.add_row("two TaskManagers / one", f"{two / one:.2f}")
    Console().print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
