"""The 1-cluster task: its methods, and what none of them serves."""

from core.one_cluster.paper.method import Paper
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.method import Practical
from core.task import Setting, Task


def check(setting: Setting[OneCluster]) -> None:
    """Check that distances fit into integers, and that neighbors differ in one record.

    Raises:
        InvalidValue: distances don't fit, or neighbors may differ in more than one record.
    """
    setting.grid.check_distances()
    setting.neighbors.count()  # refuses known counts, under which neighbors differ in more than one record


ONE_CLUSTER = Task(
    OneCluster,
    (Practical, Paper),
    "the smallest target for which they promise a ball with at least half as many rows (paper is left out: "
    "its time grows with the cube of the number of distinct points)",
    check,
)
