"""The targets of a cover, round after round."""

import math
from dataclasses import replace

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Grid
from core.k_cover.found import Cover
from core.k_cover.params import KCover
from core.k_cover.repeated import Repeated
from core.k_cover.rounds import Target
from core.k_cover.task import K_COVER
from core.neighbors import Neighbors
from core.one_cluster.found import Found
from core.one_cluster.practical.guarantee import serves
from core.task import Setting

BUDGET = Budget(1.0, 1e-6)
ONE, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
RELATIONS = [ONE, REPLACE]
SALT = b"a salt of 16 byt"
MODES = [{"target": 1900}, {"target": 9000}, {"coverage": 0.8}]


def test_targets_follow_from_the_count_and_the_balls_so_far():
    ball = Found(np.zeros(1, dtype=np.int64), 1, 300)
    target = Target(k=3, each=None, coverage=0.9)
    assert target.of(Cover(rows=1000)) == 300
    assert target.of(Cover((ball,), 1000)) == 300
    assert target.of(Cover((replace(ball, count=700),), 1000)) == 100
    assert target.of(Cover((replace(ball, count=950),), 1000)) == 0
    assert target.of(Cover((ball,) * 3, 1000)) == 0
    assert target.of(Cover(rows=0)) == 0
    assert Target(3, 77, None).of(Cover((ball,), None)) == 77


@pytest.mark.parametrize("k", [1, 4])
def test_the_number_of_rows_has_a_part_of_the_failure_as_each_ball_has(k):
    grid = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10)
    plan = K_COVER.plan(grid, KCover(k, coverage=0.5, failure=0.2), BUDGET, ONE, SALT)
    count, rows_error = plan.rounds[0].count, plan.promises["rows_error"]
    a = math.exp(-1 / count.scale)
    exceeds = [2 * a ** (m + 1) / (1 + a) for m in (rows_error, rows_error - 3)]
    assert exceeds[0] <= 0.2 / (k + 1) < 1.3 * exceeds[1]
    needed = math.ceil(plan.smallest_target * k / 0.5)
    assert any(f"so {needed:,} rows in all" in note for note in plan.notes)
    assert f"1 / {5 * (k + 1)}" in plan.tightness["count_error"].says


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 3), (5.0, 2)])
def test_where_rows_are_counted_the_smallest_target_is_that_of_the_planned_noise(epsilon, k):
    """The noise is planned before any target is known, so it is not that of the target's own plan."""
    grid, params = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10), KCover(k, coverage=0.5)
    method = Repeated(Setting(grid, params, Budget(epsilon, 1e-6), ONE, SALT))
    smallest, draws = method.accuracy(1.0).smallest_target, method._split(1.0).draws(1.0)
    assert [serves(method._split(1.0, target), draws) for target in (smallest - 1, smallest)] == [False, True]
