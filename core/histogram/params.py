"""What a histogram is asked for."""

from dataclasses import dataclass, field

from core.errors import InvalidValue
from core.plan import check_failure

MOST_PARTS = 4096


@dataclass(frozen=True)
class Histogram:
    """How many records lie in each cell of a grid of equal cells.

    Args:
        cells: cells per column: one number, or one for each.
        failure: probability with which a promise may fail, beta.
        method: `dense` (every cell), `sparse` (cells with enough records, needs delta), or `auto`: `sparse`
            where noise is expected to hide most counts, as with many cells or a small epsilon, else `dense`.
        floor: for `sparse` only: cells with at most this many records never appear, which saves memory.
        parts: for `sparse` only: above 1, the table is written by the workers as this many files, so that no
            process holds it as a whole; for tables of more than some million cells.

    Raises:
        InvalidValue: a value is out of range.
    """

    cells: int | tuple[int, ...] = field(metadata={"example": 20})
    failure: float = 0.1
    method: str = "auto"
    floor: int = 0
    parts: int = field(default=1, metadata={"added": True})

    def __post_init__(self) -> None:
        numbers = (self.cells,) if isinstance(self.cells, int) else self.cells
        if not numbers or min(numbers) < 1:
            raise InvalidValue("cells", self.cells, "every number must be a whole number above 0")
        check_failure(self.failure)
        if self.floor < 0 or (self.floor and self.method != "sparse"):
            raise InvalidValue(
                "floor", self.floor, "it must be at least 0, and above 0 only where the method is sparse"
            )
        if not 1 <= self.parts <= MOST_PARTS or (self.parts > 1 and self.method != "sparse"):
            raise InvalidValue(
                "parts",
                self.parts,
                f"it must be from 1 to {MOST_PARTS:,}, and above 1 only where the method is sparse",
            )
