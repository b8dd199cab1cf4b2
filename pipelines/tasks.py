"""The tasks: for each its parameters, its methods, and the module that explains its answers."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, cast, get_args

from core.task import Task as CoreTask
from pipelines.answers.answer import Answers
from transforms.keep import Keep


@dataclass(frozen=True)
class Task:
    """One kind of job. Its modules are imported on first use, because some import heavy libraries.

    Args:
        task_at: `module:name` of the task in core: its parameters, and who plans it.
        answers_at: name of the module that explains its answers.
        params_at: `module:name` of its parameters, where they are more than core's.
        subsamples: whether its records are answers of a function to subsamples, not rows.
        job_at: `module:name` of the model of its jobs, where they are more than those of other tasks.
        keeps: how the rows of a privacy unit may become one record; empty where units are not supported.
        times: whether its columns may be of dates or timestamps.
        columns: what the columns of an example are; their number is one that the task takes.
        labels: whether its second column is a label, which is a number also beside dates.
        metric: whether it is about distances between rows, so that its columns may be latitude and longitude.
        pure: whether a first job has delta 0, because its methods rarely gain by more.
    """

    task_at: str
    answers_at: str
    params_at: str | None = None
    subsamples: bool = False
    job_at: str | None = None
    keeps: tuple[Keep, ...] = get_args(Keep)
    times: bool = True
    columns: tuple[str, ...] = ("value",)
    labels: bool = False
    metric: bool = False
    pure: bool = False

    @cached_property
    def core(self) -> CoreTask[Any]:
        """The task as core knows it."""
        return cast("CoreTask[Any]", _load(self.task_at))

    @cached_property
    def params(self) -> type[Any]:
        """The frozen dataclass of the task's own parameters, which checks its values."""
        return self.core.params if self.params_at is None else cast(type[Any], _load(self.params_at))

    @cached_property
    def job(self) -> Any:
        """The model of its jobs; None where it is that of other tasks."""
        return None if self.job_at is None else _load(self.job_at)

    @property
    def promises(self) -> type[Any]:
        """The dataclass of what its methods promise."""
        return cast(type[Any], _load(f"{self.task_at.rpartition('.')[0]}.found:Promises"))

    @cached_property
    def answers(self) -> Answers:
        """The module that explains plans and releases of the task."""
        return cast(Answers, import_module(self.answers_at))


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


_CORE, _HERE = CoreTask.__module__.removesuffix(".task"), __name__.removesuffix(".tasks")
"""Names of the packages, which are below `shoal` where they are installed."""

_PLANE = ("x", "y")
_GROUPS = f"{_HERE}.job.groups:RowsByGroupJob"


def _task(place: str, answers: str, job_at: str | None = _GROUPS, **more: Any) -> Task:
    return Task(f"{_CORE}.{place}", f"{_HERE}.answers.{answers}", job_at=job_at, **more)


TASKS = {
    "one_cluster": _task("one_cluster.task:ONE_CLUSTER", "one_cluster", columns=_PLANE, metric=True),
    "k_cover": _task("k_cover.task:K_COVER", "k_cover", columns=_PLANE, metric=True),
    "histogram": _task("histogram.task:HISTOGRAM", "histogram"),
    "cdf": _task("cdf.task:CDF", "cdf"),
    "ranges": _task("ranges.task:RANGES", "ranges", columns=_PLANE, pure=True),
    "quantiles": _task("quantiles.task:QUANTILES", "quantiles", pure=True),
    "interior_point": _task("interior_point.task:INTERIOR_POINT", "interior_point"),
    "threshold": _task(
        "threshold.task:THRESHOLD",
        "threshold",
        keeps=("one", "last"),
        columns=("value", "label"),
        labels=True,
        pure=True,
    ),
    "k_means": _task("centers.task:K_MEANS", "centers", columns=_PLANE, metric=True),
    "k_median": _task("centers.task:K_MEDIAN", "centers", columns=_PLANE, metric=True),
    "median": _task("quantiles.task:MEDIAN", "order_statistic", pure=True),
    "minimum": _task("quantiles.task:MINIMUM", "order_statistic", pure=True),
    "bounds": _task(
        "bounds.task:BOUNDS", "bounds", f"{_HERE}.job.bounds_job:BoundsJob", times=False, pure=True
    ),
    "triangles": _task(
        "graphs.task:TRIANGLES", "graph_statistic", None, keeps=(), times=False, columns=("u", "v")
    ),
    "mst_cost": _task(
        "graphs.task:MST_COST", "graph_statistic", None, keeps=(), times=False, columns=("u", "v", "weight")
    ),
    "statistics": _task(
        "statistics.task:STATISTICS",
        "statistics",
        params_at=f"{_CORE}.statistics.params:Asked",
        job_at=f"{_HERE}.job.groups:StatisticsJob",
    ),
    "sample_and_aggregate": _task(
        "sample_and_aggregate.task:SAMPLE_AND_AGGREGATE",
        "sample_and_aggregate",
        params_at=f"{_HERE}.job.subsamples:Analysis",
        job_at=f"{_HERE}.job.subsamples_job:SubsamplesJob",
        subsamples=True,
        columns=_PLANE,
    ),
}
