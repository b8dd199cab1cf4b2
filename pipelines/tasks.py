"""The tasks that exist: the parameters of each, who plans it, and how it speaks."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, Protocol, cast, get_args

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.plan import Plan
from core.task import Task as CoreTask
from pipelines.answers.answer import Answers

Keep = Literal["one", "mean"]
"""How the rows of a privacy unit become one record."""


class Planner(Protocol):
    """Turn public parameters into a plan."""

    def __call__(self, grid: Grid, params: Any, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
        """Return the plan; a ValueError is one sentence that names the field."""


@dataclass(frozen=True)
class Task:
    """One kind of job; its parts are imported when they are used, as some bring heavy libraries.

    Args:
        params_at: `module:name` of the frozen dataclass of its own parameters, which checks its values.
        plan_at: `module:name` of its planner.
        answers_at: module of how it speaks.
        subsamples: whether its records are answers of a function to subsamples, not rows.
        keeps: what may become of the rows of a privacy unit here; nothing where a row is no one's alone.
    """

    params_at: str
    plan_at: str
    answers_at: str
    subsamples: bool = False
    keeps: tuple[Keep, ...] = get_args(Keep)

    @cached_property
    def params(self) -> type[Any]:
        """The frozen dataclass of the task's own parameters."""
        return cast(type[Any], _load(self.params_at))

    @cached_property
    def plan(self) -> Planner:
        """The task's planner."""
        planner = _load(self.plan_at)
        return cast(Planner, planner.plan if isinstance(planner, CoreTask) else planner)

    @cached_property
    def answers(self) -> Answers:
        """How the task speaks."""
        return cast(Answers, import_module(self.answers_at))


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


def _task(params_at: str, plan_at: str, answers: str, **more: Any) -> Task:
    return Task(f"core.{params_at}", f"core.{plan_at}", f"pipelines.answers.{answers}", **more)


TASKS = {
    "one_cluster": _task("one_cluster.params:OneCluster", "one_cluster.task:ONE_CLUSTER", "one_cluster"),
    "k_cover": _task("k_cover.params:KCover", "k_cover.task:K_COVER", "k_cover"),
    "histogram": _task("histogram.params:Histogram", "histogram.task:HISTOGRAM", "histogram"),
    "cdf": _task("cdf.params:Cdf", "cdf.task:CDF", "cdf"),
    "quantiles": _task("quantiles.params:Quantiles", "quantiles.task:QUANTILES", "quantiles"),
    "interior_point": _task(
        "interior_point.params:InteriorPoint", "interior_point.task:INTERIOR_POINT", "interior_point"
    ),
    "threshold": _task("threshold.params:Threshold", "threshold.task:THRESHOLD", "threshold", keeps=("one",)),
    "k_means": _task("centers.params:KMeans", "centers.task:K_MEANS", "centers"),
    "k_median": _task("centers.params:KMedian", "centers.task:K_MEDIAN", "centers"),
    "median": _task("quantiles.params:Median", "quantiles.task:MEDIAN", "single_value"),
    "minimum": _task("quantiles.params:Minimum", "quantiles.task:MINIMUM", "single_value"),
    "triangles": _task("graphs.params:Triangles", "graphs.task:TRIANGLES", "single_value", keeps=()),
    "mst_cost": _task("graphs.params:MstCost", "graphs.task:MST_COST", "single_value", keeps=()),
    "sample_and_aggregate": Task(
        "pipelines.job.subsamples:Analysis",
        "core.sample_and_aggregate.task:SAMPLE_AND_AGGREGATE",
        "pipelines.answers.sample_and_aggregate",
        subsamples=True,
    ),
}
