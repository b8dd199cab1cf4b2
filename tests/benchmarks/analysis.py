"""Measure single values: medians, extremes, triangle counts and spanning trees, at epsilon 1.

All noise is the real one. Errors are of the released value against the exact one. Ranks of medians and
extremes are measured on made-up columns. The rest needs SHOAL_DATA set to the folder of real datasets; rows
whose file is not there are skipped.
"""

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.graphs.cuts import Cuts
from core.graphs.params import MstCost, Triangles
from core.graphs.smooth_cost import SmoothCost
from core.graphs.task import MST_COST, TRIANGLES
from core.mechanisms.admissible import Admissible
from core.mechanisms.smooth_noise import SmoothNoise
from core.neighbors import Neighbors
from core.order_statistics import Rank, order_statistic
from core.plan import Plan
from core.quantiles.exponential import ChooseByRank
from core.quantiles.found import FoundQuantiles
from core.quantiles.params import Median, Minimum, Quantiles
from core.quantiles.smooth import SmoothQuantile
from core.quantiles.task import MEDIAN, MINIMUM, QUANTILES
from core.rounds import Block, examined, run_in_memory
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.task import SAMPLE_AND_AGGREGATE
from core.secure_noise import SecureNoise, secret_salt

BUDGET = Budget(1.0, 1e-6)
ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
Steps = NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """A bounded column of a real dataset."""

    file: str
    name: str
    grid: Grid


COLUMNS = [
    Column("adult", "hours_per_week", Grid((0.0,), (100.0,), 1.0)),
    Column("flights_nyc13", "air_time", Grid((0.0,), (1000.0,), 1.0)),
    Column("geo_cities", "lat", Grid((-90.0,), (90.0,), 0.001)),
]


def read(folder: Path, file: str, columns: list[str]) -> NDArray[np.float64] | None:
    """Return the complete rows of some columns, or None where the file is not there."""
    path = folder / f"{file}.parquet"
    if not path.exists():
        return None
    table = pq.read_table(path, columns=columns).drop_null()
    return np.stack([table[name].to_numpy().astype(np.float64) for name in columns], axis=1)


def block(points: Steps) -> Block:
    """Return the points as one block."""
    return Block(points, np.arange(len(points), dtype=np.uint64))


def medians(relation: Neighbors, grid: Grid) -> Iterator[tuple[str, Plan]]:
    """Plan the median by every method."""

    def plan(**more: object) -> Plan:
        return MEDIAN.plan(grid, Median(**more), BUDGET, relation, bytes(16))

    yield "exponential mechanism", plan(method="exponential")
    for noise in ("auto", "cauchy", "student", "laplace"):
        made = plan(method="smooth", noise=noise)
        (last,) = made.rounds
        assert isinstance(last, SmoothQuantile)
        name = f"smooth, auto ({last.smooth.noise.density})" if noise == "auto" else f"smooth, {noise}"
        yield name, made
    sixth = BUDGET.epsilon / 6
    old = Admissible(what="value", density="cauchy", alpha=sixth, beta=sixth)
    yield "smooth, cauchy as published", replace(made, rounds=(replace(last, smooth=SmoothNoise(old)),))


def measure_medians(folder: Path, trials: int, table: Table) -> None:
    """Compare medians on whole columns and on samples of 500 records."""
    for column, size, relation in itertools.product(COLUMNS, (None, 500), (ADD, REPLACE)):
        values = read(folder, column.file, [column.name])
        if values is None:
            continue
        points = column.grid.quantize(values)
        if size is not None:
            points = np.random.default_rng(0).permutation(points)[:size]
        truth = order_statistic(Counts.of(points[:, 0]), column.grid.extents[0], Rank(1, 2))
        at = float(column.grid.restore(np.array([truth]))[0])
        for name, plan in medians(relation, column.grid):
            errors, seconds = run(plan, column.grid, points, at, trials)
            what = f"{column.file}.{column.name}, n = {len(points):,}"
            row(table, what, relation.name, name, at, errors, f"{seconds:.3f}")


def run(
    plan: Plan, grid: Grid, points: Steps, truth: float, trials: int
) -> tuple[NDArray[np.float64], float]:
    """Return the errors of all trials and the seconds of one; data are aggregated once."""
    (step,) = plan.rounds
    aggregate = step.summarize(block(points), None)
    start, noise = time.perf_counter(), SecureNoise()
    answers = [step.release(aggregate, None, noise) for _ in range(trials)]
    seconds = (time.perf_counter() - start) / trials
    return np.array([abs(answer.result(grid).value - truth) for answer in answers]), seconds


