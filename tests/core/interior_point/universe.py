"""Plans of interior_point on universes of any size, larger than what a grid can hold too."""

from dataclasses import dataclass
from typing import Any, ClassVar

from core.budget import Budget
from core.interior_point.params import InteriorPoint
from core.interior_point.task import INTERIOR_POINT
from core.neighbors import Neighbors
from core.plan import Plan

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
BUDGET = Budget(1.0, 1e-6)
METHODS = ("exponential", "heavy_paths", "tree_log", "one_cluster")
HUGE = METHODS[:3]


@dataclass(frozen=True)
class Universe:
    """What plans see of a grid: one axis of so many points."""

    size: int
    dimension: ClassVar[int] = 1

    @property
    def extents(self) -> tuple[int]:
        """Largest point."""
        return (self.size - 1,)


def planned(method: Any, size: int, budget: Budget = BUDGET, neighbors: Neighbors = REPLACE) -> Plan:
    """Plan `method` on `size` points at failure 0.1; its finder is `plan.rounds[0].finder`."""
    universe: Any = Universe(size)
    return INTERIOR_POINT.plan(universe, InteriorPoint(method), budget, neighbors, bytes(16))
