"""Plans of one value: grids, budgets, and a run of a plan on given grid points."""

import numpy as np

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.rounds import Block, run_in_memory
from tests.core.seeded import SeededNoise

RELATIONS = [Neighbors("add_or_remove_one"), Neighbors("replace_one")]
SMALL = Grid((0.0,), (100.0,), 0.5)
LARGE = Grid((-1e6,), (1e6,), 1e-3)
PURE = Budget(1.0, 0.0)


def block(steps):
    points = np.asarray(steps, dtype=np.int64).reshape(-1, 1)
    return Block(points, np.arange(len(points), dtype=np.uint64))


def released(plan, steps, seed=0):
    return run_in_memory(plan.rounds, [block(steps)], plan.start, SeededNoise(seed))


def value(plan, grid, steps, seed=0):
    return released(plan, steps, seed).result(grid).value
