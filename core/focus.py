"""Count the points of a wide domain in few cells: finely about some ranks, coarsely elsewhere.

A domain of more than `CELLS` points is looked at more than once before noise is drawn:

1. The first look counts the records of `CELLS` equal cells.
2. A cell is *hot* if a point in it may matter. The task says so from the cell's exact ranks. Each hot cell is
   cut into equal cells, and everything between hot cells is merged into single cells.
3. The next look counts these cells. After the last look hot cells are cut into single points.

Looks draw nothing. A look's result, where to count finely, is as secret as the records. It goes from the
private stage to the workers of the same round, and never into a state. What a round releases is drawn from
the last counts.

Privacy. Where a record is counted depends on all records, so these counts have no bounded sensitivity of
their own. A round may use looks only if its releases have the same distribution as if all points were
counted: every score or count that its draws use is the same number either way. Its privacy is then that of
the draws on all records. A round that chooses by rank gets there by scores that end at a distance: all points
farther from the wanted rank have one score. `Focused.hot` must then hold for every cell in which some point
is nearer.

Memory. Let m ranks be wanted, and let r records be nearer to one of them than scores end.

- A hot cell holds only such records, or it is one of at most 2 m cells in which the nearness ends.
- Each of these 2 m is cut into at most `fan_out` cells. All other hot cells together hold at most r records,
  so at most r counts.
- The hot cells of one rank have neighboring ranks. So there are a few merged cells for each wanted rank.
- With `fan_out` = `CELLS` / 8 m, a pass needs hardly more than max(`CELLS`, `CELLS` / 4 + r) counts, whatever
  the number of records, their values, and the domain.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.distinct import distinct
from core.gaps import Runs
from core.rounds import Block, State, total_of
from core.stored import Stored

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Hot = Callable[[Runs, int], Bools]
"""Says of each run, given the number of records, whether one of its points may matter."""

CELLS = 1 << 20
"""Most points of a domain that are all counted, and cells of the first look at a wider one."""

HELD = CELLS >> 2
"""Most values that are held at once if they wait in a store: a draw takes far more memory than a value."""


@dataclass(frozen=True, eq=False)
class Focus:
    """The cells in which records are counted. After the first look they are as secret as the records.

    Args:
        edges: shape (m + 1,), ascending, from the first point of the domain to the one after the last.
        widths: shape (m,): points per cell between two edges; the last cell may have fewer.
    """

    edges: Ints
    widths: Ints

    def count(self, points: Ints) -> Counts:
        """Count the points of each cell, shape (n,); a cell's key is its first point."""
        return Counts.of(self._cells(points))

    def recount(self, counts: Stored) -> Counts:
        """Count the points of each cell, which are counted one by one before."""
        cells = (Counts.weighted(self._cells(part.keys), part.counts) for part in counts)
        return cast(Counts, total_of(cells))

    def _cells(self, points: Ints) -> Ints:
        at = np.searchsorted(self.edges, points, side="right") - 1
        starts, widths = self.edges[at], self.widths[at]
        return np.asarray(starts + (points - starts) // widths * widths)

    def finer(self, counts: Counts, hot: Hot, fan_out: int, merging: bool = True) -> "Focus":
        """Cut each hot cell into at most `fan_out` cells, and merge what lies between hot cells and edges.

        Args:
            counts: records of the cells, by this focus.
            hot: see `Hot`; a run here is a cell that holds records.
            fan_out: at least 1.
            merging: if not, cells that are not hot stay as they are.
        """
        at = np.searchsorted(self.edges, counts.keys, side="right") - 1
        ends = np.minimum(counts.keys + self.widths[at], self.edges[at + 1])
        del at  # there may be a million cells
        ranks = np.append(0, np.cumsum(counts.counts))
        cells = Runs(counts.keys, ends - counts.keys, ranks[:-1], ranks[1:])
        kept = hot(cells, int(ranks[-1]))
        edges = distinct(np.sort(np.concatenate([self.edges, counts.keys[kept], ends[kept]])))
        widths = np.diff(edges)
        before = widths if merging else self.widths[np.searchsorted(self.edges, edges[:-1], side="right") - 1]
        fine = np.searchsorted(edges, counts.keys[kept])
        before[fine] = -(-widths[fine] // fan_out)
        return Focus(edges, before)


@dataclass(frozen=True, kw_only=True)
class Focused:
    """A round that counts the points of one axis, of a wide domain by looks; see the docstring of the module.

    Args:
        focus: where it counts finely; None where it counts every point.
    """

    merging: ClassVar[bool] = True
    """Whether cells that are not hot are merged for the next look."""

    focus: Focus | None = field(default=None, repr=False)

    @property
    @abstractmethod
    def points(self) -> int:
        """Number of grid points."""

    @property
    @abstractmethod
    def near(self) -> tuple[int, ...]:
        """For each wanted rank, most records that are nearer to it than scores end."""

    @abstractmethod
    def hot(self, runs: Runs, total: int, state: State) -> Bools:
        """Say of each run whether it may hold a point whose ranks the release needs.

        Args:
            runs: all cells that hold records, ascending.
            total: number of records.
            state: before the round.
        """

    @property
    def looks(self) -> int:
        """See `core.rounds.Looking.looks`."""
        if self.points <= CELLS:
            return 0
        looks, width = 1, -(-self.points // self.first_cells)
        while width > self.fan_out:
            looks, width = looks + 1, -(-width // self.fan_out)
        return looks

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds; see the docstring of the module."""
        if self.points <= CELLS:
            return self.points
        ranks = len(self.near)
        return max(self.first_cells, 2 * ranks * (self.fan_out + 2 * self.looks) + sum(self.near))

    @property
    def first_cells(self) -> int:
        """Number of cells of the first look at all points."""
        return CELLS

    @property
    def fan_out(self) -> int:
        """Number of cells into which a hot cell is cut, a power of 2."""
        return 1 << max(1, (CELLS // (8 * len(self.near))).bit_length() - 1)

    def coarse(self, state: State) -> Self:
        """See `core.rounds.Looking.coarse`."""
        width = -(-self.points // self.first_cells)
        return replace(self, focus=Focus(np.array([0, self.points]), np.array([width])))

    def finer(self, aggregate: Counts, state: State) -> Self:
        """See `core.rounds.Looking.finer`."""
        if self.focus is None:
            raise ValueError("The first look has no focus; use coarse.")

        def hot(runs: Runs, total: int) -> Bools:
            return self.hot(runs, total, state)

        return replace(self, focus=self.focus.finer(aggregate, hot, self.fan_out, self.merging))

    def summarize(self, block: Block, state: State) -> Counts:
        """Count the records of every cell, or at every grid point, that has any."""
        points = block.points[:, 0]
        return Counts.of(points) if self.focus is None else self.focus.count(points)

    def recount(self, counts: Stored, state: State) -> Counts:
        """See `core.rounds.total_of_stored`."""
        return counts.whole() if self.focus is None else self.focus.recount(counts)
