"""Measure what a command costs before it reads a row: processor time of the whole process, median of several.

Beside the commands stand the imports that they cannot do without: Beam for a run, dp-accounting where draws
are composed. The last row is what one round more costs a run, whatever its rows. Run by `make bench-start`.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

ROWS = 1000
SHOAL = ("-c", "from pipelines.cli import main; main()")

DENSE = {"task": "histogram", "params": {"cells": [8, 8], "method": "dense"}, "delta": 0}
ONE_QUANTILE = {"task": "quantiles", "columns": ["x"], "params": {"probabilities": [0.5]}, "delta": 0}
NINE_QUANTILES = {
    "task": "quantiles",
    "columns": ["x"],
    "params": {"probabilities": [i / 10 for i in range(1, 10)]},
}
CLUSTER = {"task": "one_cluster", "params": {"target": 400}}

FEW, MANY = 2, 12
"""Rounds of two small jobs whose difference is what rounds cost."""

ROUNDS = ("-c", "from tests.engines.small_job import main; main()")
EMBEDDED = ("--runner=FnApiRunner", "--direct_running_mode=multi_threading", "--direct_num_workers=2")

ACCOUNTING = "import dp_accounting.pld.pld_privacy_accountant, dp_accounting.rdp.rdp_privacy_accountant"


def job(
    folder: Path, task: str, params: dict, columns: Sequence[str] = ("x", "y"), delta: float = 1e-6
) -> str:
    """Write a job file on the rows in `folder`; return its path. JSON is YAML."""
    axes = len(columns)
    values = {
        "task": task,
        "input": {"path": str(folder / "rows.parquet"), "columns": list(columns)},
        "domain": {"lower": [0] * axes, "upper": [1] * axes, "step": 2.0**-10},
        "privacy": {"epsilon": 1.0, "delta": delta},
        "params": params,
        "output": str(folder / "out"),
    }
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    path.write_text(json.dumps(values))
    return str(path)


def processor_seconds(arguments: Sequence[str]) -> float:
    """Return the user and system time of one process of Python and its children, which must end well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    repetitions = parser.parse_args().repetitions
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = np.random.default_rng(0).random((ROWS, 2))
        pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1]}), folder / "rows.parquet")
        dense = job(folder, **DENSE)
        commands = {
            "import numpy": ("-c", "import numpy"),
            "import dp_accounting": ("-c", ACCOUNTING),
            "import apache_beam": ("-c", "import apache_beam"),
            "shoal --help": (*SHOAL, "--help"),
            "shoal plan, histogram, dense": (*SHOAL, "plan", dense),
            "shoal plan, one quantile": (*SHOAL, "plan", job(folder, **ONE_QUANTILE)),
            "shoal plan, nine quantiles": (*SHOAL, "plan", job(folder, **NINE_QUANTILES)),
            "shoal plan, one cluster": (*SHOAL, "plan", job(folder, **CLUSTER)),
            "shoal run, histogram, dense": (*SHOAL, "run", dense, "--set"),
        }
        counts = (FEW, MANY)
        of_rounds = {n: (*ROUNDS, str(folder / "rows.parquet"), str(n), *EMBEDDED) for n in counts}
        commands |= {f"a run of {n} empty rounds": of_rounds[n] for n in counts}
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for repetition in range(repetitions):
            for name, command in commands.items():  # in turn, so that a busy spell is shared
                fresh = [f"output={folder}/out-{repetition}"] if command[-1] == "--set" else []
                spent[name].append(processor_seconds([*command, *fresh]))
    table = Table(title=f"Processor seconds, median of {repetitions}; the run has {ROWS:,} rows")
    for header in ("process", "seconds", "least"):
        table.add_column(header, justify="left" if header == "process" else "right")
    few, many = (spent[f"a run of {n} empty rounds"] for n in counts)
    spent["a round"] = [(more - less) / (MANY - FEW) for less, more in zip(few, many, strict=True)]
    for name, times in spent.items():
        table.add_row(name, f"{median(times):.2f}", f"{min(times):.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
