"""The task of covering the records by k balls: its one method, and what it does not serve."""

from core.k_cover.params import KCover
from core.k_cover.repeated import Repeated
from core.task import Setting, Task


def check(setting: Setting[KCover]) -> None:
    """Check that distances fit into integers, and that neighbors differ in one record.

    Raises:
        InvalidValue: distances don't fit, or neighbors may differ in more than one record.
    """
    setting.grid.check_distances()
    setting.neighbors.count()  # refuses known counts, under which neighbors differ in more than one record


K_COVER = Task(
    KCover,
    (Repeated,),
    "the smallest target for which it promises balls with at least half as many rows",
    check,
)
