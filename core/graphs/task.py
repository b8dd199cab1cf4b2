"""The tasks on graphs: their methods, and what none of them serves."""

from typing import Any

from core.errors import InvalidValue
from core.graphs.global_cost import GlobalSensitivity
from core.graphs.params import MstCost, Triangles
from core.graphs.smooth_cost import SmoothSensitivity
from core.graphs.triangles import SmoothTriangles
from core.task import Setting, Task


def check_triangles(setting: Setting[Triangles]) -> None:
    """Check that the rows are edges, and that there is no policy.

    Raises:
        InvalidValue: this is not so.
    """
    _check_edges(setting, "triangles", "u, v")


def check_mst_cost(setting: Setting[MstCost]) -> None:
    """Check that rows are weighted edges, that public ones stay, and that there is no policy.

    Raises:
        InvalidValue: this is not so.
    """
    _check_edges(setting, "mst_cost", "u, v, weight")
    if setting.params.change == "weight" and setting.neighbors.name == "add_or_remove_one":
        raise InvalidValue(
            "change",
            "weight",
            "public edges are neither added nor removed, so neighbors must be replace_one",
            "is weight, with neighbors add_or_remove_one",
        )


def _check_edges(setting: Setting[Any], task: str, columns: str) -> None:
    """Check that the grid has these columns, two equal axes of node ids and perhaps a weight; no policy."""
    grid = setting.grid
    if setting.neighbors.policy is not None:
        raise InvalidValue(
            "policy",
            True,
            f"rows of {task} are edges between node ids, and secret pairs of ids mean nothing in a graph, so "
            "leave it out",
            "is set",
        )
    grid.check_distances()
    axes = columns.count(",") + 1
    if grid.dimension != axes:
        raise InvalidValue(
            "columns", grid.dimension, f"{task} needs {axes}: {columns}", f"has {grid.dimension} columns"
        )
    for field, ends in (("lower", grid.lower), ("upper", grid.upper)):
        if ends[0] != ends[1]:
            allowed = f"{task} needs the same ids on both ends of an edge"
            raise InvalidValue(field, list(ends), allowed, f"has {ends[0]} for u and {ends[1]} for v")
    if grid.ball is not None:
        raise InvalidValue("ball", grid.ball, f"{task} reads node ids, which a ball would move", "is set")


TRIANGLES = Task(Triangles, (SmoothTriangles,), "the error that they promise", check_triangles, choice=None)
MST_COST = Task(
    MstCost, (GlobalSensitivity, SmoothSensitivity), "the error that they promise", check_mst_cost
)
