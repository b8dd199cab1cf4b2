"""What the cover by k balls releases and promises."""

from dataclasses import dataclass
from typing import Any

from core.domain import Grid
from core.marks import Length
from core.one_cluster import found as one_cluster
from core.one_cluster.found import Found, NotFound


@dataclass(frozen=True)
class Promises:
    """What is promised of all balls together; a figure is None where nothing is promised.

    The records left are those that no earlier ball holds.

    Args:
        missing: every ball holds at least target - missing of the records left, if at least `target` of them
            are left; None where the job gives `coverage`.
        radius_factor: let r be the radius of the smallest ball that holds `target` of the records left. The
            released radius is at most the larger of radius_factor times r and `resolution`.
        resolution: see `radius_factor`; data units.
        count_error: each ball's count is off by at most this.
        rows_error: the released number of all records is off by at most this; None where the job gives
            `target`.
    """

    missing: int | None
    radius_factor: float | None
    resolution: Length | None
    count_error: int | None
    rows_error: int | None


@dataclass(frozen=True)
class Result:
    """The released balls, in data units, and the noisy number of all records where it was released."""

    balls: tuple[one_cluster.Result, ...]
    rows: int | None


@dataclass(frozen=True)
class Cover:
    """The balls released so far, and the state of the search for the next one. All of it is public.

    Args:
        balls: the released balls, in order. The count of a ball leaves out the records in earlier balls.
        rows: noisy number of all records, where the targets are computed from it; else None.
        search: state of the 1-cluster that looks for the next ball. None before its first round. NotFound
            once a search has found nothing; then no further ball is looked for.
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
