"""A policy of a job in grid steps."""

import pytest

from core.domain import Grid
from core.policy import Distance, Graph, KnownCount
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


def test_a_public_count_may_be_of_the_edge_of_the_domain_alone():
    for lower, upper, point in (((9, 4), (30, 30), (9, 8)), ((-30, -30), (0, -4), (0, 0))):
        box = JobKnownCount(lower=lower, upper=upper, count=7)
        (known,) = JobPolicy(secrets="full", constraints=(box,)).build(GRID).constraints
        assert known == KnownCount(point, point, 7)
    beyond = JobKnownCount(lower=(9.1, 4), upper=(30, 30), count=7)
    with pytest.raises(ValueError, match="lies outside the domain"):
        JobPolicy(secrets="full", constraints=(beyond,)).build(GRID)


@pytest.mark.parametrize("step", [2.0**-30, 1.0, 2.0**20])
def test_a_length_is_a_whole_number_of_steps_whatever_their_width(step):
    """But for rounding, of a millionth of a step."""
    grid = Grid((0.0,), (100 * step,), step)
    for close in (1 - 1e-8, 1, 1 + 1e-8):
        assert JobPolicy(distance=3 * close * step).build(grid).secrets == Distance(3)
    for steps in (0.5, 1.5, 3.001):
        with pytest.raises(ValueError, match=r"it must be 1, 2, 3, \.\.\. times domain.step"):
            JobPolicy(distance=steps * step).build(grid)


def test_ends_of_a_secret_pair_are_the_nearest_points():
    policy = JobPolicy(graph=(((0.4, -4.0), (0.6, -3.4)),))
    assert policy.build(GRID).secrets == Graph((((0, 0), (1, 1)),))
