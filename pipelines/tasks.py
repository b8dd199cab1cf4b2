"""The tasks: for each its parameters, its methods, and the module that explains its answers."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, cast, get_args

from core.task import Task as Methods
from pipelines.answers.answer import Answers

Keep = Literal["one", "mean"]
"""How the rows of a privacy unit become one record."""


@dataclass(frozen=True)
class Task:
    """One kind of job. Its modules are imported on first use, because some import heavy libraries.

    Args:
        params_at: `module:name` of the frozen dataclass of its parameters, which checks their values.
        methods_at: `module:name` of the `core.task.Task` with its methods.
        answers_at: name of the module that explains its answers.
        subsamples: whether its records are the answers of a function to subsamples, and not rows.
        keeps: how the rows of a privacy unit may become one record; empty where units are not supported.
    """

    params_at: str
    methods_at: str
    answers_at: str
    subsamples: bool = False
    keeps: tuple[Keep, ...] = get_args(Keep)

    @cached_property
    def params(self) -> type[Any]:
        """The frozen dataclass of the parameters."""
        return cast(type[Any], _load(self.params_at))

    @cached_property
    def methods(self) -> Methods[Any]:
        """The methods of the task, which plan it."""
        return cast(Methods[Any], _load(self.methods_at))

    @cached_property
    def answers(self) -> Answers:
        """The module that explains plans and releases of the task."""
        return cast(Answers, import_module(self.answers_at))


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


def _task(folder: str, params: str, task: str, answers: str, **more: Any) -> Task:
    """Return a task of a folder of core, by the names of its params, its `core.task.Task` and its answers."""
    return Task(f"core.{folder}.params:{params}", f"core.{folder}.task:{task}", _ANSWERS + answers, **more)


_ANSWERS = "pipelines.answers."

TASKS = {
    "one_cluster": _task("one_cluster", "OneCluster", "ONE_CLUSTER", "one_cluster"),
    "k_cover": _task("k_cover", "KCover", "K_COVER", "k_cover"),
    "histogram": _task("histogram", "Histogram", "HISTOGRAM", "histogram"),
    "cdf": _task("cdf", "Cdf", "CDF", "cdf"),
    "quantiles": _task("quantiles", "Quantiles", "QUANTILES", "quantiles"),
    "interior_point": _task("interior_point", "InteriorPoint", "INTERIOR_POINT", "interior_point"),
    "threshold": _task("threshold", "Threshold", "THRESHOLD", "threshold", keeps=("one",)),
    "k_means": _task("centers", "KMeans", "K_MEANS", "centers"),
    "k_median": _task("centers", "KMedian", "K_MEDIAN", "centers"),
    "median": _task("quantiles", "Median", "MEDIAN", "order_statistic"),
    "minimum": _task("quantiles", "Minimum", "MINIMUM", "order_statistic"),
    "triangles": _task("graphs", "Triangles", "TRIANGLES", "graph_statistic", keeps=()),
    "mst_cost": _task("graphs", "MstCost", "MST_COST", "graph_statistic", keeps=()),
    "sample_and_aggregate": Task(
        "pipelines.job.subsamples:Analysis",
        "core.sample_and_aggregate.task:SAMPLE_AND_AGGREGATE",
        "pipelines.answers.sample_and_aggregate",
        subsamples=True,
    ),
}
