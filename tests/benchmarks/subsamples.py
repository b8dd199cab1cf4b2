"""Measure sample and aggregate: error of slopes by aggregator and blocks, and what isolation costs.

Errors are of the released slopes of flights (arrival delay on departure delay and distance, unit the plane)
against the slopes of all rows, at epsilon 1; the noise is the real one. Rows whose data is not there are
skipped. Overhead is that of a whole pipeline, whose fits run in processes forked one by one, over reading,
splitting and fitting the same blocks in a plain loop in one process, in seconds of the processor of all
processes. It is a time per block, which a fit of a fraction of a second makes up for, and one of a few
milliseconds does not. A machine's speed may differ by more within minutes, so `--repetitions` takes plain
loop and pipelines in turn, and the figures are means. What two workers gain is in elapsed seconds.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import gc
import logging
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.options.pipeline_options import PipelineOptions
from rich.console import Console
from rich.table import Table

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.rounds import run_in_memory
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.task import SAMPLE_AND_AGGREGATE
from core.secure_noise import SecureNoise, secret_salt
from shoal.analyses.regression import linear
from transforms.embedded_runner import EmbeddedRunner
from transforms.evaluate_subsamples import AnswerReader, EvaluateSubsamples, evaluate_in_memory
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, list_row_groups
from transforms.run_function import Function
from transforms.run_rounds import RunRounds
from transforms.split_units import Shard, Splitting, gather, split_rows

ADD = Neighbors("add_or_remove_one")
BUDGET = Budget(1.0, 1e-6)
SLOPES = Grid((-2.0, -0.02), (2.0, 0.02), 1e-5)
FLIGHTS = ("dep_delay", "distance", "arr_delay")
FITS = {
    "shoal.analyses.regression:linear": 4,
    "shoal.analyses.regression:logistic": 4,
    "shoal.analyses.clusters:k_means": 10,
    "shoal.analyses.clusters:gaussian_mixture": 18,
    "tests.benchmarks.forest:importances": 4,
}
"""What is fitted to five columns, and the length of its answer."""

AGGREGATORS = ("auto", "median", "smooth_median", "center_of_attention", "one_cluster", "average")


def measure_slopes(folder: Path, trials: int, table: Table) -> None:
    """Release the slopes of flights by every aggregator."""
    path = folder / "flights_nyc13.parquet"
    if not path.exists():
        return
    truth = linear(pq.read_table(path, columns=list(FLIGHTS)))
    source = open_source(str(path), FLIGHTS, "tailnum")
    for blocks in (100, 300, 1000):
        splitting = Splitting(source.columns, source.unit, blocks, secret_salt())
        answers = list(
            evaluate_in_memory(source, splitting, Function("shoal.analyses.regression:linear", SLOPES))
        )
        spread = np.abs(SLOPES.restore(np.concatenate([a.points for a in answers])) - truth)
        for name in AGGREGATORS:
            params = SampleAndAggregate(blocks, name)
            plan = SAMPLE_AND_AGGREGATE.plan(SLOPES, params, BUDGET, ADD, secret_salt())
            errors = []
            for _ in range(trials):
                found = run_in_memory(plan.rounds, answers, plan.start, SecureNoise())
                value = SLOPES.restore(found.value) if isinstance(found, Stable) else np.full(2, np.inf)
                errors.append(np.abs(value - truth))
            shown = [f"{x:.3g}" for x in (*np.median(errors, axis=0), *np.median(spread, axis=0))]
            label = f"{name} ({plan.method})" if name == "auto" else name
            row(table, str(blocks), label, f"{truth[0]:.3f}, {truth[1]:.5f}", *shown)


def write_clusters(folder: Path, rows: int) -> Source:
    """Write rows of two overlapping clusters in four columns, with a linear and noisy fifth."""
    folder.mkdir()
    with pq.ParquetWriter(
        folder / "rows.parquet", pa.schema([(name, pa.float64()) for name in "abcde"])
    ) as file:
        for part in range(0, rows, 1 << 20):
            rng = np.random.default_rng(part)
            n = min(1 << 20, rows - part)
            x = rng.normal(size=(4, n)) + 2.5 * rng.integers(0, 2, n)
            columns = [*x, x.sum(axis=0) + 3 * rng.normal(size=n) - 5]
            file.write_table(pa.table(dict(zip("abcde", columns, strict=True))), row_group_size=1 << 20)
    return open_source(str(folder), list("abcde"))


def run_plain(source: Source, splitting: Splitting, function: Function) -> None:
    """Read, split and fit in a plain loop."""
    module, name = function.place.split(":")
    fit = partial(getattr(import_module(module), name), **function.arguments)
    gathered: dict[int, list[Shard]] = {}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for part, shard in split_rows(splitting, descriptor):
                gathered.setdefault(part, []).append(shard)
    for part, shards in gathered.items():
        for _, rows in gather(splitting, part, shards):
            fit(pa.ipc.open_stream(rows).read_all())


def run_beam(source: Source, splitting: Splitting, function: Function, workers: int) -> None:
    """Release in one pipeline on the embedded runner."""
    params = SampleAndAggregate(splitting.subsamples, "average")
    plan = SAMPLE_AND_AGGREGATE.plan(function.grid, params, BUDGET, ADD, splitting.salt)
    options = PipelineOptions([], direct_num_workers=workers, direct_running_mode="multi_threading")
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        answers = pipeline | ReadBlocks(source) | EvaluateSubsamples(splitting, function)
        _ = answers | RunRounds(plan.rounds, plan.start, SecureNoise(), AnswerReader(function.grid.dimension))


def seconds(run: Callable[[], None]) -> tuple[float, float]:
    """Return seconds of a run: of the processor, with all processes that it started, and elapsed."""
    start, before = time.perf_counter(), processor()
    run()
    elapsed = time.perf_counter() - start
    gc.collect()  # ends the processes of functions, which count only then
    return processor() - before, elapsed


def processor() -> float:
    """Return the seconds of the processor of this process and of all that ended below it."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure_overhead(rows: int, blocks: int, names: list[str], repetitions: int, table: Table) -> None:
    """Time the plain loop against one worker and two, by means of repetitions that are taken in turn."""
    with tempfile.TemporaryDirectory() as folder:
        source = write_clusters(Path(folder) / "rows", rows)
        splitting = Splitting(source.columns, None, blocks, secret_salt())
        for name in names:
            d = FITS.get(name, 4)
            function = Function(name, Grid((-20.0,) * d, (20.0,) * d, 1e-3))
            ways = [
                partial(run_plain, source, splitting, function),
                partial(run_beam, source, splitting, function, 1),
                partial(run_beam, source, splitting, function, 2),
            ]
            turns = np.array([[seconds(way) for way in ways] for _ in range(repetitions)])
            (plain, _), (one, elapsed), (two, sooner) = turns.mean(axis=0)
            figures = (f"{x:.1f}" for x in (plain, one, two))
            row(
                table,
                f"{blocks} x {rows // blocks:,}",
                name,
                *figures,
                f"{one / plain:.2f}",
                f"{elapsed / sooner:.2f}",
                f"{1e3 * (one - plain) / blocks:.0f}",
            )


def row(table: Table, *cells: str) -> None:
    """Add a row, and print it at once."""
    table.add_row(*cells)
    print(*cells, sep=" | ", flush=True)


def table_of(title: str, *headers: str) -> Table:
    """Return an empty table."""
    table = Table(title=title)
    for header in headers:
        table.add_column(header)
    return table


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--blocks", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=1, help="runs of each fit, in turn")
    parser.add_argument(
        "--fits",
        nargs="*",
        default=list(FITS),
        help="module:callable of each",
    )
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    pa.set_cpu_count(1)
    slopes = table_of(
        "Slopes of arr_delay on dep_delay and distance, unit tailnum, epsilon 1, delta 1e-6: median of "
        f"{args.trials}",
        *("blocks", "aggregator", "true slopes", "error", "error", "spread of a block", "spread of a block"),
    )
    overhead = table_of(
        f"{args.rows:,} rows, five columns: processor seconds",
        "blocks",
        "fit",
        "plain",
        "one",
        "two",
        "one / plain",
        "two are faster by",
        "ms a block",
    )
    measure_slopes(Path(args.data), args.trials, slopes)
    measure_overhead(args.rows, args.blocks, args.fits, args.repetitions, overhead)
    for table in (slopes, overhead):
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
