"""The targets of a cover, round after round."""

from dataclasses import replace

import numpy as np

from core.budget import Budget
from core.k_cover.found import Cover
from core.k_cover.rounds import Target
from core.neighbors import Neighbors
from core.one_cluster.found import Found

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
