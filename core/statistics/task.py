"""The statistics task: its methods, and what none of them serves."""

from core.errors import InvalidValue
from core.statistics.methods import GaussianTotals, LaplaceTotals
from core.statistics.params import Statistics
from core.task import Setting, Task

_FAR = 1 << 31


def check(setting: Setting[Statistics]) -> None:
    """Check that sums of steps fit into int64, and that no counts are known.

    Raises:
        InvalidValue: they don't, a policy does not suit the grid, or sums that are clamped for each unit do
            not: they are whole steps from 0.
    """
    grid = setting.grid
    grid.check_distances()
    for low, high in zip(grid.lower, grid.upper, strict=True) if setting.params.clamped else ():
        steps = low / grid.step
        if abs(steps - round(steps)) > 1e-9 * max(1.0, abs(steps)) or max(-low, high) / grid.step >= _FAR:
            allowed = "contributions.clamp: unit needs multiples of the step, less than 2^31 of them from 0"
            raise InvalidValue("lower", low, allowed)
    if setting.neighbors.policy is not None:
        setting.neighbors.policy.check(setting.grid.extents)
    _ = setting.neighbors.changes  # refuses known counts


STATISTICS = Task(
    Statistics,
    (LaplaceTotals, GaussianTotals),
    "the root mean square error of the measures, where a count is in rows, a sum in largest absolute values "
    "of its column, a mean times the number of rows in halves of its column's range, a rank in rows; with "
    "private keys half of the groups are too small to be surely released, of any order of magnitude, and "
    "count as empty",
    check,
)
