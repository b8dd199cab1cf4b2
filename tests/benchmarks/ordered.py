"""Measure quantiles against the alternatives on real columns, and how many records interior points need.

The error of a quantile is the distance of its probability from the interval [P(x < v), P(x <= v)], averaged
over quantiles and trials, with the real noise. Interior points are measured with the tests' repeatable noise,
of the same distributions. Real columns need SHOAL_DATA.
"""

import argparse
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.noise import SecureNoise
from core.ordered.gaps import Order, Runs
from core.ordered.interior_plan import Candidate, candidate
from core.ordered.quantiles import UNIT
from core.ordered.quantiles_plan import Quantiles, plan_quantiles
from core.rounds import Block, run_in_memory
from tests.core.seeded import SeededNoise

Ints = NDArray[np.int64]
NOISE = SecureNoise()
ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")

dp.enable_features("contrib")


@dataclass(frozen=True)
class Column:
    """A real column and the grid that it is put on."""

    file: str
    name: str
    lower: float
    upper: float
    step: float

    @property
    def grid(self) -> Grid:
        """The universe."""
        return Grid((self.lower,), (self.upper,), self.step)

    def points(self, folder: Path) -> Ints:
        """Read the column as grid points; rows without a value are no records."""
        values = pq.read_table(folder / self.file, columns=[self.name])[self.name].drop_null().to_numpy()
        values = values.astype(np.float64)
        return self.grid.quantize(values[np.isfinite(values)][:, None])[:, 0]


COLUMNS = [
    Column("flights_nyc13.parquet", "dep_delay", -100, 1500, 1),
    Column("flights_nyc13.parquet", "distance", 0, 5000, 1),
    Column("adult.parquet", "age", 0, 120, 1),
    Column("visits_gowalla.parquet", "lat", -90, 90, 0.001),
]

Probabilities = tuple[float, ...]
Method = Callable[[Ints, Column, Probabilities, float], Ints]


def ours(method: str) -> Method:
    """Release by the plan of `method`, with delta 1e-6."""

    def release(points: Ints, column: Column, probabilities: Probabilities, epsilon: float) -> Ints:
        params = Quantiles(probabilities, method)  # type: ignore[arg-type]
        plan = plan_quantiles(column.grid, params, Budget(epsilon, 1e-6), ADD, bytes(16))
        block = Block(points[:, None], np.arange(len(points), dtype=np.uint64))
        return np.array(run_in_memory(plan.rounds, [block], plan.start, NOISE).steps)

    return release


def each_alone(points: Ints, column: Column, probabilities: Probabilities, epsilon: float) -> Ints:
    """Each probability with its part of epsilon, over the grid, as OpenDP's private quantile does it.

    Smith 2011 by permute-and-flip: OpenDP's noisy max on the scores -|(1 - p) #{x < v} - p #{x > v}|. Numpy
    computes the scores, in 1 / 2^20, as `make_private_quantile` takes over a second for each on long lists.
    """
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    counts = np.bincount(points, minlength=column.grid.extents[0] + 1)
    upto, unit, part = np.cumsum(counts), 1 << 20, epsilon / len(probabilities)
    below, above, out = upto - counts, len(points) - upto, []
    for p in probabilities:
        down = round(p * unit)
        largest = max(down, unit - down)
        choose = dp.m.make_noisy_max(*space, output_measure=dp.max_divergence(), scale=2 * largest / part)
        assert 0.99 * part <= choose.map(largest) <= part * (1 + 1e-6)
        out.append(choose((-np.abs((unit - down) * below - down * above)).tolist()))
    return np.sort(out)


