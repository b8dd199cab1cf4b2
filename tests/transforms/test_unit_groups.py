"""Which groups a unit keeps, where names of groups have one hash."""

import itertools

import numpy as np

from transforms.unit_groups import GroupNames, UnitGroups

SALT = b"sixteen secrets!"


def test_of_groups_of_one_hash_a_unit_keeps_those_of_the_smaller_names() -> None:
    """Places of names do not decide: they follow from the rows of other units, which may arrive earlier."""
    unit, identity, groups = np.zeros(3, np.int64), np.array([5], np.uint64), np.arange(3)
    for ranks in itertools.permutations(range(3)):
        names = GroupNames(np.full(3, 7, np.uint64), np.array(ranks))
        for most in (1, 2):
            kept = UnitGroups.of(unit, identity, groups, names, most, SALT).keep()
            assert kept.tolist() == [rank < most for rank in ranks]
