"""What a cover may be asked for."""

import math

import pytest

from core.budget import Budget
from core.k_cover.params import KCover
from core.neighbors import Neighbors

BUDGET = Budget(1.0, 1e-6)
ONE, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
RELATIONS = [ONE, REPLACE]
SALT = b"a salt of 16 byt"
MODES = [{"target": 1900}, {"target": 9000}, {"coverage": 0.8}]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"k": 0, "target": 5}, r"k is 0"),
        ({"k": 51, "target": 5}, r"k is 51"),
        ({"k": 2}, "give one of them"),
        ({"k": 2, "target": 5, "coverage": 0.5}, "give one of them"),
        ({"k": 2, "target": 0}, r"target is 0"),
        ({"k": 2, "coverage": 1.5}, r"coverage is 1\.5"),
        ({"k": 2, "coverage": math.nan}, r"coverage is nan"),
        ({"k": 2, "target": 5, "failure": 1.0}, r"failure is 1\.0"),
        ({"k": 2, "target": 5, "shares": {"fit_radius": 0.0}}, r"shares\.fit_radius is 0\.0"),
    ],
)
def test_wrong_parameters_are_refused(values, says):
    with pytest.raises(ValueError, match=says):
        KCover(**values)
