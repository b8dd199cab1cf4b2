"""Plans of quantiles, and how far their answers are from the ranks."""

import numpy as np

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.quantiles.params import Quantiles
from core.quantiles.task import QUANTILES
from core.rounds import Block, run_in_memory

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
GRID = Grid((0.0,), (999.0,), 1.0)
NINE = tuple(i / 10 for i in range(1, 10))
METHODS = ["recursive", "tree"]


def plan_for(probabilities=NINE, method="recursive", budget=None, neighbors=ADD, grid=GRID):
    params = Quantiles(probabilities, method)
    return QUANTILES.plan(grid, params, budget or Budget(1.0, 1e-6), neighbors, bytes(16))


def release(plan, points, noise):
    points = np.asarray(points, dtype=np.int64)
    block = Block(points[:, None], np.arange(len(points), dtype=np.uint64))
    return run_in_memory(plan.rounds, [block], plan.start, noise)


def rank_errors(points, found):
    """Distance of p n from the ranks of each released point, in records."""
    points, steps = np.sort(points), np.array(found.steps)
    low, high = (np.searchsorted(points, steps, side) for side in ("left", "right"))
    ranks = np.array(found.probabilities) * len(points)
    return np.maximum(0, np.maximum(low - ranks, ranks - high))
