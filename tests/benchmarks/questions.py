"""Ten questions in one job against ten jobs at the same total: errors, reads of the input, processor time.

The rows are made up: clusters of normal points in ten pairs of columns. A question is k-means with three
centers on one pair. Ten jobs get a tenth of epsilon and of delta each, so both ways promise the same. The
error is the distance of a released center from the nearest mean of a cluster, averaged over centers. Run by
`make bench-questions`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise
from pipelines.job.job import check_job, check_several
from pipelines.joint_plan import make_joint_plan
from pipelines.plan import make_plan
from tests.benchmarks.start_up import SHOAL, processor_seconds

QUESTIONS, CLUSTERS, SPREAD = 10, 3, 0.03
EPSILON, DELTA = 1.0, 1e-6
MEANS = np.array([[0.2, 0.3], [0.7, 0.2], [0.5, 0.8]])

COUNT_READS = """
import json, sys
from collections import Counter
import transforms.read_batches as read
opened, inner = Counter(), read._read
def noted(file, row_group, *more, **others):
    opened["row groups"] += 1
    return inner(file, row_group, *more, **others)
read._read = noted
from pipelines.job.job import load_job
from pipelines.run.run import run_job
for path in sys.argv[1:]:
    run_job(load_job(path), beam_options=["--direct_running_mode=in_memory", "--direct_num_workers=1"])
print(json.dumps(opened))
"""


def points(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n rows of one pair of columns, shape (n, 2)."""
    return np.clip(MEANS[rng.integers(0, CLUSTERS, n)] + rng.normal(0, SPREAD, (n, 2)), 0, 1)


def question(number: int) -> dict[str, Any]:
    """Return a question as a job with questions has it."""
    return {
        "task": "k_means",
        "columns": [f"x{number}", f"y{number}"],
        "domain": {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-16},
        "params": {"k": CLUSTERS},
        "checks": 0.0,
    }


def one_job(folder: str) -> dict[str, Any]:
    """Return the job of all questions."""
    return {
        "input": {"path": f"{folder}/rows.parquet"},
        "privacy": {"epsilon": EPSILON, "delta": DELTA},
        "questions": {f"q{number}": question(number) for number in range(QUESTIONS)},
        "output": f"{folder}/out-{{run_id}}",
    }


def ten_jobs(folder: str) -> list[dict[str, Any]]:
    """Return a job for each question, with its part of the same budget."""
    jobs = []
    for number in range(QUESTIONS):
        asked = question(number)
        own = {
            "path": f"{folder}/rows.parquet",
            "columns": asked.pop("columns"),
            "checks": asked.pop("checks"),
        }
        privacy = {"epsilon": EPSILON / QUESTIONS, "delta": DELTA / QUESTIONS}
        jobs.append({**asked, "input": own, "privacy": privacy, "output": f"{folder}/out-{{run_id}}"})
    return jobs


def error(plan: Any, grid: Any, block: Block) -> float:
    """Return the error of one run of a plan in memory."""
    found = run_in_memory(plan.rounds, [block], plan.start, SecureNoise()).result(grid)
    centers = np.array(found.centers)
    apart = np.linalg.norm(centers[:, None] - MEANS[None], axis=2)
    return float(apart.min(axis=1).mean())


def errors(n: int, trials: int) -> tuple[list[float], list[float], float]:
    """Return the errors of runs in one job and of jobs of their own, and the factor of the joint plan."""
    several = check_several(one_job("/nowhere"))
    joint = make_joint_plan(several, {name: bytes([i]) * 16 for i, name in enumerate(several.jobs)})
    alone = check_job(ten_jobs("/nowhere")[0])
    own, rng = make_plan(alone, bytes(16)), np.random.default_rng(0)
    together, apart = [], []
    for trial in range(trials):
        block = Block(alone.grid.quantize(points(n, rng)), np.arange(n, dtype=np.uint64))
        together.append(error(joint.plans[f"q{trial % QUESTIONS}"], alone.grid, block))
        apart.append(error(own, alone.grid, block))
    return together, apart, joint.factor


def write(folder: Path, n: int, row_groups: int) -> tuple[list[str], list[str]]:
    """Write the rows and all job files; return the path of the one job, and those of the ten."""
    rng, columns = np.random.default_rng(1), {}
    for number in range(QUESTIONS):
        columns[f"x{number}"], columns[f"y{number}"] = points(n, rng).T
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=-(-n // row_groups))
    paths = []
    for number, job in enumerate([one_job(str(folder)), *ten_jobs(str(folder))]):
        paths.append(str(folder / f"{number}.yaml"))
        Path(paths[-1]).write_text(json.dumps(job))
    return paths[:1], paths[1:]


def reads(paths: Sequence[str], run: str) -> int:
    """Return how many row groups the runs of these jobs open, all passes together."""
    renamed = []
    for path in paths:
        job = json.loads(Path(path).read_text()) | {"run_id": f"{run}-{Path(path).stem}"}
        renamed.append(path.replace(".yaml", f"-{run}.yaml"))
        Path(renamed[-1]).write_text(json.dumps(job))
    command = [sys.executable, "-c", COUNT_READS, *renamed]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(json.loads(done.stdout.splitlines()[-1])["row groups"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--row-groups", type=int, default=20)
    parser.add_argument("--error-rows", type=int, default=5_000)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    together, apart, factor = errors(args.error_rows, args.trials)
    table = Table(title=f"{QUESTIONS} questions by k-means, epsilon {EPSILON:g}, delta {DELTA:g} in all")
    for header in ("", "one job", f"{QUESTIONS} jobs", "ratio"):
        table.add_column(header, justify="right" if header else "left")

    def add(what: str, one: float, ten: float, digits: str = ".4f") -> None:
        table.add_row(what, f"{one:{digits}}", f"{ten:{digits}}", f"{one / ten:.2f}")

    add(f"median error, {args.error_rows:,} rows, {args.trials} trials", median(together), median(apart))
    add("part of epsilon that a question may spend", factor * EPSILON / QUESTIONS, EPSILON / QUESTIONS)
    with tempfile.TemporaryDirectory() as place:
        one, ten = write(Path(place), args.rows, args.row_groups)
        add(f"row groups opened, of {args.row_groups}", reads(one, "read"), reads(ten, "read"), ",d")
        spent: dict[str, list[float]] = {"one": [], "ten": []}
        for number in range(args.repetitions):
            for name, paths in (("one", one), ("ten", ten)):
                runs = [
                    (*SHOAL, "run", path, "--set", f"run_id={name}-{number}-{i}")
                    for i, path in enumerate(paths)
                ]
                spent[name].append(sum(map(processor_seconds, runs)))
        add(f"processor seconds, {args.rows:,} rows", median(spent["one"]), median(spent["ten"]), ".2f")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
