"""Figures 1 and 2 of the Blowfish paper: k-means and cumulative counts under policies.

The airports of the demo stand for the paper's tweets, in the same box of the Earth and on the same grid of
0.05 degrees. Its synthetic points are made by its description. Its other data are drawn where SHOAL_DATA is.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as NonPrivate

from core.aggregate import Counts
from core.cdf.hierarchical import OrderedHierarchical
from core.domain import Grid
from core.policy import Attribute, Distance, Partition, Policy
from core.secure_noise import SecureNoise
from examples.make_data import airports
from tests.benchmarks import lloyd_policies as lloyd
from tests.benchmarks import ranges
from tests.benchmarks.papers.panel import Effort, Panel
from tests.core.seeded import SeededNoise

BOX = Grid((30.0, -125.0), (49.95, -110.05), 0.05)
"""From 30 N, 125 W to 50 N, 110 W: 400 by 300 points. A step of latitude is 5.56 km."""
KM = 1 / 5.56
"""Steps of a kilometre of latitude."""

Policies = Mapping[str, Policy | None]


def places(_: Path) -> NDArray[np.float64]:
    """Return latitude and longitude of the airports in the box."""
    table = airports()
    points = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    return np.asarray(points[((points >= BOX.lower) & (points <= BOX.upper)).all(axis=1)])


AIRPORTS = lloyd.Data("airports", BOX, places, (0.0, 0.0), 0.0)
(SYNTHETIC,) = (data for data in lloyd.ROWS if data.name == "synthetic")
(SKIN,) = (data for data in lloyd.ROWS if data.name == "skin01")


def near(names: Mapping[str, float]) -> Policies:
    """Return full privacy, and policies of distance by name, each in steps."""
    return {"full": None, **{name: Policy(Distance(round(steps))) for name, steps in names.items()}}


@dataclass(frozen=True)
class Curves:
    """A panel of Figure 1."""

    name: str
    title: str
    data: lloyd.Data
    policies: Policies


FIGURE_1 = (
    Curves(
        "kmeans-airports", "airports, distance policies", AIRPORTS,
        near({f"{km:,} km": km * KM for km in (2000, 1000, 500, 100)}),
    ),
    Curves(
        "kmeans-parts", "airports, partition policies", AIRPORTS,
        {
            "full": None,
            **{
                f"{400 // a * (300 // b):,} parts": Policy(Partition((a, b)))
                for a, b in ((40, 300), (40, 30), (40, 3), (4, 3))
            },
        },
    ),
    Curves(
        "kmeans-synthetic", "1,000 made-up points in four dimensions", SYNTHETIC,
        {
            **near({f"{theta:g}": theta / SYNTHETIC.grid.step for theta in (1.0, 0.5, 0.25, 0.1)}),
            "attribute": Policy(Attribute()),
        },
    ),
    Curves(
        "kmeans-skin01", "1% of the skin pixels, distance policies", SKIN,
        near({f"{theta}": theta for theta in (256, 128, 64, 32)}),
    ),
)  # fmt: skip


def figure_1(effort: Effort) -> Iterator[Panel]:
    """Measure k-means by Lloyd's noisy steps: cost over the best known one, by policy and epsilon.

    `no noise` has the same steps without any noise: what is above 1 there is a local minimum.
    """
    for curves in FIGURE_1[: effort.panels]:
        data = curves.data
        try:
            steps = data.steps(Path(os.environ.get("SHOAL_DATA", "")))
        except FileNotFoundError:
            continue
        least = float(NonPrivate(lloyd.K, n_init=10, random_state=0).fit(data.grid.restore(steps)).inertia_)
        found, rows = {}, []
        for name, policy in curves.policies.items():
            found[name] = [
                lloyd.measure(data, steps, policy, epsilon, least, effort.runs) for epsilon in effort.epsilons
            ]
            silent = lloyd.cost_of_run(data, steps, policy, 1.0, SeededNoise(0, factor=0)) / least
            medians = (f"{point.median:.3f}" for point in found[name])
            rows.append([name, *medians, f"{silent:.3f}"])
        header = ["policy", *(f"ε = {epsilon:g}" for epsilon in effort.epsilons), "no noise"]
        title = f"{curves.title}, n = {len(steps):,}"
        yield Panel(curves.name, header, rows, lloyd.draw(title, found))


@dataclass(frozen=True)
class Column(ranges.Column):
    """Latitudes of the airports in the box, on the paper's 400 values."""

    def counts(self, folder: Path) -> Counts | None:
        """Return how often each value occurs."""
        return Counts.of(self.grid.quantize(places(folder)[:, :1])[:, 0])


LATITUDE = Column("latitude", Grid((30.0,), (49.95,), 0.05))
THETAS: dict[str, tuple[ranges.Column, Mapping[str, int | None]]] = {
    "ranges-latitude": (LATITUDE, {"full": None, "500 km": 90, "50 km": 9, "5 km": 1}),
    "ranges-made-up": (ranges.MADE_UP, {ranges.label(theta): theta for theta in ranges.THETAS}),
    "ranges-capital-loss": (
        ranges.COLUMNS[0], {ranges.label(theta): theta for theta in ranges.THETAS}
    ),
}  # fmt: skip


def cumulative_error(
    column: ranges.Column, counts: Counts, theta: int | None, epsilon: float, runs: int
) -> float:
    """Return the mean squared error of all cumulative counts, after inference, with the real noise."""
    step = ranges.plan_of(column, theta, epsilon).rounds[0]
    assert isinstance(step, OrderedHierarchical)
    true = np.zeros(column.grid.extents[0] + 1, dtype=np.int64)
    true[counts.keys] = counts.counts
    true = true.cumsum()
    errors = [step.release(counts, None, SecureNoise()).counts - true for _ in range(runs)]
    return float(np.mean(np.square(errors)))


def figure_2(effort: Effort) -> Iterator[Panel]:
    """Measure the ordered hierarchical mechanism, fan-out 16: mean squared errors, by policy and epsilon."""
    for name, (column, thetas) in list(THETAS.items())[: effort.panels]:
        counts = column.counts(Path(os.environ.get("SHOAL_DATA", "")))
        if counts is None:
            continue
        found, rows, epsilon = {}, [], effort.epsilons[-1]
        for label, theta in thetas.items():
            found[label] = [
                ranges.measure(column, counts, theta, each, effort.trees) for each in effort.epsilons
            ]
            last = found[label][-1]
            cumulative = cumulative_error(column, counts, theta, epsilon, max(1, effort.trees // 4))
            errors = (last.published, last.expected, last.before, last.after, cumulative)
            rows.append([label, *(f"{error:,.1f}" for error in errors)])
        header = (
            "policy",
            "a range, Equation 13",
            "a range, Shoal's tree",
            "a range, before inference",
            "a range, after it",
            "a cumulative count, after it",
        )
        yield Panel(name, header, rows, ranges.draw(f"{column.name}: errors of ranges by policy", found))
