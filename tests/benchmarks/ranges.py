"""Measure range queries under distance policies: Figure 2 of the Blowfish paper, on real columns.

For every theta and epsilon: the mean squared error of all ranges, before inference and after it, against
Equation 13. The error before inference doesn't depend on data. All ranges are averaged, none are drawn.
The noise is numpy's, of the same distribution as the real one. Run by `make bench-ordered`; the columns
are read from the folder that SHOAL_DATA names; without it, a made-up one stands in.
"""

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from core.aggregate import Counts
from core.budget import Budget
from core.cdf.hierarchical import OrderedHierarchical
from core.cdf.params import Cdf
from core.cdf.task import CDF
from core.domain import Grid
from core.neighbors import Neighbors
from core.plan import Plan
from core.policy import Distance, Policy
from tests.benchmarks.lines import draw_lines
from tests.core.seeded import SeededNoise

THETAS = [None, 1000, 500, 100, 50, 10, 1]
EPSILONS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
FANOUT = 16

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """A column of a table in SHOAL_DATA, or made-up values, on its domain."""

    name: str
    grid: Grid
    file: str | None = None

    def counts(self, folder: Path) -> Counts | None:
        """Return how often each value occurs, or None where the table is not there."""
        size = self.grid.extents[0] + 1
        if self.file is None:
            rng = np.random.default_rng(0)
            spread = np.where(rng.random(50_000) < 0.95, 0, rng.binomial(size - 1, 0.43, 50_000))
            return Counts.of(spread.astype(np.int64))
        if not (folder / self.file).exists():
            return None
        values = pq.read_table(folder / self.file, columns=[self.name])[self.name].to_numpy()
        return Counts.of(self.grid.quantize(values.astype(np.float64)[:, None])[:, 0])


MADE_UP = Column("made_up", Grid((0.0,), (4356.0,), 1.0))
COLUMNS = [
    Column("capital_loss", Grid((0.0,), (4356.0,), 1.0), "adult.parquet"),
    Column("lat", Grid((-90.0,), (90.0,), 0.05), "geo_cities.parquet"),
]


@dataclass(frozen=True)
class Point:
    """Mean squared errors of all ranges at one theta and epsilon."""

    epsilon: float
    published: float
    expected: float
    before: float
    after: float


def published(size: int, theta: int, epsilon: float) -> float:
    """Equation 13 at its optimal split, with the logarithm as it is: no tree has such a height."""
    c1 = 4 * (size - theta) / (size + 1)
    c2 = 8 * (FANOUT - 1) * math.log(theta, FANOUT) ** 3 * size / (size + 1)
    return (c1 ** (1 / 3) + c2 ** (1 / 3)) ** 3 / epsilon**2


def over_all_ranges(errors: Floats) -> float:
    """Mean of (e_b - e_a)^2 over all 0 <= a < b <= size, where e_0 = 0 and the others are given."""
    ends = len(errors)
    return float(((ends + 1) * (errors**2).sum() - errors.sum() ** 2) / (ends * (ends + 1) / 2))


def before_inference(step: OrderedHierarchical, noise: SeededNoise) -> Floats:
    """Draw the error of every prefix as the sum of its nodes, shape (size,)."""
    forest = step.forest
    ends = np.zeros(forest.blocks, dtype=np.int64)
    if forest.blocks > 1:
        ends[1:] = step.s.add(ends[1:], noise)
    errors = np.repeat(ends, forest.block).reshape(forest.blocks, forest.block)  # before each value
    for width, here in zip(forest.widths, forest.present(), strict=True):
        nodes = np.zeros(here.shape, dtype=np.int64)
        nodes[here] = step.h.add(nodes[here], noise)
        siblings = nodes.reshape(-1, forest.branching)
        left = (siblings.cumsum(axis=1) - siblings).reshape(forest.blocks, -1)
        errors = errors + np.repeat(left, width, axis=1)[:, : forest.block]
    return np.append(errors.ravel()[1 : forest.size], 0).astype(np.float64)  # the total is public


def plan_of(column: Column, theta: int | None, epsilon: float) -> Plan:
    """Plan the hierarchical method, which is the ordered one at theta 1."""
    neighbors = Neighbors("replace_one", None if theta is None else Policy(Distance(theta)))
    params = Cdf(method="hierarchical", fanout=FANOUT)
    return CDF.plan(column.grid, params, Budget(epsilon, 0.0), neighbors, b"")