def rank_errors(plan: Plan, values: Steps, p: float, trials: int) -> NDArray[np.float64]:
    """Return how far p n is from the ranks of each released point."""
    (step,) = plan.rounds
    counts, noise = Counts.of(values), SecureNoise()
    found = [step.release(counts, None, noise) for _ in range(trials)]
    steps = [f.steps[0] if isinstance(f, FoundQuantiles) else f.step for f in found]
    ordered, wanted = np.sort(values), p * len(values)
    below, upto = (np.searchsorted(ordered, steps, side) for side in ("left", "right"))
    return np.maximum(0, np.maximum(below - wanted, wanted - upto))


def measure_ranks(trials: int) -> Table:
    """Compare the ranks of medians and minima with those of `quantiles` for one probability alone.

    Quantiles have no probability 0: a minimum is compared with the quantile of the rank that it aims at.
    """
    table = Table(title=f"Rank errors on 10,000 records and 10^6 values ({trials} trials)")
    for name in (
        "column",
        "epsilon",
        "value",
        "mean",
        "quantiles' mean",
        "90%",
        "promised",
        "promised / 90%",
    ):
        table.add_column(name, justify="left" if name in ("column", "value") else "right")
    rng, grid = np.random.default_rng(0), Grid((0.0,), (1e6 - 1,), 1.0)
    columns = {
        "uniform": rng.integers(0, 10**6, 10_000),
        "lognormal": np.minimum(10**6 - 1, np.exp(rng.normal(8, 2, 10_000)).astype(np.int64)),
        "many ties": np.minimum(10**6 - 1, rng.geometric(0.02, 10_000) * 100),
    }
    for (column, values), epsilon in itertools.product(columns.items(), (0.1, 1.0)):
        budget = Budget(epsilon, 0.0)
        minimum = MINIMUM.plan(grid, Minimum(), budget, ADD, bytes(16))
        (step,) = minimum.rounds
        assert isinstance(step, ChooseByRank)
        aims = {"median": (0.5, 0.5), "minimum": (0.0, step.aim.inside / len(values))}
        for value, (p, aim) in aims.items():
            plan = minimum if value == "minimum" else MEDIAN.plan(grid, Median(), budget, ADD, bytes(16))
            alone = QUANTILES.plan(grid, Quantiles((aim,), "recursive"), budget, ADD, bytes(16))
            ours, theirs = (rank_errors(each, values, p, trials) for each in (plan, alone))
            high, promised = np.percentile(ours, 90), plan.promises["rank_error"]
            ratio = f"{promised / high:.1f}" if high else "-"
            figures = (f"{ours.mean():.2f}", f"{theirs.mean():.2f}", f"{high:.1f}", str(promised), ratio)
            table.add_row(column, f"{epsilon:g}", value, *figures)
            print(column, epsilon, value, *figures, flush=True)
    return table


def row(
    table: Table,
    what: str,
    relation: str,
    name: str,
    truth: float,
    errors: NDArray[np.float64],
    more: str,
) -> None:
    """Add a row: the median and the 90th percentile of the error."""
    middle, high = np.percentile(errors, [50, 90])
    table.add_row(what, relation, name, f"{truth:,.6g}", f"{middle:,.4g}", f"{high:,.4g}", more)
    print(what, relation, name, f"{truth:.6g}", f"{middle:.4g}", f"{high:.4g}", more, flush=True)


def measure_triangles(folder: Path, trials: int, table: Table) -> None:
    """Count the triangles of graph_facebook: success is an error of at most 1%."""
    rows = read(folder, "graph_facebook", ["u", "v"])
    if rows is None:
        return
    nodes = int(rows.max()) + 1
    grid = Grid((0.0, 0.0), (nodes - 1.0, nodes - 1.0), 1.0)
    for noise in ("auto", "cauchy", "laplace"):
        plan = TRIANGLES.plan(grid, Triangles(noise=noise), BUDGET, ADD, b"")
        (step,) = plan.rounds
        aggregate = step.summarize(block(grid.quantize(rows)), None)
        start = time.perf_counter()
        wedges = examined(step, aggregate)
        seconds = time.perf_counter() - start
        smooth, source = step.sensitivity(wedges), SecureNoise()
        values = [step.smooth.value(wedges.triangles, smooth, 0, 2**62, source) for _ in range(trials)]
        errors = np.abs(np.array(values, dtype=np.float64) - wedges.triangles)
        good = int((errors <= 0.01 * wedges.triangles).sum())
        name = f"{step.smooth.noise.density}, S = {smooth:g}"
        more = f"{seconds:.2f}, within 1%: {good}/{trials}"
        row(table, "graph_facebook triangles", ADD.name, name, wedges.triangles, errors, more)


