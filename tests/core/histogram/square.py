"""A small square, its records and its relations, for tests of the histogram."""

import numpy as np

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.policy import Policy
from core.rounds import Block

BUDGET = Budget(0.7, 1e-6)
ONE, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
SQUARE = Grid((0.0, 0.0), (6.0, 4.0), 1.0)


def block(points):
    points = np.asarray(points, dtype=np.int64)
    points = points.reshape(-1, 2) if points.size == 0 else points
    return Block(points, np.arange(len(points), dtype=np.uint64))


def under(secrets, *constraints, semantics="literal"):
    return Neighbors("replace_one", Policy(secrets, constraints, semantics))
