"""The k-centers tasks: their methods, and what none of them serves."""

from core.centers.coreset import Coreset
from core.centers.lloyd import Lloyd
from core.centers.params import KCenters, KMeans, KMedian
from core.centers.space import Space
from core.errors import InvalidValue
from core.task import Setting, Task


def check(setting: Setting[KCenters]) -> None:
    """Check that the k-centers tasks support the policy, the shares and the width of the domain.

    Raises:
        InvalidValue: they don't support one of these.
    """
    grid, neighbors = setting.grid, setting.neighbors
    grid.check_distances()
    if neighbors.policy is not None:
        neighbors.policy.check(grid.extents)
    if neighbors.constraints:
        allowed = "k-means and k-median do not support them; histogram does"
        raise InvalidValue("constraints", True, allowed, "is set")
    Space(grid)
    if setting.params.method != "lloyd":  # lloyd refuses all shares itself
        Coreset(setting).check_shares()


_COMPARED_BY = (
    "how far one row can move the sum of a center's rows in the first iteration, in the units of the columns "
    "(where that depends on the data, a third of the domain's radius is assumed)"
)

K_MEANS: Task[KCenters] = Task(KMeans, (Lloyd, Coreset), _COMPARED_BY, check)
K_MEDIAN: Task[KCenters] = Task(KMedian, (Coreset,), _COMPARED_BY, check)
