"""The cdf task: its methods, and what none of them serves."""

from core.cdf.hierarchical import Hierarchical, HierarchicalWhole
from core.cdf.ordered import Ordered
from core.cdf.params import Cdf
from core.errors import InvalidValue
from core.task import Setting, Task

_LARGEST = 1 << 22  # most grid points: each gets a row in the table, and noise


def check(setting: Setting[Cdf]) -> None:
    """Check that there is one column of few enough values, and a policy that the cdf supports.

    Raises:
        InvalidValue: one of these is not so.
    """
    grid, neighbors = setting.grid, setting.neighbors
    if grid.dimension != 1:
        raise InvalidValue("columns", grid.dimension, "cdf takes one", f"has {grid.dimension} columns")
    if grid.extents[0] >= _LARGEST:
        raise InvalidValue(
            "step",
            grid.step,
            f"cdf takes at most {_LARGEST:,} grid points, so use a larger one",
            f"is {grid.named_step}, which makes {grid.extents[0] + 1:,} grid points",
        )
    ranges = setting.params.ranges
    if grid.wide and any(abs(end) >= 2**53 for pair in ranges for end in pair):
        raise InvalidValue(
            "ranges",
            [list(pair) for pair in ranges],
            "its ends must be below 2^53, from where on they are rounded",
        )
    if neighbors.policy is not None:
        neighbors.policy.check(grid.extents)
    if neighbors.constraints:
        raise InvalidValue("constraints", True, "cdf does not support them; histogram does", "is set")


CDF = Task(
    Cdf,
    (Hierarchical, Ordered, HierarchicalWhole),
    "the error of a cumulative count that they promise",
    check,
)
