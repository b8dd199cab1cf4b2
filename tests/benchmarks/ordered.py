"""Measure quantiles against the alternatives on real columns, thresholds, and records for interior points.

The error of a quantile is the distance of its probability from the interval [P(x < v), P(x <= v)], averaged
over quantiles and trials, with the real noise. OpenDP's quantile and tree get theirs from numpy, as their own
takes seconds a trial: same mechanisms, same scales, same distributions. Interior points are measured with
the tests' repeatable noise, of the same distributions too. Real columns need SHOAL_DATA.
"""

import argparse
import itertools
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
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
from core.gaps import Order, Runs
from core.interior_point.rounds import Finder
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.plan import Plan
from core.quantiles.aim import UNIT
from core.quantiles.params import Quantiles
from core.quantiles.task import QUANTILES
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise
from core.threshold.examples import Examples
from core.threshold.params import Threshold
from core.threshold.task import THRESHOLD
from tests.core.interior_point.universe import planned
from tests.core.seeded import SeededNoise

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Probabilities = tuple[float, ...]
NOISE, RNG = SecureNoise(), np.random.default_rng(0)
SHOAL = ("recursive", "tree")
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

    def read(self, folder: Path) -> "Records":
        """Read the column as grid points; rows without a value are no records."""
        values = pq.read_table(folder / self.file, columns=[self.name])[self.name].drop_null().to_numpy()
        values = values.astype(np.float64)
        return Records(self.grid, self.grid.quantize(values[np.isfinite(values)][:, None])[:, 0])


class Records:
    """Grid points, counted once for all trials."""

    def __init__(self, grid: Grid, points: Ints) -> None:
        self.grid, self.size = grid, grid.extents[0] + 1
        self.counts = Counts.of(points)
        self.order = Order.of_counts(self.counts)
        self.leaves = np.bincount(points, minlength=self.size)

    @cached_property
    def tree(self) -> tuple[int, float, Ints]:
        """Fan-out of OpenDP's b-ary tree, its sensitivity and its exact counts."""
        fan_out = int(dp.t.choose_branching_factor(self.order.total))
        space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
        tree = dp.t.make_b_ary_tree(*space, self.size, fan_out)
        return fan_out, float(tree.map(1)), np.array(tree(self.leaves.tolist()))

    def errors(self, probabilities: Probabilities, steps: Ints) -> Floats:
        """Distance of each probability from the ranks of its answer, as a part of n."""
        upto = np.cumsum(self.leaves)
        low, high = ((upto - self.leaves)[steps] / upto[-1], upto[steps] / upto[-1])
        p = np.array(probabilities)
        return np.maximum(0, np.maximum(low - p, p - high))


COLUMNS = [
    Column("flights_nyc13.parquet", "dep_delay", -120, 1500, 1),
    Column("flights_nyc13.parquet", "distance", 0, 5000, 1),
    Column("adult.parquet", "age", 0, 120, 1),
    Column("visits_gowalla.parquet", "lat", -90, 90, 0.001),
]


def shoal(method: str, records: Records, probabilities: Probabilities, epsilon: float) -> Plan:
    """Plan at delta 1e-6."""
    params = Quantiles(probabilities, method)  # type: ignore[arg-type]
    return QUANTILES.plan(records.grid, params, Budget(epsilon, 1e-6), ADD, bytes(16))


def each_alone(records: Records, probabilities: Probabilities, epsilon: float) -> Ints:
    """Each probability with its part of epsilon, over the grid, as OpenDP's private quantile does it.

    Smith 2011 by permute-and-flip: noisy max with exponential noise on the scores
    -|(1 - p) #{x < v} - p #{x > v}|, in 1 / 2^20, as `make_private_quantile` has them.
    """
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    upto, unit, part = np.cumsum(records.leaves), 1 << 20, epsilon / len(probabilities)
    below, above, out = upto - records.leaves, upto[-1] - upto, []
    for p in probabilities:
        down = round(p * unit)
        largest = max(down, unit - down)
        scale = 2 * largest / part
        theirs = dp.m.make_noisy_max(*space, output_measure=dp.max_divergence(), scale=scale)
        assert 0.99 * part <= theirs.map(largest) <= part * (1 + 1e-6)
        scores = -np.abs((unit - down) * below - down * above)
        near = np.flatnonzero(scores >= scores.max() - 40 * scale)  # the others win with less than 1e-12
        out.append(near[np.argmax(scores[near] + RNG.exponential(scale, len(near)))])
    return np.sort(np.array(out))


