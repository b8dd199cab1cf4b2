"""The sparse histogram: exact privacy, and which cells appear."""

import math

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.histogram.cells import Cells
from core.histogram.params import Histogram
from core.histogram.sparse import SparseHistogram
from core.histogram.task import HISTOGRAM
from core.mechanisms.stability import StabilityHistogram
from core.policy import Distance
from core.rounds import run_in_memory
from tests.core.exact import at_least, excess, fits, laplace_mass
from tests.core.histogram.square import ONE, REPLACE, SQUARE, block, under
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("neighbors", [ONE, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-5), Budget(0.5, 1e-3)])
def test_sparse_privacy_is_exact(neighbors, budget):
    """The distribution of one cell's release before and after, against epsilon and delta."""
    plan = HISTOGRAM.plan(SQUARE, Histogram(cells=2, method="sparse"), budget, neighbors, bytes(16))
    scale, threshold = plan.rounds[0].count.scale, plan.rounds[0].count.threshold
    support, mass = laplace_mass(scale, 400)

    def output(count):
        """Probability of every noisy count from the threshold up, and of no release first."""
        seen = np.zeros(1000)
        if count == 0:
            seen[0] = 1
            return seen
        seen[support + count + 450] = mass
        seen[: threshold + 450] = 0
        seen[0] = 1 - seen.sum()
        return seen

    each = budget.epsilon / neighbors.changes
    losses = [excess(output(a), output(b), each) for a, b in ((1, 0), (0, 1), (2, 1), (5, 4), (4, 5))]
    assert max(losses) <= budget.delta
    assert max(losses) > budget.delta * math.exp(-1 / scale) * 0.999  # one lower would be too low
    assert excess(output(60), output(59), 0.9 * each) > budget.delta  # and so would the scale
    assert plan.mechanisms[0].delta == pytest.approx(max(losses))
    assert plan.spend.epsilon == budget.epsilon


def test_sparse_cells_appear_as_often_as_they_should():
    """4000 cells of 20 records, flake rate 1e-6."""
    grid = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-20)
    cells, scale, threshold, floor = Cells(grid, (2**16, 2**16)), 4.0, 12, 5
    count = StabilityHistogram(what="cells", scale=scale, threshold=threshold, l1=1)
    step = SparseHistogram(cells, count, floor)
    keys = np.arange(4000) * 10**6
    aggregate = Counts(keys, np.full(4000, 20)).above(floor)
    found = step.release(aggregate, None, SeededNoise(7))
    chance = float(at_least(np.array([threshold - 15]), scale)[0])
    assert fits(np.array([len(found.keys), 4000 - len(found.keys)]), np.array([chance, 1 - chance]))
    assert found.counts.min() >= threshold + floor
    assert np.isin(found.keys, keys).all()


def test_billions_of_cells():
    grid = Grid((-90.0, -180.0), (90.0, 180.0), 0.001)
    plan = HISTOGRAM.plan(grid, Histogram(cells=(180_000, 360_000)), Budget(1.0, 1e-6), ONE, bytes(16))
    assert plan.method == "sparse"
    rng = np.random.default_rng(0)
    points = np.concatenate([np.tile([123_456, 54_321], (500, 1)), rng.integers(0, 180_000, (20_000, 2))])
    table = run_in_memory(plan.rounds, [block(points)], None, SeededNoise(1)).table(grid)
    assert len(table["count"]) == 1
    assert abs(table["count"][0] - 500) <= plan.promises["cell_error"]
    assert table["lower_0"][0] <= 33.456 < table["upper_0"][0] + 1e-9
    assert table["cell_1"][0] == 54_321


def test_thresholds_follow_the_relation():
    one, two = (StabilityHistogram.of("any", 0.7, 1e-6, relation) for relation in (ONE, under(Distance(1))))
    assert one.threshold < two.threshold


@pytest.mark.parametrize("failure", [0.3, 0.05])
def test_cells_of_as_many_records_as_promised_are_all_released(failure):
    """Every cell has just so many: exactly, with the probability of the noise of all of them."""
    params = Histogram(cells=(6, 4), method="sparse", failure=failure, floor=3)
    plan = HISTOGRAM.plan(SQUARE, params, Budget(1.0, 1e-4), ONE, bytes(16))
    draw, records = plan.rounds[0].count, plan.promises["released_from"] - 3
    missed = [
        1 - at_least(np.array([draw.threshold - count]), draw.scale)[0] ** 24
        for count in (records, records - 1)
    ]
    assert missed[0] <= failure
    assert missed[1] > failure / 4