def plain_recursion(points: Ints, column: Column, probabilities: Probabilities, epsilon: float) -> Ints:
    """Recursive splitting with epsilon divided over its levels (Kaplan, Schnapp and Stemmer 2022).

    Each quantile is the exponential mechanism's with the score -|(1 - t) #{x < v} - t #{x > v}| on the
    records between the quantiles found before, t its share of the probability between them.
    """
    level = epsilon / math.ceil(math.log2(len(probabilities) + 1))
    out = np.zeros(len(probabilities), dtype=np.int64)

    def split(first: int, last: int, low: int, high: int, order: Order, before: float, after: float) -> None:
        if first >= last:
            return
        if high - low < 2:
            out[first:last] = low
            return
        middle = (first + last) // 2
        share = (probabilities[middle] - before) / (after - before)
        down = min(UNIT - 1, max(1, round(share * UNIT)))
        here = order.within(low, high)
        runs = Runs.between(here, low, high)
        scores = -np.abs((UNIT - down) * runs.below - down * (here.total - runs.upto))
        value = runs.choose(scores, 2 * max(down, UNIT - down) / level, NOISE)
        out[middle] = value
        split(first, middle, low, max(value, low + 1), here, before, probabilities[middle])
        split(middle + 1, last, min(value, high - 1), high, here, probabilities[middle], after)

    split(0, len(out), 0, column.grid.extents[0] + 1, Order.of_counts(Counts.of(points)), 0.0, 1.0)
    return np.sort(out)


def b_ary_tree(points: Ints, column: Column, probabilities: Probabilities, epsilon: float) -> Ints:
    """OpenDP's b-ary tree of noisy counts, made consistent, and the quantiles read off its leaves."""
    size = column.grid.extents[0] + 1
    fan_out = int(dp.t.choose_branching_factor(len(points)))
    tree = dp.t.make_b_ary_tree(
        dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64), size, fan_out
    )
    scale = float(tree.map(1)) / epsilon
    noisy = tree >> dp.m.then_laplace(scale=scale * (1 + 1e-9))
    assert noisy.map(1) <= epsilon * (1 + 1e-6)
    counts = noisy >> dp.t.make_consistent_b_ary_tree(fan_out, TIA=dp.i64, TOA=dp.f64)
    edges = (np.arange(size + 1) - 0.5).tolist()  # a leaf's point is in its middle
    read = dp.t.make_quantiles_from_counts(edges, list(probabilities), interpolation="linear", F=dp.f64)
    leaves = np.bincount(points, minlength=size).tolist()
    values = (counts >> read)(leaves)
    return np.clip(np.rint(np.array(values, dtype=np.float64)).astype(np.int64), 0, size - 1)


METHODS: dict[str, Method] = {
    "shoal auto": ours("auto"),
    "shoal recursive": ours("recursive"),
    "shoal tree": ours("tree"),
    "OpenDP quantile each": each_alone,
    "plain recursion": plain_recursion,
    "OpenDP b-ary tree": b_ary_tree,
}


def rank_errors(ordered: Ints, probabilities: Probabilities, steps: Ints) -> NDArray[np.float64]:
    """Distance of each probability from the ranks of its answer, as a part of n."""
    low, high = (np.searchsorted(ordered, steps, side) / len(ordered) for side in ("left", "right"))
    p = np.array(probabilities)
    return np.maximum(0, np.maximum(low - p, p - high))