def plain_recursion(records: Records, probabilities: Probabilities, epsilon: float) -> Ints:
    """Recursive splitting with epsilon divided over its levels (Kaplan, Schnapp and Stemmer 2022).

    Each quantile is the exponential mechanism's with the score -|(1 - t) #{x < v} - t #{x > v}| on the
    records between the quantiles found before, t its share of the probability between them.
    """
    level = epsilon / math.ceil(math.log2(len(probabilities) + 1))
    out = np.zeros(len(probabilities), dtype=np.int64)

    def split(first: int, last: int, low: int, high: int, before: float, after: float) -> None:
        if first >= last:
            return
        if high - low < 2:
            out[first:last] = low
            return
        middle = (first + last) // 2
        share = (probabilities[middle] - before) / (after - before)
        down = min(UNIT - 1, max(1, round(share * UNIT)))
        here = records.order.within(low, high)
        runs = Runs.between(here, low, high)
        scores = -np.abs((UNIT - down) * runs.below - down * (here.total - runs.upto))
        draw = Exponential(what="quantile", scale=2 / level, spread=2)
        value = draw.point(runs.starts, runs.lengths, scores, NOISE, unit=max(down, UNIT - down))
        out[middle] = value
        split(first, middle, low, max(value, low + 1), before, probabilities[middle])
        split(middle + 1, last, min(value, high - 1), high, probabilities[middle], after)

    split(0, len(out), 0, records.size, 0.0, 1.0)
    return np.sort(out)


def b_ary_tree(records: Records, probabilities: Probabilities, epsilon: float) -> Ints:
    """OpenDP's b-ary tree of noisy counts, made consistent, and the quantiles read off its leaves."""
    size, (fan_out, sensitivity, counts) = records.size, records.tree
    stop = -math.expm1(-epsilon / sensitivity)
    up, down = RNG.geometric(stop, size=(2, len(counts)))
    consistent = dp.t.make_consistent_b_ary_tree(fan_out, TIA=dp.i32, TOA=dp.f64)  # as Python counts
    edges = (np.arange(size + 1) - 0.5).tolist()  # a leaf's point is in its middle
    read = dp.t.make_quantiles_from_counts(edges, list(probabilities), interpolation="linear", F=dp.f64)
    values = read(consistent((counts + up - down).tolist()))
    return np.clip(np.rint(np.array(values, dtype=np.float64)).astype(np.int64), 0, size - 1)


PEERS: dict[str, Callable[[Records, Probabilities, float], Ints]] = {
    "OpenDP each": each_alone,
    "plain recursion": plain_recursion,
    "OpenDP b-ary tree": b_ary_tree,
}


