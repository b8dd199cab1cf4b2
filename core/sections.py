"""Cut the counts of a wide ordered axis into sections, which workers examine one by one.

Some releases depend on every distinct value, but on each section of the axis by a few numbers alone:

1. A look takes a random sample of the records, and cuts the axis between them, so that the sections hold
   about equally many records.
2. Where a round needs it (`InSections.ranked`), a second look counts the records before each section.
3. The next pass counts every value. The counts of each section come together on a worker, which examines
   them. Only what the sections have to say reaches the private stage.

So no process holds all values, and the private stage holds no number that grows with the records. Where the
axis is cut changes no released distribution. It is as secret as the records, and goes to the workers of the
same round alone; see `core.rounds.Looking`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from core.aggregate import Counts, Ints, Sample, Tally
from core.rounds import Block, State
from core.sampling import scramble

MOST_SECTIONS = 1 << 10
"""Most sections of an axis: with a hundred million distinct values, each has about a hundred thousand."""

_PER_SECTION = 8
"""Records in the sample for each section: of a thousand sections, the largest holds thrice its share."""

_CUTTING = 0x63757474696E67
"""Tweak of the hash that chooses these records, which no other sample uses."""


@dataclass(frozen=True, eq=False)
class Sectioned:
    """Counts of the points from `low` on and below `high`, and where these are cut into sections.

    Args:
        counts: by key; the points of an axis ascend with the keys.
        scale: keys of each point; the keys of point v are `scale` v, ..., `scale` v + `scale` - 1.
        low: first point.
        high: the point after the last.
        cuts: shape (m,), ascending: first points of all sections but the first.
        before: shape (m + 1,): records before each section; zeros where no look has counted them.
    """

    counts: Counts
    scale: int
    low: int
    high: int
    cuts: Ints
    before: Ints

    def __len__(self) -> int:
        return len(self.counts)

    def __add__(self, other: "Sectioned") -> "Sectioned":
        return self.merged([self, other])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sectioned)
            and (self.counts, self.scale, self.low, self.high)
            == (other.counts, other.scale, other.low, other.high)
            and np.array_equal(self.cuts, other.cuts)
            and np.array_equal(self.before, other.before)
        )

    @classmethod
    def merged(cls, parts: Sequence["Sectioned"]) -> "Sectioned":
        """Add up counts of the same points, at least one."""
        return replace(parts[0], counts=Counts.merged([part.counts for part in parts]))

    def split(self, most: int) -> list["Sectioned"]:
        """Split into `most` neighboring sections, which together have each point once.

        If there are more than `most` sections, neighboring ones are joined. If there are fewer, some have no
        points: `low` is then `high`.
        """
        first = np.arange(most) * (len(self.cuts) + 1) // most  # of the sections that each one joins
        lows = np.append(self.low, self.cuts)[first]
        ends = np.append(lows, self.high)
        places = np.append(np.searchsorted(self.counts.keys, self.scale * lows), len(self.counts))
        parts = []
        for i in range(most):
            here = slice(places[i], places[i + 1])
            counts = Counts(self.counts.keys[here], self.counts.counts[here])
            ranks = self.before[first[i : i + 1]]
            parts.append(Sectioned(counts, self.scale, int(ends[i]), int(ends[i + 1]), self.cuts[:0], ranks))
        return parts


@dataclass(frozen=True, kw_only=True)
class InSections:
    """A round that counts in sections; see the docstring of the module, and `core.rounds.RoundInSections`.

    Args:
        salt: 16 secret bytes that choose the sample. No privacy rests on it: any cuts would do.
        looking: how many looks are still to come.
        cuts: where the axis is cut, after the first look; shape (m,).
        before: records before each section, after the second look; shape (m + 1,).
    """

    ranked: ClassVar[bool] = False
    """Whether a second look counts the records before each section."""

    salt: bytes = field(repr=False)
    looking: int = 0
    cuts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False, compare=False)
    before: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64), repr=False, compare=False)
    floor: None = None

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of points of the axis."""

    @property
    @abstractmethod
    def sections(self) -> int:
        """Most sections; public."""

    @property
    def sampled(self) -> int:
        """Records in the sample by which the axis is cut."""
        return _PER_SECTION * self.sections

    @abstractmethod
    def count(self, block: Block) -> tuple[Counts, int]:
        """Count the records of a block; return the counts, and how many keys each point has.

        See `Sectioned`.
        """

    @property
    def looks(self) -> int:
        """See `core.rounds.Looking.looks`."""
        return 1 + self.ranked

    def coarse(self, state: State) -> Self:
        """See `core.rounds.Looking.coarse`."""
        return replace(self, looking=self.looks)

    def finer(self, aggregate: Sample | Tally, state: State) -> Self:
        """See `core.rounds.Looking.finer`."""
        if isinstance(aggregate, Tally):
            return replace(
                self, looking=0, before=(np.cumsum(aggregate.totals) - aggregate.totals)[: len(self.cuts) + 1]
            )
        points = np.sort(aggregate.points[aggregate.points > 0])  # the first section begins at 0
        places = np.arange(1, self.sections) * len(points) // self.sections
        cuts = np.unique(points[places]) if len(points) else points
        return replace(
            self, looking=self.looking - 1, cuts=cuts, before=np.zeros(len(cuts) + 1, dtype=np.int64)
        )

    def summarize(self, block: Block, state: State) -> Sample | Tally | Sectioned:
        """Sample records, or count those of each section, or those of each key."""
        points = block.points[:, 0]
        if self.looking == self.looks:
            hashes = scramble(block.ids, self.salt, _CUTTING)
            return Sample.by_hash(self.sampled, points, block.ids, hashes)
        if self.looking:
            sections = np.searchsorted(self.cuts, points, side="right")
            return Tally(np.bincount(sections, minlength=self.sections))
        return Sectioned(*self.count(block), 0, self.size, self.cuts, self.before)
