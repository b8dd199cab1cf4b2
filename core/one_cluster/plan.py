"""Plan the 1-cluster task: pick the method."""

from dataclasses import replace

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.one_cluster.paper.plan import plan_paper
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.plan import plan_practical
from core.plan import Plan


def plan_one_cluster(
    grid: Grid, params: OneCluster, budget: Budget, neighbors: Neighbors, salt: bytes
) -> Plan:
    """Plan `params.method`; `auto` is the practical one, whose promise starts at far smaller targets.

    Args:
        grid: the universe.
        params: target, failure probability and method.
        budget: what the run may spend.
        neighbors: the relation.
        salt: 16 secret bytes that choose samples.

    Raises:
        ValueError: the method does not support the relation or the budget.
    """
    if params.method == "paper":
        return plan_paper(grid, params, budget, neighbors, salt)
    plan = plan_practical(grid, params, budget, neighbors, salt)
    if params.method == "practical" or neighbors.name != "replace_one":
        return plan
    try:
        paper = plan_paper(grid, replace(params, shares=None), budget, neighbors, salt)
    except ValueError:  # the published method does not serve this budget: nothing to compare with
        return plan
    return replace(
        plan,
        alternatives={"paper": {"smallest_target": paper.smallest_target, **paper.promises}},
        notes=(*plan.notes, f"The published constants would need a target of {paper.smallest_target:,}."),
    )
