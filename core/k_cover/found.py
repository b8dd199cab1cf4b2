"""What the cover answers and promises: balls, one after the other."""

from dataclasses import dataclass
from typing import Any

from core.domain import Grid
from core.one_cluster import found as one_cluster
from core.one_cluster.found import Found, NotFound


@dataclass(frozen=True)
class Promises:
    """What is promised of all balls together; None where nothing is.

    Args:
        missing: every ball holds at least target - missing records of those left before it, where so many lie
            close together; None for a `coverage`.
        radius_factor: its radius is at most this times that of the smallest ball that holds the target among
            the records left,
        resolution: or at most this, in data units, where that is larger.
        count_error: each ball's count is off by at most that.
        rows_error: the number of all records is off by at most that; None for a `target`.
    """

    missing: int | None
    radius_factor: float | None
    resolution: float | None
    count_error: int | None
    rows_error: int | None


@dataclass(frozen=True)
class Result:
    """The released balls, in data units, and the noisy number of all records where it was released."""

    balls: tuple[one_cluster.Result, ...]
    rows: int | None


@dataclass(frozen=True)
class Cover:
    """The balls so far, and how far the search for the next one is: public.

    Args:
        balls: those released, in order; each one's count leaves out what the earlier ones hold.
        rows: noisy number of all records, where the targets follow from it.
        search: state of the 1-cluster that looks for the next ball; None before its first round, NotFound
            once one has found nothing, which ends the search for all.
    """

    balls: tuple[Found, ...] = ()
    rows: int | None = None
    search: Any = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is looked for."""
        return isinstance(self.search, NotFound)

    def result(self, grid: Grid) -> Result | None:
        """Return the balls in data units; None where there are none."""
        if not self.balls:
            return None
        return Result(tuple(ball.result(grid) for ball in self.balls), self.rows)