@dataclass(frozen=True)
class Errors:
    """Mean rank error in millionths, and its standard error, over trials."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, records: Records, probabilities: Probabilities, answers: list[Ints]) -> "Errors":
        """Average over quantiles, then over trials."""
        errors = [1e6 * float(records.errors(probabilities, steps).mean()) for steps in answers]
        return cls(float(np.mean(errors)), float(np.std(errors)) / math.sqrt(len(errors)))

    def at_most(self, factor: float, other: "Errors") -> bool:
        """Whether it is at most `factor` of the other, but for two standard errors."""
        slack = 2 * math.hypot(self.deviation, factor * other.deviation)
        return self.mean <= factor * other.mean + slack


def verdict(auto: Errors, peers: dict[str, Errors], count: int) -> str:
    """Name the peers that are not beaten as they should be.

    One quantile alone is the same exponential mechanism for all: at most equal. Where a peer errs nowhere,
    neither may we.
    """
    factors = {"OpenDP each": 0.5, "plain recursion": 0.9, "OpenDP b-ary tree": 1.0}
    missed = [
        name for name, peer in peers.items() if not auto.at_most(1.0 if count == 1 else factors[name], peer)
    ]
    return f"misses {', '.join(missed)}" if missed else "ok"


def measure_quantiles(folder: Path, trials: int) -> Table:
    """Mean rank errors of every method, in millionths, their ratios, and a verdict."""
    table = Table(title=f"Mean rank error of quantiles, in millionths ({trials} trials)")
    ratios = [f"auto / {name}" for name in PEERS]
    titles = ("column", "quantiles", "epsilon", "auto", *SHOAL, *PEERS, *ratios, "verdict")
    for title in titles:
        table.add_column(title, justify="left" if title in ("column", "verdict") else "right")
    print("; ".join(titles))
    for column in COLUMNS:
        records = column.read(folder)
        for count, epsilon in itertools.product((1, 9, 99), (0.1, 1.0)):
            probabilities = tuple(i / (count + 1) for i in range(1, count + 1))
            ours = {}
            for method in SHOAL:
                step = shoal(method, records, probabilities, epsilon).rounds[0]
                answers = [np.array(step.release(records.counts, None, NOISE).steps) for _ in range(trials)]
                ours[method] = Errors.of(records, probabilities, answers)
            peers = {
                name: Errors.of(
                    records, probabilities, [peer(records, probabilities, epsilon) for _ in range(trials)]
                )
                for name, peer in PEERS.items()
            }
            chosen = shoal("auto", records, probabilities, epsilon).method
            auto = ours[chosen]
            row = [
                chosen,
                *(f"{ours[m].mean:.2f}±{ours[m].deviation:.2f}" if m in ours else "-" for m in SHOAL),
                *(f"{peer.mean:.2f}±{peer.deviation:.2f}" for peer in peers.values()),
                *(_ratio(auto.mean, peer.mean) for peer in peers.values()),
                verdict(auto, peers, count),
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


def succeeds(finder: Finder, bits: int, count: int, trials: int) -> bool:
    """Whether an interior point is found in at least 90% of the trials on each of the hard cases."""
    for points in databases(bits, count):
        order = Order.of(points)
        found = [finder.find(order, SeededNoise(seed)) for seed in range(trials)]
        if sum(f is not None and min(points) <= f <= max(points) for f in found) < 0.9 * trials:
            return False
    return True


def records_needed(plan: Plan, bits: int, trials: int) -> int:
    """Bisect for the number of records at which it succeeds, to 3%."""
    finder, low, high = plan.rounds[0].finder, 1, plan.promises["records_needed"]  # type: ignore[attr-defined]
    if not succeeds(finder, bits, high, trials):
        return -1
    while high - low > max(1, 0.03 * high):
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(finder, bits, middle, trials) else (middle, high)
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
            plan = planned(name, 1 << bits, Budget(1.0, 1e-6), neighbors)
            measured, promised = records_needed(plan, bits, trials), plan.promises["records_needed"]
            row = [f"2^{bits}", name, neighbors.name, f"{promised:,}", f"{measured:,}"]
            table.add_row(*row)
            print(*row, flush=True)
    return table


def measure_a_million(trials: int) -> None:
    """Time 99 quantiles of a million distinct rows, from rows to answers."""
    points = np.random.default_rng(0).permutation(10**6)[:, None]
    block = Block(points, np.arange(len(points), dtype=np.uint64))
    grid, params = Grid((0.0,), (1e6 - 1,), 1.0), Quantiles(tuple(i / 100 for i in range(1, 100)))
    taken = []
    for _ in range(trials):
        start = time.perf_counter()
        plan = QUANTILES.plan(grid, params, Budget(1.0, 1e-6), ADD, bytes(16))
        run_in_memory(plan.rounds, [block], plan.start, NOISE)
        taken.append(time.perf_counter() - start)
    said = "ok" if np.mean(taken) < 3 else "misses 3 s"
    print(
        f"99 quantiles of a million distinct rows: {np.mean(taken):.2f} s, at most {max(taken):.2f} s; {said}"
    )


def measure_thresholds(trials: int) -> Table:
    """Part of the trials in which the errors are within alpha at the promised number of examples."""
    table = Table(title=f"Thresholds over 2^30 points, alpha 0.05, failure 0.05, epsilon 1 ({trials} trials)")
    for title in ("method", "neighbors", "flipped", "examples", "kept", "mean errors above best", "verdict"):
        table.add_column(title, justify="right")
    grid, rng = Grid((0.0, 0.0), (2.0**30 - 1, 1.0), 1.0), np.random.default_rng(0)
    for method, neighbors, flipped in itertools.product(
        ("exponential", "interior_point"), (ADD, REPLACE), (0.0, 0.1)
    ):
        params = Threshold(0.05, method)  # type: ignore[arg-type]
        plan = THRESHOLD.plan(grid, params, Budget(1.0, 1e-6), neighbors, bytes(16))
        n, above = int(plan.promises["records_needed"]), []
        for _ in range(trials):
            values = rng.integers(0, 1 << 30, n)
            labels = (values >= rng.integers(0, 1 << 30)) ^ (rng.random(n) < flipped)
            examples = Examples.of_counts(Counts.of(2 * values + labels))
            best = examples.errors(np.append(np.unique(values), 1 << 30)).min()
            rows = Block(np.stack([values, labels], axis=1), np.arange(n, dtype=np.uint64))
            found = run_in_memory(plan.rounds, [rows], plan.start, NOISE).step
            above.append(int(examples.errors(np.array([found]))[0] - best))
        kept = float(np.mean(np.array(above) <= params.alpha * n))
        row = [method, neighbors.name, f"{flipped:g}", f"{n:,}", f"{kept:.2f}", f"{np.mean(above):.1f}"]
        row.append("ok" if kept >= 0.95 else "misses 0.95")
        table.add_row(*row)
        print(*row, flush=True)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    parser.add_argument("--part", choices=("all", "quantiles", "thresholds", "interior"), default="all")
    args = parser.parse_args()
    tables = []
    if args.part in ("all", "quantiles"):
        measure_a_million(5)
        if args.data and Path(args.data).exists():
            tables.append(measure_quantiles(Path(args.data), args.trials))
        else:
            print("real columns: skipped, set SHOAL_DATA to the folder that holds them")
    if args.part in ("all", "thresholds"):
        tables.append(measure_thresholds(max(100, args.trials)))
    if args.part in ("all", "interior"):
        tables.append(measure_interior_points(args.trials))
    for table in tables:
        Console(width=200).print(table)


if __name__ == "__main__":
    main()
