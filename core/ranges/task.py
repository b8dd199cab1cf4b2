"""The ranges task: its methods, and what none of them serves."""

from core.errors import InvalidValue
from core.ranges.methods import AdaptiveGrid, Tree
from core.ranges.params import Ranges
from core.task import Setting, Task


def check(setting: Setting[Ranges]) -> None:
    """Check that there are two or three columns, sides for each of them, and no known counts.

    A rectangle outside of the domain is refused. It would count 0 on all data, also where values lie in it,
    because they are moved to the domain's edge.

    Raises:
        InvalidValue: one of these is not so.
    """
    grid = setting.grid
    if not 2 <= grid.dimension <= 3:
        allowed = "ranges takes two or three, and cdf one"
        raise InvalidValue("columns", grid.dimension, allowed, f"has {grid.dimension} columns")
    if grid.ball is not None:
        raise InvalidValue("ball", True, "rectangles are counted without one", "is set")
    grid.check_distances()
    for sides in setting.params.ranges:
        if len(sides) != grid.dimension:
            allowed = f"a rectangle has a pair for each of {grid.dimension} columns"
            raise InvalidValue("ranges", len(sides), allowed, f"has a rectangle of {len(sides)} pairs")
        bounds = zip(sides, grid.lower, grid.upper, strict=True)
        if any(last < lower or first > upper for (first, last), lower, upper in bounds):
            allowed = "it lies outside of the domain, where no row is counted"
            raise InvalidValue("ranges", sides, allowed, f"has {[list(pair) for pair in sides]}")
    if setting.neighbors.constraints:
        raise InvalidValue("constraints", True, "ranges does not support them; histogram does", "is set")


_COMPARED_BY = (
    "the expected error of a rectangle among as many made-up rows as the parameter records says, between "
    "ones that lie evenly in the domain or in a small part of it, and ones that have the same values"
)
RANGES = Task(Ranges, (Tree, AdaptiveGrid), _COMPARED_BY, check)
