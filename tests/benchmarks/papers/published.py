"""Figure 1 of the Blowfish paper with the noise that its Lemma 6.1 states. It is not private.

The lemma lets a sum of records change by twice the distance, also where a move crosses the border between two
clusters. That is wrong, so this serves for comparison alone: it shows which part of the published gain of a
policy rests on the lemma. Under full privacy the noise is private.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as NonPrivate

from core.budget import Budget
from core.centers.params import KMeans
from core.centers.task import K_MEANS
from core.secure_noise import secret_salt
from tests.benchmarks import lloyd_policies as lloyd
from tests.benchmarks.centers import cost
from tests.benchmarks.one_cluster import NEIGHBORS
from tests.benchmarks.papers.blowfish import AIRPORTS, BOX, KM
from tests.benchmarks.papers.panel import Effort, Panel

STEPS = 10
DIAMETER = float(sum(BOX.extents))
"""Of the box, L1, grid steps."""
DISTANCES = {"full": DIAMETER, **{f"{km:,} km": km * KM for km in (2000, 1000, 500, 100)}}

Floats = NDArray[np.float64]


def as_published(
    points: Floats, start: Floats, reach: float, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return centers after ten steps of SuLQ k-means, pure epsilon, half of each step's for the sizes.

    Args:
        points: shape (n, d), grid steps.
        start: public centers, shape (k, d).
        reach: distance of the policy, L1 grid steps; sums get Laplace noise for a change of twice as much.
        epsilon: of all steps together.
        rng: draws the noise.
    """
    centers, each = start, epsilon / STEPS / 2
    for _ in range(STEPS):
        nearest = ((points[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)
        sizes = np.bincount(nearest, minlength=len(centers)) + rng.laplace(0, 2 / each, len(centers))
        sums = np.stack([points[nearest == j].sum(axis=0) for j in range(len(centers))])
        sums += rng.laplace(0, 2 * min(reach, DIAMETER) / each, sums.shape)
        centers = np.clip(sums / np.maximum(sizes, 1)[:, None], 0, BOX.extents)
    return centers


def figure_1_as_published(effort: Effort) -> Iterator[Panel]:
    """Measure it on the airports, from the public centers that Shoal starts at; and Shoal with no delta."""
    steps = AIRPORTS.steps(Path())
    values = BOX.restore(steps)
    least = float(NonPrivate(lloyd.K, n_init=10, random_state=0).fit(values).inertia_)
    plan = K_MEANS.plan(BOX, KMeans(lloyd.K, method="lloyd"), Budget(1.0, 1e-6), NEIGHBORS, secret_salt())
    lower = np.array(BOX.lower)
    start = (np.array(plan.start.result(BOX).centers) - lower) / BOX.step
    found, points = {}, steps.astype(np.float64)
    for name, reach in DISTANCES.items():
        found[name] = []
        for epsilon in effort.epsilons:
            rng = np.random.default_rng([round(1000 * epsilon), round(reach)])
            runs = (as_published(points, start, reach, epsilon, rng) for _ in range(effort.runs))
            ratios = [cost(values, lower + centers * BOX.step, 2) / least for centers in runs]
            found[name].append(lloyd.Point(epsilon, *map(float, np.quantile(ratios, [0.25, 0.5, 0.75]))))
    found["full, Shoal, δ = 0"] = [
        lloyd.measure(AIRPORTS, steps, None, epsilon, least, effort.runs, 0.0) for epsilon in effort.epsilons
    ]
    header = ["policy", *(f"ε = {epsilon:g}" for epsilon in effort.epsilons)]
    rows = [[name, *(f"{point.median:.3f}" for point in curve)] for name, curve in found.items()]
    svg = lloyd.draw(f"airports, noise as published, and Shoal's, n = {len(steps):,}", found)
    yield Panel("published-kmeans", header, rows, svg)
