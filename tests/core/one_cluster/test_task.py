"""Which method of the 1-cluster serves what, and which one auto takes."""

import pytest

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.task import ONE_CLUSTER
from core.policy import KnownCount, Policy

GRID = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10)
BUDGET = Budget(1.0, 1e-6)
REPLACE = Neighbors("replace_one")


def plan_for(budget=BUDGET, neighbors=REPLACE, **params):
    return ONE_CLUSTER.plan(GRID, OneCluster(**{"target": 400} | params), budget, neighbors, bytes(16))


@pytest.mark.parametrize("budget", [BUDGET, Budget(16.0, 1e-3), Budget(1e-6, 1e-9)])
@pytest.mark.parametrize("target", [1, 400, 10**12])
@pytest.mark.parametrize("shares", [None, {"count": 1e6}])
def test_auto_is_practical_and_tells_what_the_paper_needs(budget, target, shares):
    """Also where the practical method serves no target: the paper's takes too long on most data."""
    plan = plan_for(budget, target=target, shares=shares)
    assert plan.method == plan.chosen.best == "practical"
    paper = plan_for(budget, target=target, method="paper")
    assert plan.alternatives == {"paper": {**paper.promises, "smallest_target": paper.smallest_target}}
    assert paper.alternatives["practical"]["count_error"] is not None


@pytest.mark.parametrize(
    ("budget", "neighbors"),
    [
        (BUDGET, Neighbors("add_or_remove_one")),
        (Budget(17.0, 1e-6), REPLACE),
    ],
)
def test_the_paper_is_no_alternative_where_it_does_not_serve(budget, neighbors):
    assert plan_for(budget, neighbors).alternatives == {}


@pytest.mark.parametrize("epsilon", [1e-17, 1e-300])
def test_noise_that_hides_everything_is_refused(epsilon):
    with pytest.raises(ValueError, match="hides everything; a larger epsilon or step"):
        plan_for(Budget(epsilon, 1e-6))


@pytest.mark.parametrize("method", ["auto", "practical", "paper"])
def test_what_no_method_serves_is_refused(method):
    counts = Neighbors("replace_one", Policy(constraints=(KnownCount((0, 0), (5, 5), 3),)))
    with pytest.raises(ValueError, match=r"delta is 0: .* chooses among boxes"):
        plan_for(Budget(1.0, 0.0), method=method)
    with pytest.raises(ValueError, match="constraints is set"):
        plan_for(neighbors=counts, method=method)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"target": 0}, "target is 0: it must be a whole number from 1"),
        ({"failure": 1.0}, "failure is 1.0"),
        ({"shares": {"luck": 1.0}}, "shares has 'luck': its keys are good_radius, good_center, average_1, "),
        ({"shares": {"count": 0.0}}, "shares.count is 0.0: it must be from 1e-12 to 1e6"),
        ({"shares": {"good_center": 1e-320}}, "shares.good_center is 1e-320: it must be from"),
        ({"shares": {"fit_radius": 1e308}}, r"shares.fit_radius is 1e\+308: it must be from"),
        ({"shares": {"count": float("nan")}}, "shares.count is nan: it must be from"),
    ],
)
def test_wrong_parameters_are_refused(values, says):
    with pytest.raises(ValueError, match=f"^{says}"):
        OneCluster(**{"target": 400} | values)
