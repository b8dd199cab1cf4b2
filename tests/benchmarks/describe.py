"""How well `shoal describe` does: errors of ranks of all numeric columns of real files, at one budget each.

The noise is that of a run, and so are the points; Beam and files are left out. The error of a quantile is by
how much its rank is off, as a share of the column's rows that are no nulls. `open` is the share of quantiles
that are shown as ≤, ≥ or ?, and `held` that of the columns whose intervals hold all true quantiles, which is
promised for 90%.

Run by `make bench-ordered`; SHOAL_DATA names the folder of the datasets. Without it, nothing is measured.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise
from pipelines.describe.columns import Described, describe
from pipelines.job.job import check_raw
from pipelines.joint_plan import make_joint_plan

DATASETS = (
    "adult",
    "flights_nyc13",
    "geo_airports",
    "letter",
    "skin",
    "outlier_shuttle",
    "outlier_thyroid",
    "outlier_pima",
)
"""Files: from 245,057 rows down to 768."""


def measured(column: Described, answer: Mapping[str, Any], values: NDArray[Any]) -> tuple[float, float, bool]:
    """Return the mean rank error of a column, the share of its open intervals, and whether all of them hold.

    Args:
        column: the column.
        answer: the domain and the result of its question.
        values: of the column, ascending.
    """
    low, high = answer["domain"]["lower"][0], answer["domain"]["upper"][0]
    found, errors, opened, held = answer["result"], [], 0, True
    for p, *shown in zip(*(found[key] for key in ("probabilities", "values", "lows", "highs")), strict=True):
        value, first, last = (each / column.parts for each in shown)
        half = 0.5 / column.parts  # values are rounded to parts
        below, upto = np.searchsorted(values, [value - half, value + half])
        errors.append(max(0, below - p * len(values), p * len(values) - upto) / len(values))
        true = values[min(len(values) - 1, int(p * len(values)))]
        opened += shown[1] != shown[2] and (shown[1] == low or shown[2] == high)
        held &= bool(first - half <= true <= last + half)
    return float(np.mean(errors)), opened / len(errors), held


class File:
    """A file whose description is planned once, and drawn several times in this process, with real noise."""

    def __init__(self, path: str) -> None:
        self.described, self.rows = describe(path, 1.0, 1e-9), pq.read_metadata(path).num_rows
        self.job = check_raw(dict(self.described.job))
        salts = {name: bytes([place]) * 16 for place, name in enumerate(self.job.jobs)}
        self.plan = make_joint_plan(self.job, salts)
        asked = [(each, self.job.jobs[each.question]) for each in self.described.columns]
        self.columns = [(each, job) for each, job in asked if job.task == "quantiles"]
        table = pq.read_table(path)
        self.values = [np.sort(_finite(table[each.name])) for each, _ in self.columns]

    def drawn(self) -> list[tuple[float, float, bool]]:
        """Draw what a run would release, and return what `measured` says of each column."""
        found = []
        for (column, job), values in zip(self.columns, self.values, strict=True):
            parts = np.rint(np.clip(values, -(2e12), 2e12) * column.parts).astype(np.int64)
            points = job.grid.quantize(parts[:, None])
            block, plan = (
                Block(points, np.arange(len(points), dtype=np.uint64)),
                self.plan.plans[column.question],
            )
            result = run_in_memory(plan.rounds, [block], plan.start, SecureNoise()).result(job.grid)
            ends = {"lower": job.grid.lower, "upper": job.grid.upper}
            found.append(measured(column, {"domain": ends, "result": asdict(result)}, values))
        return found


def _finite(column: Any) -> NDArray[Any]:
    values = column.drop_null().to_numpy()
    return np.asarray(values[np.isfinite(values)])


def main() -> None:
    """Print a line for each dataset."""
    folder = os.environ.get("SHOAL_DATA")
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    if folder is None:
        print("describe: skipped, set SHOAL_DATA to the folder of the datasets")
        return
    print("| dataset | rows | columns | mean rank error | worst column | worst run | open | held |")
    for name in DATASETS:
        file = File(str(Path(folder) / f"{name}.parquet"))
        each = np.array([file.drawn() for _ in range(runs)], dtype=float)
        mean, opened, held = each.mean(axis=(0, 1))
        column, run = each[:, :, 0].mean(axis=0).max(), each[:, :, 0].mean(axis=1).max()
        print(
            f"| {name} | {file.rows:,} | {each.shape[1]} | {mean:.2%} | {column:.2%} | {run:.2%} | "
            f"{opened:.0%} | {held:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
