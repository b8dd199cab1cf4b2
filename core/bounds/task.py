"""The bounds task: its method, and what it does not serve."""

from core.bounds.by_rank import FindBoundsByRank
from core.bounds.params import Bounds
from core.errors import InvalidValue
from core.task import Setting, Task


def check(setting: Setting[Bounds]) -> None:
    """Check that the domain is a box and that neighbors differ in one record.

    Raises:
        InvalidValue: there is a ball, or there are known counts.
    """
    if setting.grid.ball is not None:
        raise InvalidValue("ball", True, "bounds are found for each column by itself", "is set")
    if setting.neighbors.constraints:
        raise InvalidValue("constraints", True, "only histogram supports known counts", "is set")


BOUNDS = Task(Bounds, (FindBoundsByRank,), "the records that may lie outside", check, choice=None)
