"""The interior_point task: its methods, and what none of them serves."""

from core.errors import InvalidValue
from core.interior_point.exponential import ExponentialMethod
from core.interior_point.heavy_paths import HeavyPathsMethod
from core.interior_point.one_cluster_reduction import OneClusterMethod
from core.interior_point.ordered import OrderedMethod
from core.interior_point.params import InteriorPoint
from core.interior_point.tree_log import TreeLogMethod
from core.task import Setting, Task


def check(setting: Setting[InteriorPoint]) -> None:
    """Check that there is one column, and that nobody knows counts of records.

    Raises:
        InvalidValue: there are several columns, or known counts.
    """
    columns = setting.grid.dimension
    if columns != 1:
        raise InvalidValue("columns", columns, "interior_point takes one", f"has {columns} columns")
    if setting.neighbors.constraints:
        raise InvalidValue(
            "constraints", True, "interior_point does not support them; histogram does", "is set"
        )


INTERIOR_POINT = Task(
    InteriorPoint,
    (ExponentialMethod, TreeLogMethod, HeavyPathsMethod, OneClusterMethod, OrderedMethod),
    "the number of records that they need",
    check,
)
