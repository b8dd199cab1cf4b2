"""What an interior point is asked for."""

from dataclasses import dataclass
from typing import Literal, get_args

from core.errors import InvalidValue
from core.plan import check_failure

Method = Literal["auto", "exponential", "tree_log", "heavy_paths", "one_cluster"]


@dataclass(frozen=True)
class InteriorPoint:
    """How to find a point between the smallest and the largest record.

    Args:
        method: `exponential`, `tree_log`, `heavy_paths`, `one_cluster`, or `auto`, which takes the one that
            needs the fewest records.
        failure: probability with which the promise may fail.

    Raises:
        InvalidValue: a value is out of range.
    """

    method: Method = "auto"
    failure: float = 0.1

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            *others, last = get_args(Method)
            raise InvalidValue("method", repr(self.method), f"it must be {', '.join(others)} or {last}")
        check_failure(self.failure)
