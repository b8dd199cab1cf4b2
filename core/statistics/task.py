"""The statistics task: its methods, and what none of them serves."""

from core.statistics.methods import GaussianTotals, LaplaceTotals
from core.statistics.params import Statistics
from core.task import Setting, Task


def check(setting: Setting[Statistics]) -> None:
    """Check that sums of steps fit into int64, and that no counts are known.

    Raises:
        InvalidValue: they don't, or a policy does not suit the grid.
    """
    setting.grid.check_distances()
    if setting.neighbors.policy is not None:
        setting.neighbors.policy.check(setting.grid.extents)
    _ = setting.neighbors.changes  # refuses known counts


STATISTICS = Task(
    Statistics,
    (LaplaceTotals, GaussianTotals),
    "the root mean square error of the measures, where a count is in rows, a sum in largest absolute values "
    "of its column, a mean times the number of rows in halves of its column's range, and where a missing "
    "group counts as empty",
    check,
)
