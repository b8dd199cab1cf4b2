"""The tasks quantiles, median and minimum: their methods, and what none of them serves."""

from core.errors import InvalidValue
from core.quantiles.exponential import ExponentialByRank
from core.quantiles.ordered import OrderedQuantiles, OrderedValue
from core.quantiles.params import Median, Minimum, OneValue, Quantiles
from core.quantiles.recursive import Recursive
from core.quantiles.smooth import Smooth
from core.quantiles.tree import Tree
from core.task import Setting, Task


def check(setting: Setting[Quantiles] | Setting[OneValue]) -> None:
    """Check that there is one column, and that neighbors differ in one record.

    Raises:
        InvalidValue: there are more columns, or known counts.
    """
    dimension = setting.grid.dimension
    if dimension != 1:
        raise InvalidValue("columns", dimension, "quantiles are taken of one", f"has {dimension} columns")
    if setting.neighbors.constraints:
        raise InvalidValue("constraints", True, "only histogram supports known counts", "is set")


_COMPARED_BY = "the error of a rank, between dense and clumped data"
QUANTILES = Task(Quantiles, (Recursive, Tree, OrderedQuantiles), _COMPARED_BY, check)
_ONE = (ExponentialByRank, Smooth, OrderedValue)
MEDIAN = Task(Median, _ONE, "the error of the rank that they promise", check)
MINIMUM = Task(Minimum, _ONE, "the error of the rank that they promise", check)
