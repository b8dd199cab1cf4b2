"""The tasks quantiles, median and minimum: their methods, and what none of them serves."""

from typing import Any

from core.errors import InvalidValue
from core.quantiles.columns import ColumnsByRank, OrderedColumns, SmoothColumns
from core.quantiles.ordered import OrderedQuantiles
from core.quantiles.params import Median, Minimum, OneValue, Quantiles
from core.quantiles.recursive import Recursive
from core.quantiles.tree import Tree
from core.task import Setting, Task

_MOST_POINTS = 2**62  # of all columns together: they are counted on one line, whose keys are int64


def check(setting: Setting[Quantiles]) -> None:
    """Check that there is one column, and that neighbors differ in one record.

    Raises:
        InvalidValue: there are more columns, or known counts.
    """
    dimension = setting.grid.dimension
    if dimension != 1:
        allowed = "quantiles are taken of one; median takes several, and any quantile of them"
        raise InvalidValue("columns", dimension, allowed, f"has {dimension} columns")
    _check_constraints(setting)


def check_columns(setting: Setting[OneValue]) -> None:
    """Check that the columns' points can be counted together, and that neighbors differ in one record.

    Raises:
        InvalidValue: the columns have too many points, or there are known counts.
    """
    grid = setting.grid
    points = sum(grid.extents) + grid.dimension
    if points > _MOST_POINTS:
        allowed = "all columns together may have 2^62 grid points, so use a larger one or fewer columns"
        raise InvalidValue(
            "step", grid.step, allowed, f"is {grid.named_step}, which makes {points:,} grid points"
        )
    _check_constraints(setting)


def _check_constraints(setting: Setting[Any]) -> None:
    if setting.neighbors.constraints:
        raise InvalidValue("constraints", True, "only histogram supports known counts", "is set")


_COMPARED_BY = "the error of a rank, between dense and clumped data"
QUANTILES = Task(Quantiles, (Recursive, Tree, OrderedQuantiles), _COMPARED_BY, check)
_ONE = (ColumnsByRank, SmoothColumns, OrderedColumns)
MEDIAN = Task(Median, _ONE, "the error of the rank that they promise", check_columns)
MINIMUM = Task(Minimum, _ONE, "the error of the rank that they promise", check_columns)
