"""The choices of a plan of the practical 1-cluster, however many passes they take."""

from typing import Any

from core.one_cluster.practical.locate import FindRadiusAndRegion


def steps(plan: Any) -> list[Any]:
    """Return the rounds; of one that chooses level and region, the choice of each."""
    first, *others = plan.rounds
    if isinstance(first, FindRadiusAndRegion):
        return [first.radius, first.region, *others]
    return [first, *others]
