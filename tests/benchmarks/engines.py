"""Time the same 1-cluster job on the embedded runner, and on Flink with one TaskManager and with two.

Everything is on this machine, so a second TaskManager helps only where cores are left for it. Each engine
runs the job once to warm up, and then is timed, all in a process of its own as `shoal run` would be. A second
table shows what rounds cost on Flink whatever their rows, beside the smallest job that Beam can run in Python
on the same cluster. Run by `make bench-engines`, after `make engines`.
"""

import argparse
import json
import os
import subprocess
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
from tests.engines.services import PYTHON_WORKER

ROUNDS = (0, 1, 5)
"""Numbers of rounds of the small jobs; none is the smallest job of Beam."""

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


def seconds_of_rounds(rows: Path, options: Sequence[str], repetitions: int) -> dict[int, list[float]]:
    """Return the times of small jobs by their numbers of rounds, after one that is not counted."""
    main = "from tests.engines.small_job import main; main()"
    times: dict[int, list[float]] = {rounds: [] for rounds in ROUNDS}
    for number in range(repetitions + 1):
        for rounds in ROUNDS:  # in turn, so that a busy spell is shared
            start = time.perf_counter()
            command = [sys.executable, "-c", main, str(rows), str(rounds), *options]
            subprocess.run(command, check=True, capture_output=True, env=os.environ | PYTHON_WORKER)
            if number:
                times[rounds].append(time.perf_counter() - start)
    return times


def measure(
    jobs: Sequence[ClusterJob], folder: Path, repetitions: int
) -> tuple[dict[str, list[float]], dict[int, list[float]]]:
    """Return the seconds of every job on every engine, and those of small jobs on one TaskManager."""
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
        small = seconds_of_rounds(Path(jobs[-1].source.files[0].path), options, repetitions)
        rows["Flink, one TaskManager"] = each(options)
        cluster.resize(2)
        rows["Flink, two TaskManagers"] = each(options)
    return rows, small


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
            rows, small = measure(jobs, folder, args.repetitions)
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
    rounds = Table(title="Small jobs on Flink, one TaskManager, in turn")
    for heading in ("job", "seconds", "least", "over the empty job", "least"):
        rounds.add_column(heading, justify="left" if heading == "job" else "right")
    for number, times in small.items():
        name = f"{number} rounds" if number else "empty Beam job"
        ratios = [one / empty for one, empty in zip(times, small[0], strict=True)]
        cells = (f"{median(times):.1f}", f"{min(times):.1f}", f"{median(ratios):.2f}", f"{min(ratios):.2f}")
        rounds.add_row(name, *cells)
    Console().print(rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
