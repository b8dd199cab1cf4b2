"""The threshold task: its methods, and what none of them serves."""

from core.errors import InvalidValue
from core.task import Setting, Task
from core.threshold.exponential import ExponentialMethod
from core.threshold.params import Threshold
from core.threshold.ranks import InteriorPointMethod


def check(setting: Setting[Threshold]) -> None:
    """Check that there are a value and a label that is 0 or 1, and that nobody knows counts of records.

    Raises:
        InvalidValue: there are not two columns, the second has other bounds, or there are known counts.
    """
    grid = setting.grid
    if grid.dimension != 2:
        columns = "one column" if grid.dimension == 1 else f"{grid.dimension} columns"
        raise InvalidValue(
            "columns", grid.dimension, "threshold takes two, the value and the label", f"has {columns}"
        )
    for field, (_, bound), allowed in (("lower", grid.lower, 0), ("upper", grid.upper, 1)):
        if bound != allowed:
            raise InvalidValue(
                field, bound, f"labels are 0 or 1, so it must be {allowed}", f"is {bound} for the label"
            )
    if setting.neighbors.constraints:
        raise InvalidValue("constraints", True, "threshold does not support them; histogram does", "is set")


THRESHOLD = Task(
    Threshold,
    (ExponentialMethod, InteriorPointMethod),
    "the number of examples that they need",
    check,
)
