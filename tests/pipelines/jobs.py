"""A small job of every task, as changes to the bench's."""

import copy
from typing import Any

from pipelines.job.groups import GroupsJob
from pipelines.tasks import TASKS

LINE = {"input.columns": ["x"], "domain.lower": [0], "domain.upper": [1]}
REPLACED = {"privacy.neighbors": "replace_one"}

JOBS: dict[str, dict[str, Any]] = {
    "one_cluster": {},
    "histogram": {"params": {"cells": [8, 8]}},
    "cdf": {**LINE, "params": {"ranges": [[0.25, 0.5]]}},
    "ranges": {"params": {"ranges": [[[0.25, 0.5], [0.0, 1.0]]]}},
    "quantiles": {**LINE, "params": {"probabilities": [0.1, 0.5, 0.9]}},
    "interior_point": {**LINE, "params": {}},
    "threshold": {"params": {}},
    "k_means": {"params": {"k": 3}},
    "k_median": {"params": {"k": 3}},
    "median": {**LINE, "params": {}},
    "minimum": {**LINE, "params": {"largest": True}},
    "bounds": {**LINE, "params": {}},
    "statistics": {"params": {"measures": ["count", "units", "sum", "mean", "variance"]}},
    "triangles": {"domain.step": 2.0**-4, "params": {}},
    "mst_cost": {
        "input.columns": ["x", "y", "w"],
        "domain.lower": [0, 0, 0],
        "domain.upper": [1, 1, 1],
        "domain.step": 2.0**-4,
        "params": {},
    },
    "sample_and_aggregate": {
        "domain": ...,
        "input.checks": ...,
        "params": {
            "function": "shoal.analyses.association:correlation",
            "blocks": 100,
            "outputs": {"lower": [-1], "upper": [1], "step": 2.0**-10},
        },
    },
    "k_cover": {"params": {"k": 2, "target": 1200}},
}

GROUPED = [
    name for name, task in TASKS.items() if issubclass(task.job or object, GroupsJob) and not task.subsamples
]
"""The tasks of rows that can be asked about each group by a run of its own."""
IN_ONE_PASS = ("quantiles", "median", "minimum", "interior_point")
"""Those that answer all groups together; see `core.each_group`."""

FITTED: dict[str, dict[str, Any]] = {
    "one_cluster": {"target": 300},
    "k_cover": {"k": 2, "target": 600},
    "minimum": {"largest": False},
}
"""Parameters that fit a group of the rows."""


def changes(task: str) -> dict[str, Any]:
    """Return what makes the bench's job one of `task`."""
    return {"task": task, **copy.deepcopy(JOBS[task])}