def measure_trees(folder: Path, trials: int, table: Table) -> None:
    """Release spanning costs with private weights and with private edges, beside the global sensitivity."""
    for file, low, high in (("graph_les_mis", 0.0, 31.0), ("graph_bitcoin_otc", -10.0, 10.0)):
        rows = read(folder, file, ["u", "v", "weight"])
        if rows is None:
            continue
        nodes = rows[:, :2].max() + 1
        grid = Grid((0.0, 0.0, low), (nodes - 1, nodes - 1, high), 1.0)
        for change, relation in (("weight", REPLACE), ("edge", ADD)):
            plan = MST_COST.plan(grid, MstCost(change=change, method="smooth"), BUDGET, relation, b"")
            (step,) = plan.rounds
            assert isinstance(step, SmoothCost)
            start = time.perf_counter()
            cuts = Cuts.of(step.summarize(block(grid.quantize(rows)), None), step.cap)
            cost, edges = step.cost(cuts)
            smooth = step.sensitivity(cuts)
            seconds = time.perf_counter() - start
            source, truth = SecureNoise(), cost + edges * low
            values = [step.smooth.value(cost, smooth, 0, step.cap * edges, source) for _ in range(trials)]
            errors = np.abs(np.array(values, dtype=np.float64) - cost)
            name = f"{step.smooth.noise.density}, S = {smooth:g} of {step.cap}"
            row(table, f"{file} MST, {change} private", relation.name, name, truth, errors, f"{seconds:.2f}")
            wide = source.laplace(np.full(trials, cost), step.cap / BUDGET.epsilon)
            plain = np.abs(wide - cost).astype(np.float64)
            row(table, f"{file} MST, {change} private", relation.name, "global sensitivity", truth, plain, "")


def measure_aggregators(folder: Path, trials: int, table: Table) -> None:
    """Aggregate planted answers of 1,000 blocks in the plane: a part agrees, the rest leans to one corner.

    Success is a value within 25 spreads of where they agree, a twentieth of an axis: the noise of the center
    of attention is some 8 spreads at this epsilon, whatever they are.
    """
    grid, blocks, spread = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-16), 1000, 0.002
    names = ("auto", "median", "smooth_median", "center_of_attention", "one_cluster", "average")
    for fraction, name in itertools.product((0.3, 0.8), names):
        params = SampleAndAggregate(blocks, name, fraction)
        plan = SAMPLE_AND_AGGREGATE.plan(grid, params, BUDGET, ADD, secret_salt())
        errors, start = [], time.perf_counter()
        for trial in range(trials):
            rng = np.random.default_rng([trial, int(100 * fraction)])
            stable, center = int(fraction * blocks), rng.uniform(0.2, 0.8, 2)
            crowd = center + rng.normal(size=(stable, 2)) * spread
            others = rng.uniform(size=(blocks - stable, 2)) ** 0.2
            points = grid.quantize(np.concatenate([crowd, others]))
            found = run_in_memory(plan.rounds, [block(points)], plan.start, SecureNoise())
            value = grid.restore(found.value) if isinstance(found, Stable) else np.full(2, np.inf)
            errors.append(float(np.linalg.norm(value - center)))
        seconds = (time.perf_counter() - start) / trials
        good = sum(error <= 25 * spread for error in errors)
        what, more = f"{fraction:.0%} of 1,000 blocks agree", f"{seconds:.2f}, success: {good}/{trials}"
        row(table, what, ADD.name, f"{name} ({plan.method})", spread, np.array(errors), more)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    args = parser.parse_args()
    if not args.data:
        print("rows on real data are skipped: set SHOAL_DATA to their folder")
    table = Table(title=f"Analyses at epsilon 1, delta 1e-6: {args.trials} trials a row")
    for name in ("data", "neighbors", "method", "exact", "median error", "90% error", "seconds"):
        table.add_column(name)
    measures: list[Callable[[Path, int, Table], None]] = [
        measure_medians,
        measure_triangles,
        measure_trees,
        measure_aggregators,
    ]
    for measure in measures:
        measure(Path(args.data), args.trials, table)
    for each in (table, measure_ranks(args.trials)):
        Console(width=170).print(each)


if __name__ == "__main__":
    main()