def measure_quantiles(folder: Path, trials: int) -> Table:
    """Mean rank errors of every method, in millionths, and the time of one trial of Shoal's auto."""
    table = Table(title=f"Mean rank error of quantiles, in millionths ({trials} trials; OpenDP's fewer)")
    for title in ("column", "quantiles", "epsilon", *METHODS, "auto / each", "auto / recursion", "seconds"):
        table.add_column(title, justify="left" if title == "column" else "right")
    for column in COLUMNS:
        points = column.points(folder)
        ordered = np.sort(points)
        for count in (1, 9, 99):
            probabilities = tuple(i / (count + 1) for i in range(1, count + 1))
            for epsilon in (0.1, 1.0):
                errors, seconds = {}, 0.0
                for name, method in METHODS.items():
                    runs = max(1, trials // count) if method is each_alone else trials
                    start = time.perf_counter()
                    steps = [method(points, column, probabilities, epsilon) for _ in range(runs)]
                    errors[name] = 1e6 * float(
                        np.mean([rank_errors(ordered, probabilities, s) for s in steps])
                    )
                    if name == "shoal auto":
                        seconds = (time.perf_counter() - start) / runs
                auto = errors["shoal auto"]
                row = [
                    *(f"{error:.1f}" for error in errors.values()),
                    *(_ratio(auto, errors[n]) for n in ("OpenDP quantile each", "plain recursion")),
                    f"{seconds:.2f}",
                ]
                table.add_row(column.name, str(count), f"{epsilon:g}", *row)
                print(column.name, count, epsilon, *row, flush=True)
    return table


def _ratio(a: float, b: float) -> str:
    return "-" if b == 0 else f"{a / b:.3f}"


def databases(bits: int, count: int) -> list[list[int]]:
    """Hard cases: half each on two neighboring points, and records at every scale."""
    point = (1 << bits) // 3
    return [
        [point] * (count // 2) + [point + 1] * (count - count // 2),
        [1 << (i % bits) for i in range(count)],
    ]


def succeeds(method: Candidate, bits: int, count: int, trials: int) -> bool:
    """Whether an interior point is found in at least 90% of the trials on each of the hard cases."""
    for points in databases(bits, count):
        order = Order.of(points)
        found = [method.finder.find(order, SeededNoise(seed)) for seed in range(trials)]
        if sum(f is not None and min(points) <= f <= max(points) for f in found) < 0.9 * trials:
            return False
    return True


def records_needed(method: Candidate, bits: int, trials: int) -> int:
    """Bisect for the number of records at which it succeeds, to 3%."""
    low, high = 1, method.records_needed
    if not succeeds(method, bits, high, trials):
        return -1
    while high - low > max(1, 0.03 * high):
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(method, bits, middle, trials) else (middle, high)
    return high


def measure_interior_points(trials: int) -> Table:
    """Records needed, promised and measured, for universes of 2^16 to 2^8192 points."""
    table = Table(title=f"Records for an interior point, epsilon 1, delta 1e-6, 90% ({trials} trials)")
    for title in ("universe", "method", "neighbors", "promised", "measured"):
        table.add_column(title, justify="right")
    for bits in (16, 32, 64, 256, 4096, 8192):
        for name, neighbors in (
            ("exponential", ADD),
            ("exponential", REPLACE),
            ("heavy_paths", REPLACE),
            ("tree_log", REPLACE),
            ("one_cluster", REPLACE),
        ):
            if name == "one_cluster" and bits >= 31:
                continue  # it works on the grids of the 1-cluster
            method = candidate(name, 1 << bits, 0.1, Budget(1.0, 1e-6), neighbors)
            measured = records_needed(method, bits, trials)
            row = [f"2^{bits}", name, neighbors.name, f"{method.records_needed:,}", f"{measured:,}"]
            table.add_row(*row)
            print(*row, flush=True)
    return table


def measure_a_million() -> None:
    """Time 99 quantiles of a million distinct rows."""
    points = np.random.default_rng(0).permutation(10**6)[:, None]
    grid = Grid((0.0,), (1e6 - 1,), 1.0)
    start = time.perf_counter()
    params = Quantiles(tuple(i / 100 for i in range(1, 100)))
    plan = plan_quantiles(grid, params, Budget(1.0, 1e-6), ADD, bytes(16))
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    run_in_memory(plan.rounds, [block], plan.start, NOISE)
    print(f"99 quantiles of a million distinct rows: {time.perf_counter() - start:.2f} s")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    parser.add_argument("--part", choices=("all", "quantiles", "interior"), default="all")
    args = parser.parse_args()
    tables = []
    if args.part != "interior":
        measure_a_million()
        if args.data and Path(args.data).exists():
            tables.append(measure_quantiles(Path(args.data), args.trials))
        else:
            print("real columns: skipped, set SHOAL_DATA to the folder that holds them")
    if args.part != "quantiles":
        tables.append(measure_interior_points(args.trials))
    for table in tables:
        Console(width=170).print(table)


if __name__ == "__main__":
    main()
