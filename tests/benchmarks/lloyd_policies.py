"""Measure Lloyd's noisy iteration under Blowfish policies: Figure 1 of the Blowfish paper, on real data.

Ratio: cost of the released centers over that of scikit-learn's KMeans(n_init=10) on the same grid points. The
iteration is the same under every policy, so what a policy hides less of is all that differs. All noise is the
real one. Where records are many it hardly matters: what is left is the local minimum that a few iterations
from public centers end in, shown as `no noise`. Names are in data units: `distance 64` hides moves of an L1
distance of up to 64, `partition 16` all moves within a cell of side 16. Run by `make bench-centers`; the data
are read from the folder that SHOAL_DATA names, and only the synthetic ones are there without it.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans as NonPrivate

from core.budget import Budget
from core.centers.params import KMeans
from core.centers.task import K_MEANS
from core.domain import Grid
from core.neighbors import Neighbors
from core.noise import Noise
from core.policy import Distance, Partition, Policy
from core.rounds import Block, run_in_memory
from core.secure_noise import SecureNoise, secret_salt
from tests.benchmarks.centers import columns, cost
from tests.benchmarks.lines import draw_lines
from tests.core.seeded import SeededNoise

K = 4
DELTA = 1e-6
EPSILONS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
SMALL = 5000  # rows: with fewer, the policies must beat full privacy clearly
CLEARLY = 0.7  # their excess cost over full privacy's, summed over epsilon
RECORDS = 300_000  # of one point and epsilon; at least 5 runs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """Points on their domain.

    Args:
        name: of the data.
        grid: the public domain.
        load: reads the points, data units, from the folder of real data.
        distances: two thetas, data units.
        width: of the partition's cells, data units.
        part: share of the points that is drawn.
    """

    name: str
    grid: Grid
    load: Callable[[Path], Floats]
    distances: tuple[float, float]
    width: float
    part: float = 1.0

    def policies(self) -> dict[str, Policy | None]:
        """Return the policies by name; None is full privacy."""
        cells = (round(self.width / self.grid.step),) * self.grid.dimension
        return {
            "full": None,
            **{f"distance {t:g}": Policy(Distance(round(t / self.grid.step))) for t in self.distances},
            f"partition {self.width:g}": Policy(Partition(cells)),
        }

    def steps(self, folder: Path) -> NDArray[np.int64]:
        """Return the grid points; the sample is always the same."""
        values = self.load(folder)
        rng = np.random.default_rng(0)
        drawn = rng.choice(len(values), round(self.part * len(values)), replace=False)
        return self.grid.quantize(values[drawn])


def synthetic(_: Path) -> Floats:
    """1,000 points about four centers in the unit cube of four axes, standard deviation 0.2."""
    rng = np.random.default_rng(1)
    points = rng.uniform(size=(K, 4))[rng.integers(K, size=4000)] + rng.normal(0, 0.2, (4000, 4))
    return np.asarray(points[((points > 0) & (points < 1)).all(axis=1)][:1000])


def skin(name: str, part: float) -> Data:
    """Return a part of the skin pixels."""
    grid = Grid((0.0,) * 3, (255.0,) * 3, 1.0)
    return Data(name, grid, columns("skin", "b", "g", "r"), (64.0, 16.0), 16.0, part)


ROWS = [
    skin("skin", 1.0),
    skin("skin10", 0.1),
    skin("skin01", 0.01),
    Data(
        "cities", Grid((-90.0, -180.0), (90.0, 180.0), 0.05), columns("geo_cities", "lat", "lon"),
        (20.0, 5.0), 5.0,
    ),
    Data("synthetic", Grid((0.0,) * 4, (1.0,) * 4, 2.0**-10), synthetic, (0.25, 0.0625), 0.25),
]  # fmt: skip


@dataclass(frozen=True)
class Point:
    """Quartiles of the ratio at one epsilon."""

    epsilon: float
    low: float
    median: float
    high: float


def cost_of_run(
    data: Data,
    steps: NDArray[np.int64],
    policy: Policy | None,
    epsilon: float,
    noise: Noise,
    delta: float = DELTA,
) -> float:
    """Return the cost of the centers of one run."""
    relation, params = Neighbors("replace_one", policy), KMeans(K, method="lloyd")
    plan = K_MEANS.plan(data.grid, params, Budget(epsilon, delta), relation, secret_salt())
    block = Block(steps, np.arange(len(steps), dtype=np.uint64))
    state = run_in_memory(plan.rounds, [block], plan.start, noise)
    return cost(data.grid.restore(steps), np.array(state.result(data.grid).centers), 2)


def measure(
    data: Data,
    steps: NDArray[np.int64],
    policy: Policy | None,
    epsilon: float,
    least: float,
    runs: int,
    delta: float = DELTA,
) -> Point:
    """Return the quartiles of runs at one policy and epsilon."""
    ratios = [cost_of_run(data, steps, policy, epsilon, SecureNoise(), delta) / least for _ in range(runs)]
    low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return Point(epsilon, float(low), float(median), float(high))


def draw(title: str, curves: Mapping[str, Sequence[Point]]) -> str:
    """Draw the median ratio over epsilon, and the quartiles as bars."""
    rows = [
        {"policy": policy, "epsilon": p.epsilon, "cost / best known": p.median, "low": p.low, "high": p.high}
        for policy, points in curves.items()
        for p in points
    ]
    return draw_lines(title, rows, "epsilon", "cost / best known", band=True)


def excess(points: Sequence[Point]) -> float:
    """Return the mean excess cost over all epsilons."""
    return float(np.mean([point.median - 1 for point in points]))


def report(
    name: str, rows: int, curves: Mapping[str, Sequence[Point]], without_noise: Mapping[str, float]
) -> Table:
    """Return the median ratios by epsilon."""
    table = Table(title=f"{name}, n = {rows:,}: k-means (lloyd, k = {K}), cost / best known, medians")
    table.add_column("policy")
    for epsilon in EPSILONS:
        table.add_column(f"{epsilon:g}", justify="right")
    table.add_column("no noise", justify="right")
    table.add_column("excess / full", justify="right")
    for policy, points in curves.items():
        beside = excess(points) / max(1e-9, excess(curves["full"]))
        medians = [f"{point.median:.3f}" for point in points]
        table.add_row(policy, *medians, f"{without_noise[policy]:.3f}", f"{beside:.2f}")
    return table


def misses(name: str, rows: int, curves: Mapping[str, Sequence[Point]]) -> list[str]:
    """Return what is not as it should be: on few rows the weaker policies beat full privacy clearly."""
    full, *others = curves.items()
    if rows > SMALL:
        return []
    return [
        f"{name}: {policy} has {excess(points) / excess(full[1]):.2f} of full privacy's excess cost"
        for policy, points in others[1:]  # the wider distance is shown beside it
        if excess(points) > CLEARLY * excess(full[1])
    ]


def main() -> None:
    """Measure, print the tables, draw the plots; fail where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names of data to run, separated by commas")
    parser.add_argument("--data", default=os.environ.get("SHOAL_DATA", ""), help="folder of real datasets")
    parser.add_argument("--output", type=Path, default=Path("bench-out"))
    args = parser.parse_args()
    console, missed = Console(width=130), []
    args.output.mkdir(exist_ok=True)
    for data in ROWS:
        if args.only and data.name not in args.only.split(","):
            continue
        try:
            steps = data.steps(Path(args.data))
        except FileNotFoundError:
            console.print(f"{data.name}: skipped, set SHOAL_DATA to the folder of real datasets")
            continue
        least = float(NonPrivate(K, n_init=10, random_state=0).fit(data.grid.restore(steps)).inertia_)
        runs = min(25, max(5, RECORDS // len(steps)))
        curves = {
            name: [measure(data, steps, policy, epsilon, least, runs) for epsilon in EPSILONS]
            for name, policy in data.policies().items()
        }
        none = SeededNoise(0, factor=0)
        without_noise = {
            name: cost_of_run(data, steps, policy, EPSILONS[-1], none) / least
            for name, policy in data.policies().items()
        }
        console.print(report(data.name, len(steps), curves, without_noise))
        file = args.output / f"lloyd_policies_{data.name}.svg"
        file.write_text(draw(f"{data.name}, n = {len(steps):,}: k-means by Lloyd's iteration", curves))
        console.print(f"Drawn in {file}.")
        missed += misses(data.name, len(steps), curves)
    console.print("\n".join(missed) or "Every target is met.")
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
