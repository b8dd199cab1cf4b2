"""The histogram task: its methods, and what none of them serves."""

from core.histogram.cells import shape_of
from core.histogram.constraints import check_satisfiable
from core.histogram.dense import Dense
from core.histogram.params import Histogram
from core.histogram.sparse import Sparse
from core.task import Setting, Task


def check(setting: Setting[Histogram]) -> None:
    """Check that the cells suit the grid, and that the known counts don't contradict each other.

    Raises:
        InvalidValue: the cells don't suit, or no database has the known counts.
    """
    grid, neighbors = setting.grid, setting.neighbors
    if neighbors.policy is not None:
        neighbors.policy.check(grid.extents)
        check_satisfiable(neighbors.constraints, grid.extents)
    shape_of(setting.params.cells, grid)


HISTOGRAM = Task(
    Histogram,
    (Dense, Sparse),
    "the error expected of a count, where a missing cell counts as empty (root mean square over the cells "
    "that hold records; the geometric mean over made-up tables of 500 to a million records: even over all "
    "cells, skewed, and with nine tenths in one cell)",
    check,
)
