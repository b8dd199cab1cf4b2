"""Released cells, and choices of points in a cell by rank."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.gaps import MOST_RECORDS, Runs, distances, rank_ends
from core.quantiles.aim import UNIT
from core.quantiles.brackets import Ends

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FAR = 2.0**61
UNKNOWN = 1 << 62
"""Beyond all points and ranks."""


@dataclass(frozen=True, eq=False)
class Cut:
    """Released cells.

    Args:
        edges: shape (m + 1,), ascending.
        total: released number of records.
    """

    edges: Ints
    total: int


@dataclass(frozen=True, eq=False)
class Ranked:
    """Released cells with the ranks of their edges.

    Args:
        edges: shape (m + 1,), ascending.
        starts: shape (m + 1,), noisy ranks of the edges, ascending.
        wanted: noisy ranks of the quantiles, shape (k,), ascending.
        error: bound of the error of the noisy ranks.
    """

    edges: Ints
    starts: Floats
    wanted: Floats
    error: float

    @property
    def windows(self) -> Ints:
        """First point of each cell that holds quantiles, and the point after its last: shape (k, 2)."""
        cells = np.unique(np.searchsorted(self.starts[1:-1], self.wanted))
        return np.stack([self.edges[cells], self.edges[cells + 1]], axis=1)

    def searched(self) -> Iterator[tuple[tuple[int, int], Floats, Ints]]:
        """Give each cell that holds quantiles: its window, the ranks of its ends, and which quantiles."""
        places = np.searchsorted(self.starts[1:-1], self.wanted)
        for cell in np.unique(places):
            window, ends = (int(self.edges[cell]), int(self.edges[cell + 1])), self.starts[cell : cell + 2]
            yield window, ends, np.flatnonzero(places == cell)


@dataclass(frozen=True, eq=False)
class Choice:
    """Choices of points of a cell by rank, which share the cell's budget.

    Args:
        wanted: noisy ranks, shape (k,).
        parts: see `WithinCell`.
        far: distance in records at which scores end; None where they do not.
    """

    wanted: Floats
    parts: float
    far: int | None

    def ranges(self, runs: Runs, total: int, ends: Floats) -> list[Ends]:
        """Return the lowest and the highest ranks of each run, minus each wanted rank, in 1 / `UNIT`.

        Args:
            runs: the points of the cell, with ranks that start from 0.
            total: number of records of the cell.
            ends: noisy ranks of the cell's ends.
        """
        offsets = np.clip(np.rint((float(ends.mean()) - self.wanted) * UNIT), -_FAR, _FAR).astype(np.int64)
        return [rank_ends(runs, total, int(each), UNIT // 2, UNIT // 2) for each in offsets]

    def scores(self, runs: Runs, total: int, ends: Floats) -> list[Ints]:
        """Return the scores of each choice, in 1 / `UNIT` of a record; see `ranges`."""
        return [self.score(each) for each in self.ranges(runs, total, ends)]

    def score(self, ranges: Ends) -> Ints:
        """Return minus the distances of ranks from 0, which end."""
        off = distances(ranges)
        if self.most is not None:
            np.minimum(off, self.most, out=off)
        return np.negative(off, out=off)

    @property
    def most(self) -> int | None:
        """The distance at which scores end."""
        return None if self.far is None else min(self.far, MOST_RECORDS) * UNIT

    @property
    def end(self) -> float:
        """The score at which all end."""
        return -math.inf if self.most is None else -self.most


@dataclass(frozen=True, eq=False)
class Searched:
    """What the search of a cell releases.

    Args:
        points: of the quantiles, shape (k,).
        lows: points that are surely not above them, shape (k,); -1 where none is known.
        highs: points that are surely not below them; 2^62 where none is known.
        error: by how much the ranks of `points` may err, beside the noisy ranks of the cell's ends.
    """

    points: Ints
    lows: Ints
    highs: Ints
    error: float
