"""Plan the k-centers tasks: pick the method."""

from core.budget import Budget
from core.centers.coreset_plan import plan_coreset
from core.centers.lloyd_plan import plan_lloyd
from core.centers.params import KMeans, KMedian
from core.centers.parts import Parts
from core.centers.space import Space
from core.domain import Grid
from core.neighbors import Neighbors
from core.plan import Plan
from core.policy import Partition


def plan_k_means(grid: Grid, params: KMeans, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan `params.method`; `auto` is the coreset, or `lloyd` under a partition policy of small parts.

    The coreset knows no policies: its noise hides any replacement, which serves every policy without
    constraints. Under a partition policy the counts of the parts are free, and where parts are small
    nothing else equals that.

    Args:
        grid: the universe.
        params: how many centers, and the method.
        budget: what the run may spend.
        neighbors: the relation.
        salt: 16 secret bytes; no sample is drawn, so they are not used.

    Raises:
        ValueError: the method does not support the relation, its policy or the budget.
    """
    grid.check_distances()
    if neighbors.policy is not None:
        neighbors.policy.check(grid.extents)
    if params.method == "lloyd" or (params.method == "auto" and _has_small_parts(grid, neighbors)):
        return plan_lloyd(grid, params, budget, neighbors)
    return plan_coreset(grid, params, budget, neighbors)


def plan_k_median(grid: Grid, params: KMedian, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan k-median by a coreset; see `plan_k_means`."""
    grid.check_distances()
    return plan_coreset(grid, params, budget, neighbors)


def _has_small_parts(grid: Grid, neighbors: Neighbors) -> bool:
    if not isinstance(neighbors.secrets, Partition):
        return False
    parts = Parts(Space(grid), neighbors.secrets)
    return parts.can_be_numbered and parts.diameter <= parts.space.reach / 3
