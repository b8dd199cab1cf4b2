"""What a cdf is asked for."""

import math
from dataclasses import dataclass

from core.errors import InvalidValue
from core.marks import Position
from core.plan import check_failure


@dataclass(frozen=True)
class Cdf:
    """For each value of a column, how many records have at most this value.

    Args:
        failure: probability with which a promise may fail, beta.
        method: `ordered` or `hierarchical`, which both use the policy's secret pairs, `hierarchical_whole`,
            which hides every pair whatever the policy, or `auto`.
        ranges: pairs of lowest and highest value, data units. The records in each are counted, those at
            its two ends included. So ranges that share an end both count the records there. To count each
            record once, let the next range begin a step higher.
        fanout: most children of a node of the tree.

    Raises:
        InvalidValue: a value is out of range.
    """

    failure: float = 0.1
    method: str = "auto"
    ranges: tuple[tuple[Position, Position], ...] = ()
    fanout: int = 16

    def __post_init__(self) -> None:
        check_failure(self.failure)
        for pair in self.ranges:
            if len(pair) != 2 or not all(map(math.isfinite, pair)) or pair[0] > pair[1]:
                allowed = "a range is two finite numbers, the lower one first"
                raise InvalidValue("ranges", pair, allowed, f"has {list(pair)}")
        if not 2 <= self.fanout <= 1024:
            raise InvalidValue("fanout", self.fanout, "it must be from 2 to 1024")
