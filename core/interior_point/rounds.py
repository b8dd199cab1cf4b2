"""The only round of most methods: over counts about the median, or over a random subset of the records."""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from core.aggregate import Counts, Sample
from core.draws import Draw
from core.focus import Bools, Focused
from core.gaps import Order, Runs
from core.interior_point.found import FoundPoint
from core.noise import Noise
from core.rounds import Block


class Finder(Protocol):
    """A private algorithm that finds an interior point of records on one machine."""

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw that `find` can make."""

    def records_needed(self, failure: float) -> int:
        """Return the number of records from which on `find` succeeds with probability 1 - `failure`."""

    def find(self, order: Order, noise: Noise) -> int | None:
        """Release a grid point, or None; never raises on data."""


class MedianFinder(Finder, Protocol):
    """A finder whose scores end at a distance from the median; see `core.focus`."""

    @property
    def size(self) -> int:
        """Number of grid points."""

    @property
    def near(self) -> tuple[int, ...]:
        """See `core.focus.Focused.near`."""

    def hot(self, runs: Runs, total: int) -> Bools:
        """See `core.focus.Hot`."""


@dataclass(frozen=True)
class FindNearMedian(Focused):
    """Find an interior point of all records, from the counts about their median.

    Neighbors, sensitivity and proof are those of the finder, which sees the exact score of every point.

    Args:
        finder: the algorithm.
    """

    purpose: ClassVar[str] = "a point between the smallest and the largest row"
    finder: MedianFinder
    name: str = "interior_point"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.finder.draws()

    @property
    def points(self) -> int:
        """See `Focused.points`."""
        return self.finder.size

    @property
    def near(self) -> tuple[int, ...]:
        """See `Focused.near`."""
        return self.finder.near

    def hot(self, runs: Runs, total: int, state: None) -> Bools:
        """See `Focused.hot`."""
        return self.finder.hot(runs, total)

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundPoint:
        """Release a point."""
        return FoundPoint(self.finder.find(Order.of_counts(aggregate), noise))


@dataclass(frozen=True)
class FindInSample:
    """Find an interior point of a random subset of the records, under `replace_one`.

    An interior point of the subset is one of all records. The subset has a public size. Subsets of neighbors
    are neighbors (see `core.aggregate.Sample`), so the finder's proof for the subset holds for all records.

    The finder may work on a universe of 2^bits points, which can be larger than the grid. A point beyond the
    grid is moved to the grid's last point: no record lies beyond it, so an interior point stays one.

    Args:
        finder: the algorithm.
        records: size of the subset; no machine holds more records.
        last: last point of the grid.
        salt: 16 secret bytes that choose the subset.
    """

    finder: Finder
    records: int
    last: int
    salt: bytes = field(repr=False)
    name: str = "interior_point"
    floor: None = None

    @property
    def purpose(self) -> str:
        """What the round finds out."""
        return f"a point between the smallest and the largest of {self.records:,} rows chosen at random"

    @property
    def most_counts(self) -> int:
        """See `core.held`."""
        return self.records

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.finder.draws()

    def summarize(self, block: Block, state: None) -> Sample:
        """Sample the block's records."""
        return Sample.of(self.records, block.points[:, 0], block.ids, self.salt)

    def release(self, aggregate: Sample, state: None, noise: Noise) -> FoundPoint:
        """Release a point, or none."""
        found = self.finder.find(Order.of_counts(Counts.of(aggregate.points)), noise)
        return FoundPoint(None if found is None else min(max(0, found), self.last))
