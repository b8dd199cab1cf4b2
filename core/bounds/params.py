"""What bounds of columns are asked for."""

from dataclasses import dataclass

from core.errors import InvalidValue
from core.plan import check_failure


@dataclass(frozen=True)
class Bounds:
    """A lower and an upper bound of every column, for the domain of a later job.

    Args:
        outside: share of the records that may lie outside of the bounds of a column, half of it on each side;
            0 for as few records as the budget can tell. From 0 to 0.5.
        failure: probability with which the promise may fail, for all columns together.

    Raises:
        InvalidValue: a value is out of range.
    """

    outside: float = 0.001
    failure: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.outside <= 0.5:
            raise InvalidValue("outside", self.outside, "it must be from 0 to 0.5")
        check_failure(self.failure)
