"""What threshold answers and promises."""

from dataclasses import dataclass

from core.domain import Grid
from core.marks import Position


@dataclass(frozen=True)
class Promises:
    """What every method of threshold promises.

    Args:
        alpha: the released threshold mislabels more examples than the best one by at most this part of all.
        records_needed: the promise of `alpha` holds from so many examples on.
        errors: the same as a number of examples; it holds for any number of examples, or for the number that
            the notes name.
    """

    alpha: float
    records_needed: int
    errors: int


@dataclass(frozen=True)
class Result:
    """The answer: a threshold in data units. Values at or above it are labeled 1."""

    threshold: Position


@dataclass(frozen=True)
class FoundThreshold:
    """The released threshold: whatever is at or above it is labeled 1.

    Args:
        step: grid point; one beyond the last where nothing is labeled 1.
    """

    step: int

    def result(self, grid: Grid) -> Result:
        """Return the threshold in data units; above the upper bound, nothing is labeled 1."""
        value = grid.lower[0] + self.step * grid.step
        return Result(value if grid.wide else float(grid.with_decimals(value, self.step)))
