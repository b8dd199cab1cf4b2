"""The tasks that exist: the parameters of each, and who plans it."""

from dataclasses import dataclass
from typing import Any, Protocol

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.plan import plan_one_cluster
from core.plan import Plan


class Planner(Protocol):
    """Turn public parameters into a plan."""

    def __call__(self, grid: Grid, params: Any, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
        """Return the plan; a ValueError is one sentence that names the field."""


@dataclass(frozen=True)
class Task:
    """One kind of job.

    Args:
        params: frozen dataclass of the task's own parameters; it checks its values.
        plan: the task's planner.
    """

    params: type[Any]
    plan: Planner


TASKS = {"one_cluster": Task(OneCluster, plan_one_cluster)}