def measure(column: Column, counts: Counts, theta: int | None, epsilon: float, repetitions: int) -> Point:
    """Measure one point; inference is repeated a quarter as often, as it varies less."""
    plan = plan_of(column, theta, epsilon)
    step, size = plan.rounds[0], column.grid.extents[0] + 1
    assert isinstance(step, OrderedHierarchical)
    noise = SeededNoise(round(1000 * epsilon) + (theta or 0))
    true = np.zeros(size, dtype=np.int64)
    true[counts.keys] = counts.counts
    true = true.cumsum()
    after = [step.release(counts, None, noise).counts - true for _ in range(max(1, repetitions // 4))]
    return Point(
        epsilon,
        published(size, theta or size, epsilon),
        plan.promises["range_standard_error"] ** 2,
        float(np.mean([over_all_ranges(before_inference(step, noise)) for _ in range(repetitions)])),
        float(np.mean([over_all_ranges(error) for error in after])),
    )


def label(theta: int | None) -> str:
    """Name a policy."""
    return "full" if theta is None else f"{theta:,}"


def draw(title: str, curves: Mapping[str, Sequence[Point]]) -> str:
    """Draw errors after inference, and what the tree has before it, over epsilon, both axes logarithmic."""
    name = "mean squared error of a range"
    rows = [
        {"policy": policy, "kind": kind, "epsilon": p.epsilon, name: error}
        for policy, points in curves.items()
        for p in points
        for kind, error in (("after inference", p.after), ("before it, computed", p.expected))
    ]
    return draw_lines(title, rows, "epsilon", name, log=True)


def report(column: Column, curves: dict[int | None, Sequence[Point]]) -> Table:
    """Return the figures at epsilon 1, and their ratios at the worst epsilon."""
    size = column.grid.extents[0] + 1
    table = Table(title=f"{column.name}, {size:,} values: mean squared error of all ranges, epsilon 1")
    for heading in (
        "theta",
        "tree",
        "Equation 13",
        "on the tree",
        "before",
        "after",
        "before / tree",
        "after / tree",
    ):
        table.add_column(heading, justify="right")
    for theta, points in curves.items():
        at_one, step = points[-1], plan_of(column, theta, 1.0).rounds[0]
        assert isinstance(step, OrderedHierarchical)
        forest = step.forest
        ratios = [p.before / p.expected for p in points]
        table.add_row(
            label(theta),
            f"{forest.blocks} x {forest.branching}^{forest.height}",
            *(f"{x:,.1f}" for x in (at_one.published, at_one.expected, at_one.before, at_one.after)),
            f"{min(ratios):.3f} to {max(ratios):.3f}",
            f"{max(p.after / p.expected for p in points):.3f}",
        )
    return table


def misses(column: Column, curves: dict[int | None, Sequence[Point]]) -> list[str]:
    """Return what is not as it should be."""
    found = []
    for theta, points in curves.items():
        for p in points:
            if not 0.95 <= p.before / p.expected <= 1.05:
                found.append(
                    f"{column.name} {label(theta)} {p.epsilon}: {p.before / p.expected:.3f} before inference"
                )
            if p.after > p.expected:
                found.append(
                    f"{column.name} {label(theta)} {p.epsilon}: {p.after / p.expected:.3f} after inference"
                )
    for full, one in zip(curves[None], curves[1], strict=True):
        if full.after < 100 * one.after or full.before < 100 * one.before:
            found.append(f"{column.name} {full.epsilon}: theta 1 is less than 100 times below full")
    return found


def main() -> None:
    """Measure, print the tables, draw the plots; fail where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=600)
    parser.add_argument("--output", type=Path, default=Path("bench-out"))
    args = parser.parse_args()
    console, missed = Console(width=110), []
    folder = os.environ.get("SHOAL_DATA")
    args.output.mkdir(exist_ok=True)
    for column in COLUMNS if folder else [MADE_UP]:
        counts = column.counts(Path(folder or "."))
        if counts is None:
            console.print(f"{column.name} is left out: SHOAL_DATA has no {column.file}.")
            continue
        curves = {
            theta: [measure(column, counts, theta, epsilon, args.repetitions) for epsilon in EPSILONS]
            for theta in THETAS
        }
        console.print(report(column, curves))
        file = args.output / f"ranges_{column.name}.svg"
        file.write_text(
            draw(f"{column.name}: errors by theta", {label(theta): curves[theta] for theta in curves})
        )
        console.print(f"Drawn in {file}.")
        missed += misses(column, curves)
    console.print("\n".join(missed) or "Every target is met.")
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
