"""The sparse histogram: noise on the counts of occupied cells, and a threshold."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from core.aggregate import Counts
from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.held import AT_WORK
from core.histogram.cells import Cells
from core.histogram.found import Table
from core.histogram.method import CountCells
from core.mechanisms.stability import StabilityHistogram
from core.noise import Noise
from core.rounds import Block
from core.task import Accuracy
from core.tightness import Tightness

_CELLS = Tightness(
    "The promised error of released counts is reached where every cell holds many rows. Where few cells hold "
    "any, few counts are released, and the largest of their errors is smaller.",
    reached=True,
)
_RELEASED = Tightness(
    "The number from which on a cell is surely released is nearly reached where every cell holds about so "
    "many rows. It allows for the largest noise of all cells, so where few cells hold rows, cells with fewer "
    "rows are released too.",
    reached=True,
)


@dataclass(frozen=True)
class SparseHistogram:
    """Release the cells whose noisy count reaches a threshold. Only cells that hold records are considered.

    A record is in one cell. `StabilityHistogram` gives the cost. Clipping at the floor is 1-Lipschitz in
    every count, so the clipped counts have the same sensitivity.

    The table may be released in parts. The part of a cell follows from its key alone, and whether a cell
    appears, and with which count, depends on its own count and its own noise. So all parts together are
    distributed like the table that is drawn at once, and cost as much. A replaced record may change two parts
    by 1 each; that is the `l1` of 2 that the draw is calibrated to.

    Args:
        cells: the cells.
        count: noise of every count above the floor, and the threshold for it.
        floor: counts at or below it never appear; None where all that hold records may.
        parts: see `core.rounds.RoundInParts`; as many as the draws of `count`.
    """

    cells: Cells
    count: StabilityHistogram
    purpose: ClassVar[str] = "which cells hold enough records, and how many each of them holds"
    floor: int | None = None
    name: str = "histogram"
    parts: int = 1

    @property
    def growing(self) -> str:
        """See `core.held`."""
        above = f"with more than {self.floor:,} records" if self.floor else "that has records"
        of_each = f", of each of {self.parts:,} parts in turn" if self.parts > 1 else ""
        fewer = "" if self.parts > 1 else " (with parts one part at a time; a floor leaves cells out)"
        return f"{AT_WORK} bytes for each cell {above}{of_each}{fewer}"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.count,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the block's records by cell."""
        return Counts.of(self.cells.keys(block.points))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Table:
        """Release the cells that reach the threshold with their noisy counts."""
        shards = aggregate.split(self.parts)
        return Table.joined([self.release_part(i, shard, state, noise) for i, shard in enumerate(shards)])

    def release_part(self, number: int, aggregate: Counts, state: None, noise: Noise) -> Table:
        """See `RoundInParts.release_part`."""
        keys, counts = self.count.released(aggregate.keys, aggregate.counts, noise)
        return Table(self.cells, keys, counts + (self.floor or 0))


class Sparse(CountCells):
    """The counts of the cells that hold enough records. The number of all cells may be any."""

    name: ClassVar[str] = "sparse"

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.neighbors.constraints:
            return InvalidValue("method", self.name, "it does not support known counts; use dense")
        delta = self.setting.budget.delta
        if self.sensitivity and not 0 < delta < 0.5:
            return InvalidValue("delta", delta, "sparse needs one above 0 and below 1/2")
        return None

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        params = self.setting.params
        return (SparseHistogram(self.cells, self._count, params.floor or None, parts=params.parts),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`; a cell that is missing counts as empty."""
        floor = self.setting.params.floor
        released_from = floor + self._count.threshold + self.error
        note = "A cell with fewer records than promised may be missing."
        return self.promised(
            self.error,
            released_from,
            {"cell_error": _CELLS, "released_from": _RELEASED},
            note,
            threshold=floor + self._count.threshold,
        )

    @cached_property
    def _count(self) -> StabilityHistogram:
        setting, what = self.setting, "cell counts"
        parts: dict[str, Any] = {"times": setting.params.parts, "disjoint": setting.params.parts > 1}
        if not self.sensitivity:
            return StabilityHistogram(what=what, scale=0.0, threshold=1, l1=0, **parts)
        budget = setting.budget
        return StabilityHistogram.of(what, budget.epsilon, budget.delta, setting.neighbors, **parts)
