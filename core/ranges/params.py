"""What counts of rectangles are asked for."""

import math
from dataclasses import dataclass
from typing import Annotated

from core.errors import InvalidValue
from core.marks import Mark, Position
from core.plan import check_failure

_MOST = 1000  # rectangles that are answered in a release; the table answers any other


@dataclass(frozen=True)
class Ranges:
    """Counts of rectangles over two or three columns.

    Args:
        ranges: rectangles that are answered with error bars; each has a pair of lowest and highest value for
            every column, data units. Rows at both ends are counted.
        method: `tree` (boxes by noisy halvings, so they are small where rows are dense), `grid` (equal
            boxes), or `auto`. Both cut each box into equal cells, more where its noisy count is larger.
        failure: probability with which a promise may fail, beta.
        records: a public guess of the number of rows. Only the choice of the method depends on it.

    Raises:
        InvalidValue: a value is out of range.
    """

    ranges: tuple[Annotated[tuple[tuple[Position, Position], ...], Mark.AXES], ...] = ()
    method: str = "auto"
    failure: float = 0.1
    records: int = 100_000

    def __post_init__(self) -> None:
        check_failure(self.failure)
        if len(self.ranges) > _MOST:
            allowed = f"give at most {_MOST:,}; the table answers any other rectangle"
            raise InvalidValue("ranges", len(self.ranges), allowed, f"has {len(self.ranges):,} rectangles")
        for sides in self.ranges:
            if not all(len(pair) == 2 and all(map(math.isfinite, pair)) for pair in sides) or any(
                low > high for low, high in sides
            ):
                allowed = "a rectangle has a pair of finite numbers for each column, the lower one first"
                raise InvalidValue("ranges", sides, allowed, f"has {[list(pair) for pair in sides]}")
        if self.records < 1:
            raise InvalidValue("records", self.records, "it must be at least 1")
