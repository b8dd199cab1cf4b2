"""What an interior point is asked for."""

from dataclasses import dataclass

from core.plan import check_failure


@dataclass(frozen=True)
class InteriorPoint:
    """How to find a point between the smallest and the largest record.

    Args:
        method: `exponential`, `tree_log`, `heavy_paths`, `one_cluster`, `ordered` (under a policy), or
            `auto`, which takes the one that needs the fewest records.
        failure: probability with which the promise may fail.

    Raises:
        InvalidValue: a value is out of range.
    """

    method: str = "auto"
    failure: float = 0.1

    def __post_init__(self) -> None:
        check_failure(self.failure)
