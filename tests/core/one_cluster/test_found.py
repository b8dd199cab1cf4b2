"""What the 1-cluster answers, in data units."""

import numpy as np
import pytest

from core.domain import Ball, Grid
from core.one_cluster.found import Found, NotFound, Result


def test_results_are_in_data_units():
    grid = Grid((-90.0, -180.0), (90.0, 180.0), 0.001, Ball((0.0, 0.0), 200.0))
    found = Found(np.array([90_000, 190_000]), 1500, 7).result(grid)
    assert found == Result(pytest.approx((0.0, 10.0)), pytest.approx(1.5), 7)
    assert NotFound().result(grid) is None
