"""What a histogram is asked for."""

from dataclasses import dataclass

from core.errors import InvalidValue
from core.plan import check_failure


@dataclass(frozen=True)
class Histogram:
    """How many records lie in each cell of a grid of equal cells.

    Args:
        cells: cells per column: one number, or one for each.
        failure: probability with which a promise may fail, beta.
        method: `dense` (every cell), `sparse` (cells with enough records, needs delta), or `auto`.
        floor: for `sparse` only: cells with at most this many records never appear, which saves memory.

    Raises:
        InvalidValue: a value is out of range.
    """

    cells: int | tuple[int, ...]
    failure: float = 0.1
    method: str = "auto"
    floor: int = 0

    def __post_init__(self) -> None:
        numbers = (self.cells,) if isinstance(self.cells, int) else self.cells
        if not numbers or min(numbers) < 1:
            raise InvalidValue("cells", self.cells, "every number must be a whole number above 0")
        check_failure(self.failure)
        if self.floor < 0 or (self.floor and self.method != "sparse"):
            raise InvalidValue(
                "floor", self.floor, "it must be at least 0, and above 0 only where the method is sparse"
            )
