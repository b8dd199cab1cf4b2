"""A policy of a job in grid steps."""

import pytest

from core.domain import Grid
from core.policy import KnownCount
from pipelines.job.policy import JobKnownCount, JobPolicy

GRID = Grid((0.0, -4.0), (9.0, 4.0), 1.0)


@pytest.mark.parametrize(
    ("lower", "upper", "low", "high"),
    [
        ((2.3, -1.7), (6.7, 1.7), (3, 3), (6, 5)),
        ((2.6, -1.2), (6.2, 1.2), (3, 3), (6, 5)),
        ((2.0, -4.0), (6.0, 4.0), (2, 0), (6, 8)),
        ((-7.5, -9.0), (30.0, 1.0000001), (0, 0), (9, 5)),
    ],
    ids=["between", "beyond the middle", "on the grid", "outside"],
)
def test_a_public_count_is_of_the_grid_points_in_its_box_alone(lower, upper, low, high):
    """Not of the nearest one outside: whether rows are there is secret."""
    box = JobKnownCount(lower=lower, upper=upper, count=7)
    (known,) = JobPolicy(secrets="full", constraints=(box,)).build(GRID).constraints
    assert known == KnownCount(low, high, 7)
